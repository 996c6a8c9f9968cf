# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other values in the place of one: equal ones, others of its type, others of another type."""

from __future__ import annotations

import contextvars
import copy
import enum
import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch.nn.parameter import is_lazy

Variant = tuple[str, Callable[[], Any]]


# What such objects hold no attribute tells.
_HELD_IN_C: dict[type, Any] = {
    type(each): each
    for each in (
        operator.itemgetter(-1),
        operator.attrgetter("shape"),
        operator.methodcaller("neg"),
        numpy.negative,
        torch.ops.aten.neg,
        torch.ops.aten.neg.default,
        contextvars.ContextVar("another", default=7.0),
        int | bytes,
    )
}


class Marked(torch.Tensor):
    """A subclass that does what a tensor does."""


class Tripling(torch.nn.Module):
    """In the place of a layer."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] * 3


def variants(value: Any) -> Iterator[Variant]:
    """Deterministic for equal values, so that two worlds can be changed in the same way."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        yield from _of_tensor(value)
    elif isinstance(value, enum.Enum):
        for other in kind:
            if other is not value:
                yield f"member {other.name}", lambda other=other: other
        yield "None", lambda: None
    elif kind in _SCALARS:
        yield from _SCALARS[kind](value)
    elif isinstance(value, (numpy.generic, numpy.ndarray)):
        yield from _of_array(value)
    elif isinstance(value, (list, dict, set, frozenset, deque, tuple)):
        yield from _of_container(value)
    elif isinstance(value, torch.nn.Module):
        yield "a copy", lambda: copy.deepcopy(value)
        yield "another layer", Tripling
        yield "nothing", lambda: None
    elif isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        yield from _of_function(value)
    elif isinstance(value, functools.partial):
        yield "an equal partial", lambda: kind(value.func, *value.args, **value.keywords)
        yield "its function", lambda: value.func
    elif isinstance(value, (staticmethod, classmethod)):
        yield "doubled", lambda: kind(_doubled(value.__func__))
    elif isinstance(value, property):
        yield "a constant", lambda: property(lambda self: 5.0)
        yield "no property", lambda: 7.0
    elif isinstance(value, type):
        yield "a subclass", lambda: type(value)(value.__name__, (value,), {})
        yield "a function", lambda: lambda *args, **kwargs: 5.0
    elif isinstance(value, torch.dtype):
        yield "float64", lambda: torch.float64
        yield "int32", lambda: torch.int32
    elif isinstance(value, slice):
        yield "another slice", lambda: slice(0, 2)
    elif isinstance(value, range):
        yield "another range", lambda: range(len(value) + 1)
    elif isinstance(value, types.ModuleType):
        yield "nothing", lambda: None
    elif kind in _HELD_IN_C:
        yield "another of its kind", lambda: _HELD_IN_C[kind]
        yield "None", lambda: None
    else:
        yield "a copy", lambda: copy.copy(value)
        yield "None", lambda: None
        yield "a number", lambda: 5.0


def _of_none(value: None) -> Iterator[Variant]:
    yield "0", lambda: 0
    yield "5.0", lambda: 5.0
    yield "a tensor", lambda: torch.full((3,), 2.0)
    yield "text", lambda: "text"


def _of_bool(value: bool) -> Iterator[Variant]:
    yield "negated", lambda: not value
    yield "an integer", lambda: int(value)
    yield "None", lambda: None


def _of_int(value: int) -> Iterator[Variant]:
    yield "one more", lambda: value + 1
    yield "zero", lambda: 0
    yield "negated", lambda: -value
    yield "an equal float", lambda: float(value)
    yield "a bool", lambda: bool(value)
    yield "an equal NumPy integer", lambda: numpy.int64(value)
    yield "a tensor", lambda: torch.tensor(value)
    yield "None", lambda: None
    yield "text", lambda: str(value)


def _of_float(value: float) -> Iterator[Variant]:
    yield "one more", lambda: value + 1
    yield "negated", lambda: -value
    yield "an equal float", lambda: float.fromhex(value.hex())
    yield "negative zero", lambda: -0.0
    yield "nan", lambda: float("nan")
    yield "an integer", lambda: int(value) if value == value else 0
    yield "an equal NumPy float", lambda: numpy.float64(value)
    yield "a tensor", lambda: torch.tensor(value)
    yield "a bool", lambda: True
    yield "None", lambda: None


def _of_complex(value: complex) -> Iterator[Variant]:
    yield "another", lambda: value + 1j
    yield "a float", lambda: value.real


def _of_text(value: str) -> Iterator[Variant]:
    yield "longer", lambda: value + "_"
    yield "empty", lambda: ""
    yield "an equal one", lambda: "".join(list(value))
    yield "reversed", lambda: value[::-1]
    yield "None", lambda: None


def _of_bytes(value: bytes) -> Iterator[Variant]:
    yield "longer", lambda: value + b"_"


_SCALARS: dict[type, Callable[[Any], Iterator[Variant]]] = {
    type(None): _of_none,
    bool: _of_bool,
    int: _of_int,
    float: _of_float,
    complex: _of_complex,
    str: _of_text,
    bytes: _of_bytes,
}


def _of_tensor(value: torch.Tensor) -> Iterator[Variant]:
    if is_lazy(value):
        return
    plain = value.detach()
    strided = value.layout == torch.strided
    yield "an equal tensor", lambda: plain.clone()
    yield "None", lambda: None
    yield "a number", lambda: 2.0
    yield "a list", lambda: plain.tolist()
    if not strided or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return
    yield "other values", lambda: ~plain if value.dtype == torch.bool else plain + 1
    yield "float64", lambda: plain.double() if not value.is_complex() else plain
    yield "int64", lambda: plain.long() if not value.is_complex() else plain
    yield "a dim more", lambda: plain.unsqueeze(0)
    yield "a copy with an attribute", lambda: _with_attribute(plain.clone())
    yield "a subclass", lambda: plain.clone().as_subclass(Marked)
    yield "an array", lambda: plain.clone().numpy() if not value.is_conj() else plain
    if value.is_floating_point():
        yield "nan", lambda: plain * float("nan")
        yield "with a gradient", lambda: plain.clone().requires_grad_()
        yield "a parameter", lambda: torch.nn.Parameter(plain.clone())
    if value.dim():
        yield "twice as long", lambda: torch.cat([plain, plain])
        yield "empty", lambda: plain[:0]
        yield "every other element", lambda: _every_other(plain)
        yield "at an offset", lambda: _at_an_offset(plain)
    if value.dim() > 1:
        yield "transposed in memory", lambda: plain.mT.contiguous().mT
    if value.is_complex():
        yield "conjugated", lambda: plain.conj()
        yield "negated lazily", lambda: torch._neg_view(plain)


def _with_attribute(tensor: torch.Tensor) -> torch.Tensor:
    tensor.scale = 5.0
    return tensor


def _every_other(tensor: torch.Tensor) -> torch.Tensor:
    """Equal, with gaps in its memory."""
    return torch.stack([tensor, tensor], dim=-1)[..., 0]


def _at_an_offset(tensor: torch.Tensor) -> torch.Tensor:
    """Equal, not at the beginning of its memory."""
    memory = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)
    memory[1:] = tensor.flatten()
    return memory[1:].view(tensor.shape)


def _of_array(value: Any) -> Iterator[Variant]:
    yield "an equal copy", lambda: value.copy()
    yield "None", lambda: None
    if value.dtype.kind in "fiu":
        yield "other values", lambda: value + 1
        yield "float64", lambda: value.astype(numpy.float64)
        yield "int32", lambda: value.astype(numpy.int32)


def _of_container(value: Any) -> Iterator[Variant]:
    kind = type(value)
    yield "an equal copy", lambda: copy.copy(value)
    yield "None", lambda: None
    if isinstance(value, dict):
        yield "a plain dict", lambda: dict(value)
        yield "in another order", lambda: _dict_like(value, reversed(value.items()))
        yield "with another entry", lambda: _dict_like(value, [*value.items(), ("added", 1.0)])
        yield "empty", lambda: _dict_like(value, [])
    elif isinstance(value, (set, frozenset)):
        yield "with another entry", lambda: kind([*value, "added"])
        yield "empty", lambda: kind()
        yield "a list", lambda: sorted(value, key=repr)
    elif hasattr(value, "_fields"):  # a namedtuple
        yield "a tuple", lambda: tuple(value)
        yield "reversed", lambda: kind(*reversed(value))
    else:
        other = tuple if isinstance(value, list) else list
        yield "reversed", lambda: kind(reversed(value))
        yield "longer", lambda: kind([*value, *list(value)[:1]])
        yield "shorter", lambda: kind(list(value)[:-1])
        yield f"a {other.__name__}", lambda: other(value)


def _dict_like(value: dict, items: Any) -> dict:
    made = copy.copy(value)
    made.clear()
    made.update(items)
    return made


def _of_function(value: Any) -> Iterator[Variant]:
    yield "doubled", lambda: _doubled(value)
    if isinstance(value, types.FunctionType):
        yield "an equal function", lambda: _copied(value)
    yield "None", lambda: None


def _copied(function: types.FunctionType) -> types.FunctionType:
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    vars(made).update(vars(function))
    return made


def _doubled(function: Callable) -> Callable:
    def doubled(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result * 2 if isinstance(result, (torch.Tensor, float)) else result

    return doubled
