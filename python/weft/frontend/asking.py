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
import itertools
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch

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
_ANSWER = "weft_answer"  # among a node's facts: for which node and value, and the answer
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

# How arguments are nested: None of a leaf, of a list what stands in it.
_Nesting = tuple["_Nesting", ...] | None


@dataclass(frozen=True)
class _Form:
    """Positional arguments, and others by name."""

    positional: tuple[_Nesting, ...]
    named: tuple[tuple[str, _Nesting], ...]

    def arguments(self, leaves: Iterator[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Those whose leaves these are."""
        positional = [_nested(nesting, leaves) for nesting in self.positional]
        return positional, {name: _nested(nesting, leaves) for name, nesting in self.named}


def _nested(nesting: _Nesting, leaves: Iterator[Any]) -> Any:
    return next(leaves) if nesting is None else [_nested(each, leaves) for each in nesting]


@dataclass(frozen=True)
class _Schema:
    """What of an op's own decides how it is asked. integers: the names of its arguments that are
    integers."""

    is_asked: bool
    is_private: bool
    is_norm: bool
    names: tuple[str, ...]
    integers: frozenset[str]


@functools.cache
def _schema(op: torch._ops.OpOverload) -> _Schema:
    arguments = op._schema.arguments
    integers = (a.name for a in arguments if _IS_INTEGER.search(str(a.real_type)))
    return _Schema(
        is_asked=op.namespace == "aten" and not is_view(op),
        is_private=_is_private(op),
        is_norm=str(op) in _NORMS,
        names=tuple(argument.name for argument in arguments),
        integers=frozenset(integers),
    )


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
    inputs = node.all_input_nodes
    if not all("val" in each.meta for each in (node, *inputs)):
        return _NO_ANSWER
    if not lying:
        # Facts are copied with nodes, and values change where numbers are found.
        asked = (node, node.meta["val"], *(each.meta["val"] for each in inputs))
        known, answer = node.meta.get(_ANSWER, ((), _NO_ANSWER))
        if len(known) == len(asked) and all(map(operator.is_, known, asked)):
            return answer

    def value(each: torch.fx.Node) -> Any:
        fake = each.meta["val"]
        return _like(fake, lying[each]) if each in lying else fake

    try:
        given = torch.fx.node.map_arg((node.args, node.kwargs), value)
    except _NotAsked:
        return _NO_ANSWER
    answer = _ask(node.target, *given, flatten_results(node.meta["val"]))
    if not lying:
        node.meta[_ANSWER] = asked, answer
    return answer


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
    schema = _schema(op)
    if not schema.is_asked:
        return _NO_ANSWER
    try:
        leaves, form = _described(schema, args, kwargs)
        shapes = (map(_known, each.shape) for each in results if isinstance(each, torch.Tensor))
        made = sum(map(math.prod, shapes))
    except _NotAsked:
        return _NO_ANSWER
    return _answer(op, leaves, tuple(map(type, leaves)), form, made)


@functools.lru_cache(maxsize=4096)
def _answer(
    op: torch._ops.OpOverload, leaves: tuple, types: tuple[type, ...], form: _Form, made: int
) -> Answer:
    """types: of the leaves, as 1, 1.0 and True are equal. made: elements of the results."""
    schema, tensors = _schema(op), [leaf for leaf in leaves if isinstance(leaf, _Like)]
    total = sum(tensor.size for tensor in tensors) + made
    if schema.is_norm and any(t.shape != tensors[0].shape[1:2] for t in tensors[1:]):
        return _NO_ANSWER
    if schema.is_private and not schema.is_norm and (len(tensors) != 1 or total > _MOST_ELEMENTS):
        return _NO_ANSWER
    if total <= _MOST_ELEMENTS:
        return _asked(op, leaves, form)
    return _asked_small(op, leaves, form) if _fit(tensors) else _NO_ANSWER


def _asked_small(op: torch._ops.OpOverload, leaves: tuple, form: _Form) -> Answer:
    for cap in _CAPS:
        small = tuple(_cut(leaf, cap) for leaf in leaves)
        if sum(leaf.size for leaf in small if isinstance(leaf, _Like)) > _MOST_ELEMENTS:
            return _NO_ANSWER
        answer = _asked(op, small, form)
        if answer.refusal is None:
            return answer
        others = (tuple(_retyped(leaf, kind) for leaf in small) for kind in _OTHER_TYPES)
        if any(_asked(op, other, form).refusal is None for other in others):
            return answer  # it is the types that are refused, not the small sizes
    return _NO_ANSWER


def _fit(tensors: list[_Like]) -> bool:
    """Whether sizes that are cut down fit each other still. Of no tensors, scalars may say how
    large the result is."""
    for sizes in itertools.zip_longest(*(reversed(each.shape) for each in tensors), fillvalue=1):
        if len({*sizes} - {1}) > 1:
            return False
    return bool(tensors)


def _is_private(op: torch._ops.OpOverload) -> bool:
    """Python's operators are not: `aten::__and__`."""
    return op._schema.name.startswith("aten::_") and not op._schema.name.startswith("aten::__")


def is_view(op: torch._ops.OpOverload) -> bool:
    return any(
        result.alias_info and not result.alias_info.is_write for result in op._schema.returns
    )


def _described(
    schema: _Schema, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], _Form]:
    """Raises: _NotAsked."""
    leaves: list[Any] = []

    def nesting(given: Any, is_integer: bool) -> _Nesting:
        if isinstance(given, (list, tuple)):
            return tuple(nesting(each, is_integer) for each in given)
        leaves.append(_describe(given, is_integer))
        return None

    positional = [nesting(a, name in schema.integers) for a, name in zip(args, schema.names)]
    named = [(name, nesting(a, name in schema.integers)) for name, a in kwargs.items()]
    return tuple(leaves), _Form(tuple(positional), tuple(named))


def _describe(value: Any, is_integer: bool) -> Any:
    """A leaf. Raises: _NotAsked."""
    if isinstance(value, (_Like, torch.Tensor)):
        return value if isinstance(value, _Like) else _like(value, value.stride())
    if isinstance(value, torch.device) and value.type != "cpu":
        raise _NotAsked
    if isinstance(value, int) and not isinstance(value, bool) and is_integer:
        return _Integer(value)
    return _known(value)


def _like(value: torch.Tensor, strides: Sequence[int]) -> _Like:
    """Raises: _NotAsked."""
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        raise _NotAsked
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


def _asked(op: torch._ops.OpOverload, leaves: tuple, form: _Form) -> Answer:
    return _asked_once(op, leaves, tuple(map(type, leaves)), form)


@functools.lru_cache(maxsize=4096)
def _asked_once(
    op: torch._ops.OpOverload, leaves: tuple, types: tuple[type, ...], form: _Form
) -> Answer:
    refusal = None
    for fills in _FILLS:
        args, kwargs = form.arguments(_real(leaf, fills) for leaf in leaves)
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
