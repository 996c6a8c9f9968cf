# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar expressions, from which an element of a tensor is computed.

Expressions are immutable trees. Operators make new ones, and so do comparisons, so that two
expressions are told apart by identity and not by `==`. The dtype of a node follows PyTorch's
promotion when the node is made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.values import neutral

if TYPE_CHECKING:
    from weft.te.reducers import Reducer

_GREATEST_POWER = 63  # for greater exponents int64 holds only the powers of -1, 0 and 1


class Expr:
    """A scalar of a dtype."""

    dtype: str

    def operands(self) -> tuple[Expr, ...]:
        return ()

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        """The same node on other operands, of the same dtypes."""
        return self

    def astype(self, dtype: Any) -> Expr:
        """The value converted, as PyTorch's `to` does."""
        name = dtypes.named(dtype)
        return self if name == self.dtype else Cast(self, name)

    def equal(self, other: Any) -> Expr:
        return compared("eq", self, other)

    def __bool__(self) -> bool:
        raise TEError(
            f"the truth of `{self}` is not known before the kernel runs: "
            "use te.if_then_else(condition, a, b), and te.all or te.any instead of `and` or `or`"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TEError(f"`{self}` is one element and cannot be iterated over")

    def __add__(self, other: Any) -> Expr:
        return arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return arithmetic("div", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return arithmetic("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return arithmetic("floordiv", other, self)

    def __mod__(self, other: Any) -> Expr:
        return arithmetic("mod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return arithmetic("mod", other, self)

    def __pow__(self, other: Any) -> Expr:
        return arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return arithmetic("pow", other, self)

    def __neg__(self) -> Expr:
        if dtypes.is_float(self.dtype):
            return arithmetic("mul", self, -1)  # negating 0.0 gives -0.0
        return arithmetic("sub", 0, self)

    def __abs__(self) -> Expr:
        if isinstance(self, Const) and self.dtype == "int64" and self.value > -(2**63):
            return Const(abs(self.value), self.dtype)
        return Call("abs", (self,), self.dtype)

    def __lt__(self, other: Any) -> Expr:
        return compared("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return compared("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compared("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compared("ge", self, other)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return compared("eq", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return compared("ne", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Expr:
        return bitwise("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return bitwise("or", self, other)

    def __xor__(self, other: Any) -> Expr:
        return bitwise("xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Expr:
        return shifted("shl", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return shifted("shl", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return shifted("shr", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return shifted("shr", other, self)

    def __invert__(self) -> Expr:
        if self.dtype == "bool":
            return Binary("xor", self, Const(True, "bool"), "bool")
        return bitwise("xor", self, Const(-1, self.dtype))

    def __repr__(self) -> str:
        from weft.te.formulas import formula

        return formula(self)


class Range(NamedTuple):
    """A range, like TVM's: its first value and its extent."""

    min: Any
    extent: Any


class Axis(Expr):
    """An index that runs from 0 to `extent` - 1.

    kind: "spatial" or "reduce". begin: a value that is added to the index where a reduction's
    expression is made. Extent and begin are ints, or expressions of variables. limit: for a range
    that depends on other axes, the number of its values that count.
    """

    dtype = "int64"
    limit: Expr | None = None

    def __init__(self, extent: Any, name: str, kind: str, begin: Any = 0) -> None:
        self.extent = extent
        self.name = name
        self.kind = kind
        self.begin = begin

    @property
    def var(self) -> Axis:
        """The axis itself; TVM's axes have a variable."""
        return self

    @property
    def dom(self) -> Range:
        return Range(self.begin, self.extent)


class Var(Expr):
    """A number that is not known before the kernel is called. A variable in a shape or range is a
    size, and each of its values has its own kernel; other variables are read when the kernel
    runs."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype


class Const(Expr):
    def __init__(self, value: bool | int | float, dtype: str) -> None:
        self.value = value
        self.dtype = dtype

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


class Binary(Expr):
    """A binary operation. op: add, sub, mul, div, floordiv, mod, pow, max, min, lt, le, gt, ge, eq,
    ne, and, or, xor, shl, shr. The operands of a comparison have one dtype, which may differ from
    the node's."""

    def __init__(self, op: str, lhs: Expr, rhs: Expr, dtype: str) -> None:
        self.op, self.lhs, self.rhs, self.dtype = op, lhs, rhs, dtype

    def operands(self) -> tuple[Expr, ...]:
        return self.lhs, self.rhs

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return Binary(self.op, *operands, self.dtype)


class Call(Expr):
    """An elementary function, called by its name in `functions`."""

    def __init__(self, name: str, args: tuple[Expr, ...], dtype: str) -> None:
        self.name, self.args, self.dtype = name, args, dtype

    def operands(self) -> tuple[Expr, ...]:
        return self.args

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return Call(self.name, operands, self.dtype)


class Cast(Expr):
    def __init__(self, value: Expr, dtype: str) -> None:
        self.value, self.dtype = value, dtype

    def operands(self) -> tuple[Expr, ...]:
        return (self.value,)

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return Cast(*operands, self.dtype)


class Select(Expr):
    """One of two values. Nothing is read that only the other value needs."""

    def __init__(self, condition: Expr, then: Expr, otherwise: Expr) -> None:
        self.condition, self.then, self.otherwise = condition, then, otherwise
        self.dtype = then.dtype

    def operands(self) -> tuple[Expr, ...]:
        return self.condition, self.then, self.otherwise

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return Select(*operands)


class Load(Expr):
    """An element of a tensor. Indices are integers."""

    def __init__(self, tensor: Any, indices: tuple[Expr, ...]) -> None:
        self.tensor, self.indices, self.dtype = tensor, indices, tensor.dtype

    def operands(self) -> tuple[Expr, ...]:
        return self.indices

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return Load(self.tensor, operands)


class Slot(Expr):
    """An operand of a reducer's combiner."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype


class Reduce(Expr):
    """A reduction, which must be the whole body of a tensor.

    kind: sum, prod, max or min of `value` over `axes`, or fold, which is by a `reducer` of the
    user's and gives its result number `component`. dtype: the one that it is computed in, by
    default PyTorch's.
    """

    def __init__(
        self,
        kind: str,
        value: Expr | tuple[Expr, ...],
        axes: tuple[Axis, ...],
        dtype: str | None = None,
        reducer: Reducer | None = None,
        component: int = 0,
    ) -> None:
        self.kind, self.axes, self.reducer, self.component = kind, axes, reducer, component
        self.values = value if isinstance(value, tuple) else (value,)
        self.dtype = dtype or dtypes.reduced(kind, self.values[component].dtype)
        if reducer is None:
            self.values = (self.values[0].astype(self.dtype),)

    @property
    def value(self) -> Expr:
        return self.values[self.component]

    @property
    def identities(self) -> tuple[Const, ...]:
        """For each of the values, the result of reducing no elements."""
        if self.reducer is not None:
            return self.reducer.identity
        return (Const(neutral(self.kind, self.dtype), self.dtype),)

    def over(self, values: tuple[Expr, ...], axes: tuple[Axis, ...]) -> Reduce:
        """The same reduction of other values over other axes."""
        return Reduce(self.kind, values, axes, self.dtype, self.reducer, self.component)

    def operands(self) -> tuple[Expr, ...]:
        return self.values

    def rebuilt(self, operands: tuple[Expr, ...]) -> Expr:
        return self.over(operands, self.axes)


def as_expr(value: Any, dtype: str | None = None) -> Expr:
    """`value` as an expression. A number gets the dtype `dtype`, or PyTorch's default for its kind.

    Raises: TEError for anything else, and for a number that an integer's dtype cannot hold.
    """
    if isinstance(value, Expr):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        value = value.item()
    for kind, usual in ((bool, "bool"), (int, "int64"), (float, "float32")):
        if isinstance(value, kind):
            return Const(_held(value, dtype or usual), dtype or usual)
    if hasattr(value, "refuse_arithmetic"):
        value.refuse_arithmetic()
    raise TEError(f"expected an expression or a number, found {value!r}")


def _held(number: bool | int | float, dtype: str) -> bool | int | float:
    if dtypes.is_integer(dtype):
        least, most = int(neutral("max", dtype)), int(neutral("min", dtype))
        if not least - 1 < number < most + 1:
            raise TEError(f"expected a number from {least} to {most} for {dtype}, found {number}")
    return number


def matched(a: Any, b: Any, wraps: bool = True) -> tuple[Expr, Expr]:
    """Both operands, converted to the dtype that PyTorch promotes them to. wraps: whether a number
    that an integer's dtype cannot hold wraps around, as in PyTorch's arithmetic; otherwise it is an
    error."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        a = as_expr(a)
    if isinstance(a, Expr) and isinstance(b, Expr):
        dtype = dtypes.promoted(a.dtype, b.dtype)
        return a.astype(dtype), b.astype(dtype)
    if isinstance(a, Expr):
        number = as_expr(b)
        dtype = dtypes.with_number(a.dtype, number.value)
        value = number.value if wraps else _held(number.value, dtype)
        return a.astype(dtype), Const(value, dtype)
    rhs, lhs = matched(b, a, wraps)
    return lhs, rhs


def arithmetic(op: str, a: Any, b: Any) -> Expr:
    lhs, rhs = matched(a, b, wraps=op not in ("max", "min"))
    dtype = lhs.dtype
    if dtype == "bool" and op not in ("max", "min"):
        if op in ("sub", "pow", "floordiv", "mod"):
            raise TEError(f"expected numbers in `{lhs} {op} {rhs}`, found two bools")
        if op in ("add", "mul"):
            return Binary("or" if op == "add" else "and", lhs, rhs, "bool")
    if op == "div" and not dtypes.is_float(dtype):
        lhs, rhs, dtype = lhs.astype("float32"), rhs.astype("float32"), "float32"
    if op == "pow":
        product = _power(lhs, rhs)
        if product is not None:
            return product
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        folded = _folded(op, lhs, rhs)
        if folded is not None:
            return folded
    return Binary(op, lhs, rhs, dtype)


def _power(base: Expr, exponent: Expr) -> Expr | None:
    """A square, or a constant power of integers, as products; None if a function has to compute it.

    Raises: TEError for integers with an exponent that is not a constant, or negative.
    """
    number = exponent.value if isinstance(exponent, Const) else None
    if dtypes.is_float(base.dtype):
        return Binary("mul", base, base, base.dtype) if number == 2 else None
    if number is None or not 0 <= number <= _GREATEST_POWER:
        raise TEError(
            f"expected an exponent from 0 to {_GREATEST_POWER} in `{base} ** {exponent}` of "
            f"{base.dtype}, found `{exponent}`: convert with te.cast"
        )
    result: Expr = Const(1, base.dtype)
    for count in range(int(number)):
        result = Binary("mul", result, base, base.dtype) if count else base
    return result


def _folded(op: str, lhs: Const, rhs: Const) -> Const | None:
    """The value of integer arithmetic on constants, such as `k // 2` in an index."""
    operations: dict[str, Callable[[int, int], int]] = {
        "add": int.__add__,
        "sub": int.__sub__,
        "mul": int.__mul__,
        "floordiv": int.__floordiv__,
        "mod": int.__mod__,
    }
    if (
        lhs.dtype != "int64"
        or op not in operations
        or (op in ("floordiv", "mod") and not rhs.value)
    ):
        return None
    value = operations[op](int(lhs.value), int(rhs.value))
    return Const(value, "int64") if -(2**63) <= value < 2**63 else None


def compared(op: str, a: Any, b: Any) -> Expr:
    lhs, rhs = matched(a, b)
    if lhs is rhs and isinstance(lhs, Var) and not dtypes.is_float(lhs.dtype):
        return Const(op in ("eq", "le", "ge"), "bool")
    if isinstance(lhs, Const) and isinstance(rhs, Const) and not dtypes.is_float(lhs.dtype):
        return Const(bool(getattr(operator, op)(lhs.value, rhs.value)), "bool")
    return Binary(op, lhs, rhs, "bool")


def selected(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """One of two values of one dtype; that value itself if the condition is a constant."""
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    return Select(condition, then, otherwise)


def bitwise(op: str, a: Any, b: Any) -> Expr:
    lhs, rhs = matched(a, b)
    if dtypes.is_float(lhs.dtype):
        raise TEError(f"expected integers or bools in `{lhs} {op} {rhs}`, found {lhs.dtype}")
    return Binary(op, lhs, rhs, lhs.dtype)


def shifted(op: str, a: Any, b: Any) -> Expr:
    """a shifted left or right by b bits, as in NumPy: right shifts keep the sign, and a shift by
    all bits or more, or by a negative number, gives 0, or -1 for the right shift of a negative
    number."""
    lhs, rhs = matched(a, b)
    if not dtypes.is_integer(lhs.dtype):
        sign = "<<" if op == "shl" else ">>"
        raise TEError(f"expected integers in `{lhs} {sign} {rhs}`, found {lhs.dtype}")
    return Binary(op, lhs, rhs, lhs.dtype)


def walk(expr: Expr) -> Iterator[Expr]:
    """All nodes, operands before the nodes that use them."""
    for operand in expr.operands():
        yield from walk(operand)
    yield expr


def transformed(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """`expr` with each node, from the root on, replaced by `change(node)` where that is not
    None."""
    changed = change(expr)
    if changed is not None:
        return changed
    operands = expr.operands()
    fresh = tuple(transformed(each, change) for each in operands)
    same = all(a is b for a, b in zip(operands, fresh))
    return expr if same else expr.rebuilt(fresh)


def substituted(expr: Expr, values: dict[Axis, Expr]) -> Expr:
    return transformed(expr, lambda node: values.get(node) if isinstance(node, Axis) else None)
