# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""To which tensors autograd leads from the results of a traced call.

A gradient of zeros is not none: PyTorch gives zeros to what has been overwritten (`y = p * 2;
y[:] = x`) or padded away, though no program reads it. Fake tensors have autograd's graph, so that
tracing can ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.graph import Node

from weft import frontend

_NOTHING: frozenset[int] = frozenset()


def reached_tensors(
    results: Sequence[Any], originals: dict[int, torch.Tensor]
) -> list[frozenset[int]]:
    """The addresses of the tensors that autograd leads to, for each leaf of the value returned.

    originals: the tensors that traced ones stand for, by their addresses; others are themselves.
    """
    return [
        _reached_from(each, originals)
        if isinstance(each, torch.Tensor) and each.requires_grad
        else _NOTHING
        for each in results
    ]


def autograd_reach(
    reached: Sequence[frozenset[int]],
    arguments: Sequence[Any],
    resolve: Callable[[str], torch.Tensor],
) -> frontend.AutogradReach:
    """reached: see `reached_tensors`. arguments: their leaves. resolve: finds a tensor by name."""

    def place(source: frontend.InputSource) -> int:
        if source.kind == "user":
            return id(arguments[source.index])
        return id(source.tensor if source.kind == "constant" else resolve(source.name))

    return frontend.AutogradReach(place, reached)


def leaves_reached(result: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that the history of one begins with."""
    found: list[torch.Tensor] = []
    pending: list[Node] = [] if result.grad_fn is None else [result.grad_fn]
    seen = set(pending)
    while pending:
        node = pending.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            found.append(variable)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                pending.append(following)
    return found


def _reached_from(result: torch.Tensor, originals: dict[int, torch.Tensor]) -> frozenset[int]:
    reached = [result] if result.grad_fn is None else leaves_reached(result)
    return frozenset(id(originals.get(id(each), each)) for each in reached)
