# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of `x.data` in a program that is being traced.

PyTorch makes that tensor out of a trace's sight, which would take it for a constant. To read, it is
`x.detach()`; but it counts its writes for itself, so a program that writes to it, or returns it, is
none that a trace can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from weft.capture.signature import Declined
from weft.capture.traced_constants import node_of
from weft.frontend.inplace import written_arguments

_GET = torch.Tensor.data.__get__


class DataReads(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._made: list[torch.fx.Node] = []

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function == _GET and node_of(args[0]) is not None:
            detached = args[0].detach()
            node = node_of(detached)
            assert node is not None
            self._made.append(node)
            return detached
        return function(*args, **(kwargs or {}))

    def check(self, results: Iterable[Any]) -> None:
        """results: the leaves of what the program returns.

        Raises: Declined, if they show the data of a tensor, or the program writes to it.
        """
        if not self._made:
            return
        shown = set(self._made)
        for node in self._made[0].graph.nodes:
            is_op = isinstance(node.target, torch._ops.OpOverload)
            if is_op and not shown.isdisjoint(written_arguments(node)):
                raise Declined("it writes to the data of a tensor")
            if node not in shown and _may_show(node) and not shown.isdisjoint(node.all_input_nodes):
                shown.add(node)
        for result in results:
            if isinstance(result, torch.Tensor) and node_of(result) in shown:
                raise Declined("it returns the data of a tensor")


def _may_show(node: torch.fx.Node) -> bool:
    """Whether its results may lie in the memory of its arguments."""
    op = node.target
    if not isinstance(op, torch._ops.OpOverload):
        return True
    if any(each.alias_info is not None for each in op._schema.returns):
        return True
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
