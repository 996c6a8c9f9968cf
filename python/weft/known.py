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


# What gives the same for the same arguments, and leaves them as they are.
_CONSTANT = frozenset(
    """
    _to_copy abs add alias all amax amin any arange argmax argmin atleast_1d bitwise_and
    bitwise_not bitwise_or bitwise_xor bucketize cat ceil chunk clamp clone concat
    concatenate constant_pad_nd contiguous cos count_nonzero cumprod cumsum detach diff div
    divide eq exp expand expand_as eye flatten flip floor floor_divide frac full full_like
    gather ge gt hstack index index_select le linspace log log2 logical_and logical_not
    logical_or logical_xor lt masked_fill max maximum mean meshgrid min minimum movedim mul
    multiply nan_to_num narrow ne neg new_full new_ones new_zeros not_equal numel one_hot
    ones ones_like outer pad permute pow prod remainder repeat reshape roll round rsqrt rsub
    scalar_tensor searchsorted select sign sin slice sort split split_with_sizes sqrt
    squeeze stack sub subtract sum swapaxes swapdims t tensor_split tile to transpose tril
    tril_indices triu triu_indices true_divide trunc type_as unbind unflatten unsqueeze view
    view_as vstack where zeros zeros_like
    """.split()
)
# Operations that write, though their schemas do not say so.
_WRITERS = frozenset({"batch_norm", "instance_norm", "_has_compatible_shallow_copy_type"})


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
    if not all(map(_is_constant, needed)) or _is_written(node.graph, needed):
        return False
    # Autocast would compute otherwise now than where the program was.
    return not torch.is_autocast_enabled("cpu") and not any(
        getattr(other.target, "__name__", None) == "_enter_autocast" for other in node.graph.nodes
    )


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
    return node.target is operator.getitem or _name(node) in _CONSTANT


def _is_written(graph: torch.fx.Graph, nodes: set[torch.fx.Node]) -> bool:
    """Whether anything writes to one of them, or to a view of it."""
    return any(
        (_name(node) in _WRITERS or node.target._schema.is_mutable)
        and not nodes.isdisjoint(_ancestors(node))
        for node in graph.nodes
        if _name(node) is not None
    )


def _name(node: torch.fx.Node) -> str | None:
    """`add` of `aten.add.Tensor`; what is no operation has none."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    space, _, name = node.target._schema.name.partition("::")
    return name if space == "aten" else node.target._schema.name
