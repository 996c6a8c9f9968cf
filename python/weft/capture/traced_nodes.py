# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes that are added to a graph while it is traced, and what tensors they are of."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import (
    _ProxyTensor,
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    set_meta,
    set_proxy_slot,
)
from torch.utils._python_dispatch import _disable_current_modes

from weft.frontend.inplace import detaches_new_copy

_ELEMENT = "weft_element"  # in a node's meta: its Place
_aten = torch.ops.aten
_SPLITS = frozenset(
    [_aten.split.Tensor, _aten.split_with_sizes.default, _aten.split.sizes, _aten.chunk.default]
)


class NotRepeated(Exception):
    """The program's loops have to be traced step by step."""


@dataclass(frozen=True)
class Place:
    """Element `at` of a dim of a tensor. width: the dim stays, and has so many elements from there
    on."""

    tensor: torch.fx.Node
    dim: int
    at: int
    width: int = 0


def node_behind(tensor: torch.Tensor) -> torch.fx.Node:
    """Raises: NotRepeated, of a tensor that the tracer does not know."""
    mode = get_proxy_mode()
    slot = None if mode is None else get_proxy_slot(tensor, mode.tracer, None)
    if slot is None:
        raise NotRepeated("a step gives a tensor that was not traced")
    return slot.proxy.node


def track(tensor: torch.Tensor, node: torch.fx.Node) -> None:
    """Makes the tensor known to the tracer as the node's."""
    tracer = tracer_now()
    set_proxy_slot(tensor, tracer, _ProxyTensor(torch.fx.Proxy(node, tracer), None))


def track_as_own(tensor: torch.Tensor, node: torch.fx.Node) -> None:
    """The same of a node whose memory no other shows: it lies in the tensor's from then on, so that
    views of the tensor are views of it."""
    track(tensor, node)
    with disable_proxy_modes_tracing(), torch._C.DisableTorchFunction(), torch.no_grad():
        node.meta["val"] = tensor.detach()


def nodes_between(before: torch.fx.Node, after: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes behind the first one, up to the other."""
    nodes = []
    while before is not after:
        before = before.next
        nodes.append(before)
    return nodes


def is_of_constant(node: torch.fx.Node) -> bool:
    """Whether the node is a constant, or detaches, in place, the copy of one that nobody else
    has."""
    return node.op == "get_attr" or detaches_new_copy(node)


def are_equal_constants(nodes: Sequence[torch.fx.Node]) -> bool:
    """Whether two nodes are constants that have the same type and elements, bit for bit."""
    root = tracer_now().root
    values = [getattr(root, str(node.target), None) for node in nodes]
    if not all(type(each) is torch.Tensor for each in values):
        return False
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        first, *others = values
        return all(
            each.dtype == first.dtype
            and each.shape == first.shape
            and torch.equal(_bits(each), _bits(first))
            for each in others
        )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


def tracer_now() -> Any:
    mode = get_proxy_mode()
    assert mode is not None
    return mode.tracer


def emit(target: Callable[..., Any], *args: Any) -> torch.fx.Node:
    """A node of an op whose arguments are nodes and plain values, with what it gives."""
    tracer = tracer_now()
    given = torch.fx.node.map_arg(args, lambda node: torch.fx.Proxy(node, tracer))
    proxy = tracer.create_proxy("call_function", target, tuple(given), {})
    values = torch.fx.node.map_arg(args, lambda node: node.meta["val"])
    with disable_proxy_modes_tracing(), torch._C.DisableTorchFunction(), torch.no_grad():
        set_meta(proxy, target(*values))
    node: torch.fx.Node = proxy.node
    return node


def place_of(node: Any) -> Place | None:
    if not isinstance(node, torch.fx.Node):
        return None
    if (known := node.meta.get(_ELEMENT)) is not None:
        return known
    if node.target is not operator.getitem or not isinstance(node.args[0], torch.fx.Node):
        return None
    target, number = node.args[0].target, node.args[1]
    if target is not _aten.unbind.int and target not in _SPLITS:
        return None
    tensor = node.args[0].args[0]
    rank = tensor.meta["val"].dim()
    if target is _aten.unbind.int:
        dim = node.args[0].args[1] if len(node.args[0].args) > 1 else 0
        return Place(tensor, dim % rank, number)
    dim = (node.args[0].args[2] if len(node.args[0].args) > 2 else 0) % rank
    sizes = [each.shape[dim] for each in node.args[0].meta["val"]]
    # A last one that is shorter ends beyond the tensor, if it were like the others.
    is_even = all(each == sizes[0] for each in sizes[:-1]) and sizes[-1] <= sizes[0]
    return Place(tensor, dim, number * sizes[0], sizes[number]) if is_even else None


def element(stacked: torch.fx.Node, at: int) -> torch.fx.Node:
    """One element of what a scan has stacked, as a tensor of its own."""
    selected = emit(_aten.select.int, stacked, 0, at)
    made = emit(_aten.clone.default, selected)
    made.meta[_ELEMENT] = selected.meta[_ELEMENT] = Place(stacked, 0, at)
    return made


def is_of_element(node: torch.fx.Node) -> bool:
    """Whether the node is part of an `element`."""
    return _ELEMENT in node.meta


def elements_of(
    tensor: torch.fx.Node, dim: int, first: int, delta: int, count: int
) -> torch.fx.Node:
    """(count, ...): elements first, first + delta, and so on, of a dim."""
    if dim:
        others = [each for each in range(tensor.meta["val"].dim()) if each != dim]
        tensor = emit(_aten.permute.default, tensor, [dim, *others])
    low = min(first, first + delta * (count - 1))
    high = max(first, first + delta * (count - 1)) + 1
    if (low, high, abs(delta)) != (0, tensor.meta["val"].shape[0], 1):
        tensor = emit(_aten.slice.Tensor, tensor, 0, low, high, abs(delta))
    return emit(_aten.flip.default, tensor, [0]) if delta < 0 else tensor


def unsqueezed(tensor: torch.fx.Node) -> torch.fx.Node:
    return emit(_aten.unsqueeze.default, tensor, 0)


def interleaved(blocks: Sequence[torch.fx.Node]) -> torch.fx.Node:
    """blocks: (count, ...) each. The first element of each, then the second one, and so on."""
    count, *shape = blocks[0].meta["val"].shape
    stacked = emit(_aten.stack.default, list(blocks), 1)
    return emit(_aten.reshape.default, stacked, [count * len(blocks), *shape])


def joined(blocks: Sequence[torch.fx.Node], dim: int, stacks: bool) -> torch.fx.Node:
    """blocks: (count, ...) each. What `stack` or `cat` along a dim makes of all their elements."""
    rank = blocks[0].meta["val"].dim() - 1
    made = blocks[0] if len(blocks) == 1 else emit(_aten.cat.default, list(blocks), 0)
    dim %= rank + 1 if stacks else rank
    order = [*range(1, dim + 1), 0, *range(dim + 1, rank + 1)]
    if dim:
        made = emit(_aten.permute.default, made, order)
    if not stacks:
        shape = list(made.meta["val"].shape)
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        made = emit(_aten.reshape.default, made, shape)
    return emit(_aten.clone.default, emit(_aten.contiguous.default, made))
