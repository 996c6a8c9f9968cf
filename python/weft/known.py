# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a traced program asks for and that depend on nothing but the program.

A branch on `(position_ids[:, 0] == 0).all()` cannot be traced on tensors without values, unless
the positions come from an `arange`: then what has been traced so far can be computed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from weft.signature import Declined

_READERS = {
    torch.Tensor.__bool__,
    torch.Tensor.__float__,
    torch.Tensor.__index__,
    torch.Tensor.__int__,
    torch.Tensor.item,
}


class KnownValues(TorchFunctionMode):
    """Within it, a program that is being traced can read such values.

    Raises: Declined, for a branch on others, ahead of torch, which prints the whole program.
    """

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function in _READERS:
            node = _node(args[0])
            if node is not None and _is_known(node):
                with _disable_current_modes(), torch._C.DisableTorchFunction():
                    return function(_computed(node))
            if function is torch.Tensor.__bool__ and node is not None and args[0].constant is None:
                raise Declined("a branch on values that only a run knows")
        return function(*args, **(kwargs or {}))


def _node(tensor: torch.Tensor) -> torch.fx.Node | None:
    mode = get_proxy_mode()
    slot = None if mode is None else get_proxy_slot(tensor, mode.tracer, None)
    return None if slot is None else slot.proxy.node


def _is_known(node: torch.fx.Node) -> bool:
    needed = _ancestors(node)
    return all(map(_is_constant, needed)) and not _is_written(node.graph, needed)


def _computed(result: torch.fx.Node) -> torch.Tensor:
    needed = _ancestors(result)
    values: dict[torch.fx.Node, Any] = {}
    for node in result.graph.nodes:
        if node in needed:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    return values[result]


def _ancestors(result: torch.fx.Node) -> set[torch.fx.Node]:
    """With the node itself."""
    found: set[torch.fx.Node] = set()
    queue = [result]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += node.all_input_nodes
    return found


def _is_constant(node: torch.fx.Node) -> bool:
    return node.target is operator.getitem or (
        isinstance(node.target, torch._ops.OpOverload)
        and node.target.namespace == "aten"
        and not node.target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in node.target.tags
        and "empty" not in node.target._schema.name
    )


def _is_written(graph: torch.fx.Graph, nodes: set[torch.fx.Node]) -> bool:
    """Whether anything writes to one of them, or to a view of it."""
    return any(
        isinstance(node.target, torch._ops.OpOverload)
        and node.target._schema.is_mutable
        and not nodes.isdisjoint(_ancestors(node))
        for node in graph.nodes
    )
