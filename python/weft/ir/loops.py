# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop-level bodies of ops, written in Python: tensors as functions of their indices.

    def matmul(op, x, w):
        k = loops.reduce_axis(x.shape[1])
        return loops.compute(op.shape, lambda i, j: loops.sum(x[i, k] * w[k, j], k))

`weft.ir.lower_ops` makes linalg of it. Computations on f32, f64, i32 and i64.

Source: Chen et al., "TVM: an automated end-to-end optimizing compiler for deep learning", OSDI
2018, for tensor expressions.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft import errors

SUPPORTED = ("f32", "f64", "i32", "i64")
FLOATS = ("f32", "f64")


class Index:
    """A place along an axis: a sum of axes times numbers, and a number."""

    def __init__(self, terms: dict[Axis, int], offset: int = 0) -> None:
        self.terms = terms
        self.offset = offset

    def __add__(self, other: Any) -> Index:
        other = index_of(other)
        terms = dict(self.terms)
        for axis, factor in other.terms.items():
            terms[axis] = terms.get(axis, 0) + factor
        return Index(terms, self.offset + other.offset)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        if not isinstance(factor, int):
            raise errors.IRError(f"expected a whole number times an axis, found {factor!r}")
        return Index({axis: each * factor for axis, each in self.terms.items()}, 0) + (
            self.offset * factor
        )

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Index:
        return self + index_of(other) * -1


class Axis(Index):
    """A loop: of the elements of a result, or, by `reduce_axis`, of a reduction."""

    def __init__(self, size: int, reduces: bool) -> None:
        super().__init__({self: 1})
        self.size = size
        self.reduces = reduces


def index_of(value: Any) -> Index:
    """Raises: errors.IRError for what is no index."""
    if isinstance(value, Index):
        return value
    if isinstance(value, int):
        return Index({}, value)
    raise errors.IRError(f"expected axes and whole numbers as indices, found {value!r}")


def reduce_axis(size: int) -> Axis:
    """An axis that `sum`, `max` or `min` goes along."""
    return Axis(size, True)


class Scalar:
    """An element that is computed. dtype: "f32", …"""

    dtype: str

    def __add__(self, other: Any) -> Scalar:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return _binary("div", other, self)

    def __neg__(self) -> Scalar:
        return _binary("mul", self, -1)


@dataclass(frozen=True, eq=False)
class Number(Scalar):
    value: float
    dtype: str


@dataclass(frozen=True, eq=False)
class Load(Scalar):
    tensor: Tensor
    index: tuple[Index, ...]

    @property
    def dtype(self) -> str:
        return self.tensor.dtype


@dataclass(frozen=True, eq=False)
class Arithmetic(Scalar):
    """name: of an op of MLIR's, such as "arith.addf"."""

    name: str
    operands: tuple[Scalar, ...]

    @property
    def dtype(self) -> str:
        return self.operands[0].dtype


@dataclass(frozen=True, eq=False)
class Reduction(Scalar):
    """kind: "add", "max" or "min"."""

    kind: str
    body: Scalar
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> str:
        return self.body.dtype


class Tensor:
    """What a body reads: `x[i, j]`. An operand of the op, or what `compute` made."""

    def __init__(
        self, shape: Sequence[int], dtype: str, axes: Sequence[Axis] = (), body: Any = None
    ) -> None:
        if dtype not in SUPPORTED:
            raise errors.IRError(f"expected a dtype among {', '.join(SUPPORTED)}; found {dtype!r}")
        self.shape = tuple(shape)
        self.dtype = dtype
        self.axes = tuple(axes)
        self.body = body  # None of an operand

    def __getitem__(self, index: Any) -> Load:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            raise errors.IRError(
                f"expected {len(self.shape)} indices for shape {list(self.shape)}, "
                f"found {len(index)}"
            )
        return Load(self, tuple(map(index_of, index)))


def compute(shape: Sequence[int], body: Callable[..., Scalar]) -> Tensor:
    """The tensor whose element at `i, j, …` is `body(i, j, …)`.

    Raises: errors.IRError, if `body` gives no element.
    """
    shape = tuple(shape)
    axes = [Axis(size, False) for size in shape]
    element = body(*axes)
    if not isinstance(element, Scalar):
        raise errors.IRError(f"expected an element such as x[i, j] + 1, found {element!r}")
    return Tensor(shape, element.dtype, axes, element)


def sum(body: Scalar, *axes: Axis) -> Reduction:
    return _reduction("add", body, axes)


def max(body: Any, *rest: Any) -> Scalar:
    """Along axes, or the larger of two elements."""
    return _extreme("max", body, rest)


def min(body: Any, *rest: Any) -> Scalar:
    """Along axes, or the smaller of two elements."""
    return _extreme("min", body, rest)


def _extreme(kind: str, body: Any, rest: tuple[Any, ...]) -> Scalar:
    if rest and builtins.all(isinstance(each, Axis) for each in rest):
        return _reduction(kind, body, rest)
    if len(rest) != 1:
        raise errors.IRError(f"{kind}: expected axes, or one more element, found {rest!r}")
    return _binary(kind, body, rest[0])


def _reduction(kind: str, body: Scalar, axes: tuple[Axis, ...]) -> Reduction:
    wrong = [each for each in axes if not (isinstance(each, Axis) and each.reduces)]
    if wrong or not axes:
        raise errors.IRError(f"expected axes of reduce_axis, found {list(axes)}")
    return Reduction(kind, body, axes)


def _function(name: str) -> Callable[[Scalar], Scalar]:
    def apply(operand: Scalar) -> Scalar:
        if operand.dtype not in FLOATS:
            raise errors.IRError(f"{name}: expected a float, found {operand.dtype}")
        return Arithmetic(f"math.{name}", (operand,))

    apply.__name__ = name
    apply.__doc__ = f"`math.{name}` of an element."
    return apply


exp, log, sqrt, tanh, erf = map(_function, ("exp", "log", "sqrt", "tanh", "erf"))

_NAMES = {
    ("max", True): "arith.maximumf",
    ("min", True): "arith.minimumf",
    ("max", False): "arith.maxsi",
    ("min", False): "arith.minsi",
    ("div", False): "arith.divsi",
}


def arithmetic_name(kind: str, dtype: str) -> str:
    is_float = dtype in FLOATS
    return _NAMES.get((kind, is_float), f"arith.{kind}{'f' if is_float else 'i'}")


def _binary(kind: str, lhs: Any, rhs: Any) -> Scalar:
    dtype = next(each.dtype for each in (lhs, rhs) if isinstance(each, Scalar))
    operands = tuple(
        each if isinstance(each, Scalar) else Number(each, dtype) for each in (lhs, rhs)
    )
    if operands[0].dtype != operands[1].dtype:
        raise errors.IRError(f"{kind}: expected one dtype, found {[o.dtype for o in operands]}")
    if any(isinstance(each, Reduction) for each in operands):
        raise errors.IRError(
            f"{kind}: a reduction is a whole element: give it a compute of its own, and read that"
        )
    return Arithmetic(arithmetic_name(kind, dtype), operands)
