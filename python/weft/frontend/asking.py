# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's kernels say of a call: whether they refuse it, and how its results lie in memory.

Fake tensors take types that no kernel has, scalars that no element can hold and dims that are not
there, and lay some results out otherwise. So the call is made on tensors of ones and zeros; where
they would be large, on small ones of the same types and ranks, with sizes cut down. What depends
on values is not found here.

Kernels believe a lot about sizes: those of different tensors are cut down only where they fit each
other still, and ops that are not public, so that others check their arguments, are not asked then.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.fallback import flatten_results
from weft.frontend.strides import order_of
from weft.frontend.table import TABLE

# A call on more elements than this is made with its sizes cut down, to one cap after another, until
# the small call is a valid one.
_MOST_ELEMENTS = 2**14
_CAPS = (3, 8, 16)
# Elements of floats and of integers: zeros are indices of whatever is there, and ones divide. Some
# kernels refuse values; what is refused with all of these is refused for its types or sizes.
_FILLS = ((1, 0), (1, 1), (0, 0))
_IS_INTEGER = re.compile(r"\b(Sym)?[iI]nt\b")
_OTHER_TYPES: tuple[Callable[[torch.dtype], torch.dtype], ...] = (
    lambda dtype: torch.float64 if dtype.is_floating_point else torch.int64,
    lambda dtype: torch.float64,
)


@dataclass(frozen=True)
class _Like:
    """A tensor argument."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class _Integer:
    """An argument that is an integer by the schema: a size, a dim, a count. Scalars are none."""

    value: int


class _NotAsked(Exception):
    """The arguments are nothing that a small call could have."""


@dataclass(frozen=True)
class Answer:
    """refusal: PyTorch's own words where its kernels refuse the call. orders: as `order_of`, of
    its flattened results; None where it was not made, or refused. layouts: their shapes and
    strides, which are the call's own where it was small."""

    refusal: str | None = None
    orders: tuple[tuple[int, ...] | None, ...] | None = None
    layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]] | None, ...] = ()


_NO_ANSWER = Answer()

# They believe that the others of their arguments have an element a channel.
_NORMS = ("aten._native_batch_norm_legit_functional.default",)

# They have no rules, and check indices themselves.
_CHECKING_INDICES = (
    "aten::cross_entropy_loss",
    "aten::isin",
    "aten::multi_margin_loss",
    "aten::nll_loss_forward",
    "aten::nll_loss_nd",
    "aten::nll_loss2d_forward",
)

# In a process that traces: on how many threads PyTorch runs the calls that it traces for. None if
# these are its own.
threads_of_calls: int | None = None


def ask(
    node: torch.fx.Node, lying: Mapping[torch.fx.Node, tuple[int, ...]] = MappingProxyType({})
) -> Answer:
    """Of a call in an exported graph. Ops that are not PyTorch's own are not asked, nor views,
    which have no kernels. lying: strides of arguments where they are not those of their fakes."""
    if not all("val" in each.meta for each in (node, *node.all_input_nodes)):
        return _NO_ANSWER

    def value(each: torch.fx.Node) -> Any:
        fake = each.meta["val"]
        return _like(fake, lying[each]) if each in lying else fake

    try:
        given = torch.fx.node.map_arg((node.args, node.kwargs), value)
    except _NotAsked:
        return _NO_ANSWER
    return _ask(node.target, *given, flatten_results(node.meta["val"]))


def lays_out_otherwise(node: torch.fx.Node) -> torch._ops.OpOverload | None:
    """The op that makes the memory which `node` shows, if it is known to lay it out in another
    order than fake tensors say."""
    while isinstance(node.target, torch._ops.OpOverload) and is_view(node.target):
        node = node.args[0]
    if not isinstance(node.target, torch._ops.OpOverload) or not is_harmless(node):
        return None
    orders = ask(node).orders
    if orders is None or orders == tuple(map(order, flatten_results(node.meta["val"]))):
        return None
    return node.target


def is_harmless(node: torch.fx.Node) -> bool:
    """Whether the call draws no random numbers, and its kernel believes no indices: rules are for
    ops that check them."""
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    values = flatten_results([each.meta.get("val") for each in node.all_input_nodes])
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    is_known = str(node.target) in TABLE or torch.Tag.pointwise in node.target.tags
    is_known |= node.target._schema.name in _CHECKING_INDICES
    return is_known or all(t.dtype.is_floating_point for t in tensors)


def _ask(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any], results: Sequence[Any]
) -> Answer:
    """results: the call's, flattened; they tell how large it is."""
    if op.namespace != "aten" or is_view(op):
        return _NO_ANSWER
    try:
        leaves, spec = pytree.tree_flatten(_described(op, args, kwargs))
    except _NotAsked:
        return _NO_ANSWER
    tensors = [leaf for leaf in leaves if isinstance(leaf, _Like)]
    made = (result for result in results if isinstance(result, torch.Tensor))
    total = sum(tensor.size for tensor in tensors) + sum(math.prod(r.shape) for r in made)
    if str(op) in _NORMS and any(t.shape != tensors[0].shape[1:2] for t in tensors[1:]):
        return _NO_ANSWER
    if _is_private(op) and str(op) not in _NORMS and (len(tensors) != 1 or total > _MOST_ELEMENTS):
        return _NO_ANSWER
    if total <= _MOST_ELEMENTS:
        return _asked(op, tuple(leaves), spec)
    return _asked_small(op, leaves, spec) if _fit(tensors) else _NO_ANSWER


def _asked_small(op: torch._ops.OpOverload, leaves: list[Any], spec: pytree.TreeSpec) -> Answer:
    for cap in _CAPS:
        small = tuple(_cut(leaf, cap) for leaf in leaves)
        if sum(leaf.size for leaf in small if isinstance(leaf, _Like)) > _MOST_ELEMENTS:
            return _NO_ANSWER
        answer = _asked(op, small, spec)
        if answer.refusal is None:
            return answer
        others = (tuple(_retyped(leaf, kind) for leaf in small) for kind in _OTHER_TYPES)
        if any(_asked(op, other, spec).refusal is None for other in others):
            return answer  # it is the types that are refused, not the small sizes
    return _NO_ANSWER


def _fit(tensors: list[_Like]) -> bool:
    """Whether sizes that are cut down fit each other still. Of no tensors, scalars may say how
    large the result is."""
    try:
        torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except RuntimeError:
        return False
    return bool(tensors)


def _is_private(op: torch._ops.OpOverload) -> bool:
    """Python's operators are not: `aten::__and__`."""
    return op._schema.name.startswith("aten::_") and not op._schema.name.startswith("aten::__")


def is_view(op: torch._ops.OpOverload) -> bool:
    return any(
        result.alias_info and not result.alias_info.is_write for result in op._schema.returns
    )


def _described(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    positional = [_describe(a, given) for a, given in zip(op._schema.arguments, args)]
    by_name = {argument.name: argument for argument in op._schema.arguments}
    return positional, {name: _describe(by_name[name], given) for name, given in kwargs.items()}


def _describe(argument: torch._C.Argument, given: Any) -> Any:
    is_integer = _IS_INTEGER.search(str(argument.real_type)) is not None

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
                raise _NotAsked
            return _like(value, value.stride())
        if isinstance(value, torch.device) and value.type != "cpu":
            raise _NotAsked
        if isinstance(value, int) and not isinstance(value, bool) and is_integer:
            return _Integer(value)
        return _known(value)

    return pytree.tree_map(leaf, given)


def _like(value: torch.Tensor, strides: Sequence[int]) -> _Like:
    shape, strides = (tuple(map(_known, n)) for n in (value.shape, strides))
    wide = _reach(shape, strides) > _MOST_ELEMENTS  # of a small part of a large tensor
    return _Like(value.dtype, shape, dense(shape, strides) if wide else strides)


def _known(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise _NotAsked
    return value


def _cut(leaf: Any, cap: int) -> Any:
    if isinstance(leaf, _Like):
        shape = tuple(min(size, cap) for size in leaf.shape)
        return replace(leaf, shape=shape, strides=dense(shape, leaf.strides))
    if isinstance(leaf, _Integer):
        return _Integer(min(leaf.value, cap))
    return leaf


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory a tensor spans."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides) if size)


def dense(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides of the same order without gaps; dims that are expanded stay so."""
    dense, step = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda d: (strides[d], -d)):
        if strides[dim]:
            dense[dim] = step
            step *= max(shape[dim], 1)
    return tuple(dense)


def _retyped(leaf: Any, kind: Callable[[torch.dtype], torch.dtype]) -> Any:
    return replace(leaf, dtype=kind(leaf.dtype)) if isinstance(leaf, _Like) else leaf


def _asked(op: torch._ops.OpOverload, leaves: tuple, spec: pytree.TreeSpec) -> Answer:
    return _asked_once(op, leaves, tuple(map(type, leaves)), spec)  # 1, 1.0 and True are equal


@functools.lru_cache(maxsize=4096)
def _asked_once(
    op: torch._ops.OpOverload, leaves: tuple, types: tuple[type, ...], spec: pytree.TreeSpec
) -> Answer:
    refusal = None
    for fills in _FILLS:
        args, kwargs = pytree.tree_unflatten([_real(leaf, fills) for leaf in leaves], spec)
        try:
            with _unnoticed():
                results = flatten_results(op(*args, **kwargs))
        except torch.linalg.LinAlgError:
            return _NO_ANSWER  # always about values
        except Exception as error:
            refusal = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        else:
            results = _on_all_threads(op, args, kwargs, results)
            return Answer(None, tuple(map(order, results)), tuple(map(_layout, results)))
    return Answer(refusal=refusal)


def order(result: Any) -> tuple[int, ...] | None:
    is_strided = isinstance(result, torch.Tensor) and result.layout == torch.strided
    order = order_of(result) if is_strided else None
    return None if order is None else tuple(order)


def _layout(result: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    if order(result) is None:
        return None
    return tuple(result.shape), tuple(result.stride())


def _on_all_threads(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any], results: list[Any]
) -> list[Any]:
    """Where calls run on more threads than this one, PyTorch may choose another kernel for
    convolutions in three dims, which lays its result out otherwise."""
    if str(op) not in _CONVOLUTIONS_3D or threads_of_calls in (None, torch.get_num_threads()):
        return results
    call = operator_arguments(op, args, kwargs)
    if isinstance(call["padding"], str) or args[0].dim() != 5:
        return results
    names = ("stride", "padding", "output_padding", "dilation")
    spread = {name: _three(call.get(name, 0)) for name in names}
    own = torch.get_num_threads()
    torch.set_num_threads(threads_of_calls)  # starts none
    try:
        backend = torch._C._select_conv_backend(
            call["input"],
            call["weight"],
            call["bias"],
            spread["stride"],
            spread["padding"],
            spread["dilation"],
            str(op).startswith("aten.conv_transpose"),
            spread["output_padding"],
            call["groups"],
            None,
        )
    finally:
        torch.set_num_threads(own)
    form = torch._C._conv_determine_backend_memory_format(call["input"], call["weight"], backend)
    return [torch.empty(each.shape, dtype=each.dtype, memory_format=form) for each in results]


_CONVOLUTIONS_3D = ("aten.conv3d.default", "aten.conv3d.padding", "aten.conv_transpose3d.input")


def operator_arguments(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """By name, with defaults."""
    declared = op._schema.arguments
    by_name = {each.name: each.default_value for each in declared if each.has_default_value()}
    return {**by_name, **dict(zip((each.name for each in declared), args)), **kwargs}


def _three(value: Any) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * 3 if len(values) == 1 else values


def _real(leaf: Any, fills: tuple[int, int]) -> Any:
    if isinstance(leaf, _Integer):
        return leaf.value
    if not isinstance(leaf, _Like):
        return leaf
    number = fills[0] if leaf.dtype.is_floating_point or leaf.dtype.is_complex else fills[1]
    reach = _reach(leaf.shape, leaf.strides)
    memory = torch.full([reach], number, dtype=leaf.dtype, device="cpu")
    # No view of it: some ops do not take views.
    tensor = torch.empty(0, dtype=leaf.dtype, device="cpu")
    return tensor.set_(memory.untyped_storage(), 0, leaf.shape, leaf.strides)


@contextlib.contextmanager
def _unnoticed() -> Iterator[None]:
    with torch.no_grad(), torch.autocast("cpu", enabled=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
