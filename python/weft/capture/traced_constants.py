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
from torch.export.graph_signature import InputKind
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.nn.modules.transformer import _detect_is_causal_mask
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from weft.capture.calling_frames import is_called_by
from weft.capture.signature import Declined

_READERS = {
    torch.Tensor.__bool__,
    torch.Tensor.__float__,
    torch.Tensor.__index__,
    torch.Tensor.__int__,
    torch.Tensor.item,
}
# Of a tensor with values, what they tell would become part of the program.
_REVEALERS = {
    *_READERS,
    torch.Tensor.__array__,
    torch.Tensor.__complex__,
    torch.Tensor.__contains__,
    torch.Tensor.data_ptr,
    torch.Tensor.is_nonzero,
    torch.Tensor.numpy,
    torch.Tensor.tolist,
    torch.Tensor.untyped_storage,
    torch.equal,
    torch.is_nonzero,
}
_RESEATERS = {torch.Tensor.data.__set__, torch.Tensor.set_}

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

    def __init__(self) -> None:
        super().__init__()
        self._histories: dict[torch.fx.Graph, _History] = {}

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function in _RESEATERS:
            raise Declined("a tensor is given other memory")
        if function in _REVEALERS and type(args[0]) in (torch.Tensor, torch.nn.Parameter):
            raise Declined("values of a tensor that is no argument are read")
        if function in _READERS:
            node = node_of(args[0])
            if node is not None:
                history = self._histories.setdefault(node.graph, _History(node.graph))
                needed = history.constants(node)
                if needed is not None:
                    with _disable_current_modes(), torch._C.DisableTorchFunction():
                        return function(_computed(node, needed))
                if function is torch.Tensor.__bool__ and args[0].constant is None:
                    if is_called_by(_detect_is_causal_mask):
                        return _compares_same(node)
                    raise Declined("a branch on values that only a run knows")
        return function(*args, **(kwargs or {}))


def _compares_same(whole: torch.fx.Node) -> bool:
    """Of PyTorch's question whether a mask is the causal one, which attention then leaves out:
    whether both are computed alike, of whatever size. A mask that is kept gives the same."""
    (compared,) = whole.all_input_nodes
    mask, causal = compared.args
    return _is_alike(mask, causal)


def _is_alike(one: Any, other: Any) -> bool:
    """Whether two arguments of operations have the same value, as both are computed alike."""
    if one is other:
        return True
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    if not (isinstance(one, torch.fx.Node) and isinstance(other, torch.fx.Node)):
        return type(one) is type(other) and one == other
    sizes = [each.meta.get("val") for each in (one, other)]
    if all(isinstance(each, torch.SymInt) for each in sizes):
        return bool(sizes[0].node.expr == sizes[1].node.expr)
    return (
        is_constant(one)
        and one.target is other.target
        and one.kwargs.keys() == other.kwargs.keys()
        and _is_alike(one.args, other.args)
        and all(_is_alike(one.kwargs[name], other.kwargs[name]) for name in one.kwargs)
    )


class _History:
    """What a graph has done so far that keeps its values from being known. It is asked while the
    graph grows, and looks at every node once."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._graph = graph
        self._last: torch.fx.Node | None = None
        self._written: set[torch.fx.Node] = set()
        self._autocast = False

    def constants(self, result: torch.fx.Node) -> set[torch.fx.Node] | None:
        """All nodes that its value is computed from; None, if it is not known."""
        self._look()
        # Autocast would compute otherwise now than where the program was.
        if self._autocast or torch.is_autocast_enabled("cpu"):
            return None
        needed = ancestors(result)
        known = all(map(is_constant, needed)) and self._written.isdisjoint(needed)
        return needed if known else None

    def _look(self) -> None:
        last = self._last
        for node in reversed(self._graph.nodes):
            if node is last:
                break
            if self._last is last:
                self._last = node
            if getattr(node.target, "__name__", None) == "_enter_autocast":
                self._autocast = True
            if _writes(node):
                # It, or a view of it.
                ancestors(node, self._written)


def keep_constants_live(constants: dict[str, Any], known: dict[int, Any]) -> None:
    """torch.export takes tensors that no module names as constants, a parameter as a detached one,
    which would come to the parent by value: it gets the tensor that the parent has.

    known: objects that the parent has, by address.
    Raises: Declined, for a constant that shares memory with such a tensor and is another one.
    """
    tensors = [each for each in known.values() if _has_memory(each)]
    places = {_place(tensor): tensor for tensor in tensors}
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    for name, constant in constants.items():
        if id(constant) in known or not _has_memory(constant):
            continue
        live = places.get(_place(constant))
        if live is not None:
            constants[name] = live
        elif constant.untyped_storage().data_ptr() in storages:
            raise Declined("a constant of the program is a view of a tensor that may change")


def join_same_constants(program: torch.export.ExportedProgram) -> None:
    """torch.export makes an input of each place that reads a tensor which no module names. One
    tensor becomes one input, whose gradient is that of all its uses."""
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    first: dict[int, torch.fx.Node] = {}
    for spec in program.graph_signature.input_specs:
        held = program.state_dict if spec.kind is InputKind.PARAMETER else program.constants
        tensor, node = held.get(spec.target), nodes[spec.arg.name]
        if not isinstance(tensor, torch.Tensor):
            continue
        known = first.setdefault(id(tensor), node)
        if known is not node and spec.kind is InputKind.CONSTANT_TENSOR:
            node.replace_all_uses_with(known)


def _has_memory(value: Any) -> bool:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        return False
    return value.device.type == "cpu" and value.numel() > 0


def _place(tensor: torch.Tensor) -> tuple:
    return (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())


def node_of(tensor: torch.Tensor) -> torch.fx.Node | None:
    mode = get_proxy_mode()
    slot = None if mode is None else get_proxy_slot(tensor, mode.tracer, None)
    return None if slot is None else slot.proxy.node


def _computed(result: torch.fx.Node, needed: set[torch.fx.Node]) -> torch.Tensor:
    values: dict[torch.fx.Node, Any] = {}
    for node in result.graph.nodes:
        if node in needed:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    return values[result]


def ancestors(result: torch.fx.Node, found: set[torch.fx.Node] | None = None) -> set[torch.fx.Node]:
    """Adds the node and what it is computed from; those of a node that is in it already are."""
    found = set() if found is None else found
    queue = [result]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += node.all_input_nodes
    return found


def is_constant(node: torch.fx.Node) -> bool:
    return node.target is operator.getitem or _name(node) in _CONSTANT


def _writes(node: torch.fx.Node) -> bool:
    name = _name(node)
    return name is not None and (name in _WRITERS or node.target._schema.is_mutable)


def _name(node: torch.fx.Node) -> str | None:
    """`add` of `aten.add.Tensor`; what is no operation has none."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    space, _, name = node.target._schema.name.partition("::")
    return name if space == "aten" else node.target._schema.name
