# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of one call, whatever autograd has recorded before it.

An input may be the result of an earlier call that read another input, such as the state of a cell
that runs step by step. The gradient that autograd finds for that other input contains a part that
came through the state, and that is not a gradient of this call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.graph import Node
from torch.utils import checkpoint

from weft.compiled.verification import Unclear


def gradients_of_call(
    output: torch.Tensor,
    wanted: Sequence[torch.Tensor],
    given: torch.Tensor,
    ahead: Sequence[Node | None],
) -> list[torch.Tensor | None]:
    """The gradients of `output` by `wanted`, which are inputs of the call; None for those that it
    does not depend on. Autograd's graph is retained. given: the cotangent. ahead: the `grad_fn` of
    each input before the call.

    Raises: Unclear, if what was recorded before the call no longer exists.
    """
    nodes = {node for node in ahead if node is not None}
    if not nodes:
        return [
            *torch.autograd.grad(output, wanted, given, retain_graph=True, allow_unused=True),
        ]
    # A node's hooks run after autograd has captured the gradients of the node's results.
    hooks = [node.register_prehook(_nothing) for node in nodes]
    try:
        found = torch.autograd.grad(output, wanted, given, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        raise Unclear(
            f"what was recorded ahead of the call cannot be differentiated: {error}"
        ) from None
    finally:
        for hook in hooks:
            hook.remove()
    reached = _reached(output.grad_fn, nodes)
    return [
        gradient if tensor is output or _place(tensor) in reached else None
        for tensor, gradient in zip(wanted, found, strict=True)
    ]


def reenters_autograd(output: torch.Tensor) -> bool:
    """Whether its backward runs autograd within autograd, as torch.utils.checkpoint with
    use_reentrant=True does. Such a backward is not possible with torch.autograd.grad."""
    name = f"{checkpoint.CheckpointFunction.__name__}Backward"
    pending, seen = [output.grad_fn], {output.grad_fn}
    while pending:
        node = pending.pop()
        if node is None:
            continue
        if node.name() == name:
            return True
        following = {each for each, _ in node.next_functions} - seen
        seen |= following
        pending += following
    return False


def _nothing(cotangents: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...]:
    return tuple(None if each is None else torch.zeros_like(each) for each in cotangents)


def _place(tensor: torch.Tensor) -> tuple[Any, int]:
    """The node that computes the tensor's gradient, and the number of the node's result."""
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _reached(start: Node | None, borders: set[Node]) -> set[tuple[Any, int]]:
    """The places that gradients reach on the way from `start` to `borders`."""
    found: set[tuple[Any, int]] = set()
    pending, seen = [start], {start}
    while pending:
        node = pending.pop()
        if node is None or node in borders:
            continue
        for following, number in node.next_functions:
            found.add((following, number))
            if following not in seen:
                seen.add(following)
                pending.append(following)
    return found
