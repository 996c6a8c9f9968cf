# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of tensors: numbers, or expressions of `te.var`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.expressions import Axis, Binary, Call, Cast, Const, Expr, Select, Var, walk

_UNBOUNDED = 2**62  # more than any size
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "trunc": math.trunc,
}
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
}


class Size(int):
    """A size that is known. Besides an int's attributes it has those of TVM's constants: `value`,
    `dtype` and `astype`."""

    dtype = "int64"

    @property
    def value(self) -> int:
        return int(self)

    def astype(self, dtype: Any) -> Expr:
        return Const(int(self), self.dtype).astype(dtype)

    def __add__(self, other: Any) -> Any:
        return _sized(int.__add__(self, other))

    def __sub__(self, other: Any) -> Any:
        return _sized(int.__sub__(self, other))

    def __mul__(self, other: Any) -> Any:
        return _sized(int.__mul__(self, other))

    def __floordiv__(self, other: Any) -> Any:
        return _sized(int.__floordiv__(self, other))

    __radd__, __rmul__ = __add__, __mul__


def _sized(result: Any) -> Any:
    """The result of an int's arithmetic, as a Size again."""
    return Size(result) if isinstance(result, int) else result


def checked(shape: Any, of: str) -> tuple[Any, ...]:
    """A shape's sizes as numbers; expressions of variables are returned as they are.

    Raises: TEError.
    """
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_checked(size, of) for size in given)


def _checked(size: Any, of: str) -> Any:
    if isinstance(size, Expr) and dtypes.is_integer(size.dtype):
        if all(map(_is_of_sizes, walk(size))):
            return size if is_open(size) else _checked(number(size, {}), of)
        raise TEError(f"{of}: expected sizes of numbers and te.var, found `{size}`")
    try:
        found = operator.index(size)
    except TypeError:
        raise TEError(f"{of}: expected sizes that are integers, found {size!r}") from None
    if found < 0 or isinstance(size, bool):
        raise TEError(f"{of}: expected sizes of at least 0, found {size!r}")
    return Size(found)


def _is_of_sizes(node: Expr) -> bool:
    if isinstance(node, Binary):
        return node.op in _OPERATIONS
    if isinstance(node, Call):
        return node.name in _FUNCTIONS
    return isinstance(node, (Const, Var, Cast, Select))


def variables(size: Any) -> Iterator[Var]:
    """The variables that a size depends on."""
    for node in walk(size) if isinstance(size, Expr) else ():
        if isinstance(node, Var):
            yield node


def is_open(size: Any) -> bool:
    """Whether a size depends on variables."""
    return next(variables(size), None) is not None


def number(size: Any, values: Mapping[Var, int]) -> int:
    """The value of a size for given variables.

    Raises: TEError for a division by zero, and for an infinite value.
    """
    try:
        return int(_evaluated(size, values))
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise TEError(f"expected a size, found `{size}`: {error}") from None


def _evaluated(size: Any, values: Mapping[Var, int]) -> Any:
    if not isinstance(size, Expr):
        return size
    if isinstance(size, Const):
        return size.value
    if isinstance(size, Var):
        return values[size]
    if isinstance(size, Cast):
        value = _evaluated(size.value, values)
        return float(value) if dtypes.is_float(size.dtype) else math.trunc(value)
    if isinstance(size, Select):
        taken = size.then if _evaluated(size.condition, values) else size.otherwise
        return _evaluated(taken, values)
    operands = [_evaluated(each, values) for each in size.operands()]
    if isinstance(size, Call):
        return _FUNCTIONS[size.name](*operands)
    assert isinstance(size, Binary)
    return _OPERATIONS[size.op](*operands)


def affine(size: Any) -> tuple[int, Var, int] | None:
    """(a, v, b), if the size is a · v + b for one variable v and a is not 0; otherwise None."""
    found = set(variables(size))
    if len(found) != 1 or not all(map(_is_polynomial, walk(size))):
        return None
    (variable,) = found
    at = [number(size, {variable: value}) for value in (0, 1, 2)]
    slope = at[1] - at[0]
    return (slope, variable, at[0]) if slope and at[2] - at[1] == slope else None


def _is_polynomial(node: Expr) -> bool:
    if isinstance(node, Binary):
        return node.op in ("add", "sub", "mul")
    return isinstance(node, (Const, Var, Cast)) and dtypes.is_integer(node.dtype)


def bounded(axis: Axis) -> int:
    """The extent of an axis, for bounds of indices; greater than any size if it is not known."""
    return _UNBOUNDED if isinstance(axis.extent, Expr) else axis.extent


def alike(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two shapes are the same numbers, or the same expressions."""
    return len(a) == len(b) and all(
        x is y
        or (x == y if not (isinstance(x, Expr) or isinstance(y, Expr)) else repr(x) == repr(y))
        for x, y in zip(a, b)
    )
