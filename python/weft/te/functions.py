# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of expressions: reductions, conditionals, elementary functions, casts."""

from __future__ import annotations

import itertools
from typing import Any

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.expressions import (
    Axis,
    Call,
    Expr,
    Reduce,
    Var,
    arithmetic,
    as_expr,
    bitwise,
    compared,
    matched,
    selected,
    substituted,
)

# These are functions of MLIR's dialect `math`, and have the same values for all float types.
ELEMENTARY = (
    "acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 expm1 "
    "floor log log10 log1p log2 round rsqrt sin sinh sqrt tan tanh trunc"
).split()


_variables = itertools.count()


def reduced_axes(kind: str, axis: Any, init: Any) -> tuple[Axis, ...]:
    """The axes of a reduction. Raises: TEError for anything else, and for a first value."""
    if init is not None:
        raise TEError(
            f"te.{kind}: expected no init: combine the reduced tensor with it in another compute"
        )
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for each in axes:
        if not isinstance(each, Axis) or each.kind != "reduce":
            raise TEError(f"te.{kind}: expected axes made by te.reduce_axis, found {each!r}")
    if not axes:
        raise TEError(f"te.{kind}: expected at least one axis, found none")
    if len(set(map(id, axes))) != len(axes):
        raise TEError(f"te.{kind}: expected different axes, found one twice")
    return axes


def from_zero(expr: Any, axes: tuple[Axis, ...]) -> Expr:
    """The expression in terms of axes that count from 0."""
    moved = {
        each: arithmetic("add", each, each.begin)
        for each in axes
        if isinstance(each.begin, Expr) or each.begin
    }
    return substituted(as_expr(expr), moved)


def counting(axes: tuple[Axis, ...], where: Any) -> Expr | None:
    """The condition under which terms count, including the limits of ranges that depend on other
    axes; None if all terms count."""
    limits = [compared("lt", each, each.limit) for each in axes if each.limit is not None]
    given = [] if where is None else [from_zero(where, axes)]
    return all(*limits, *given) if limits or given else None


def _reduced(
    kind: str, expr: Any, axis: Any, dtype: Any = None, where: Any = None, init: Any = None
) -> Expr:
    axes = reduced_axes(kind, axis, init)
    value = from_zero(expr, axes)
    made = Reduce(kind, value, axes, dtypes.named(dtype) if dtype is not None else None)
    condition = counting(axes, where)
    if condition is None:
        return made
    return made.over((if_then_else(condition, made.value, made.identities[0]),), axes)


def sum(expr: Any, axis: Any, dtype: Any = None, where: Any = None, init: Any = None) -> Expr:
    """Σ of `expr` over the axes. Without a dtype, integers are summed in int64; half-precision
    types are summed in float32. where: a condition on the terms that count; nothing is read for the
    others."""
    return _reduced("sum", expr, axis, dtype, where, init)


def prod(expr: Any, axis: Any, dtype: Any = None, where: Any = None, init: Any = None) -> Expr:
    return _reduced("prod", expr, axis, dtype, where, init)


def max(expr: Any, axis: Any = None, where: Any = None, init: Any = None) -> Expr:
    """The maximum over axes, or of two expressions as `te.max(a, b)`. NaN if an operand is NaN."""
    return _either("max", expr, axis, where, init)


def min(expr: Any, axis: Any = None, where: Any = None, init: Any = None) -> Expr:
    return _either("min", expr, axis, where, init)


def _either(kind: str, expr: Any, axis: Any, where: Any, init: Any) -> Expr:
    first = axis[0] if isinstance(axis, (tuple, list)) and axis else axis
    if (isinstance(first, Axis) and first.kind == "reduce") or where is not None:
        return _reduced(kind, expr, axis, None, where, init)
    if axis is None or isinstance(axis, (tuple, list)):
        raise TEError(f"te.{kind}: expected axis=…, or two expressions, found {axis!r}")
    return arithmetic(kind, expr, axis)


def maximum(a: Any, b: Any) -> Expr:
    return arithmetic("max", a, b)


def minimum(a: Any, b: Any) -> Expr:
    return arithmetic("min", a, b)


def if_then_else(condition: Any, then: Any, otherwise: Any) -> Expr:
    """`then` where the condition holds, else `otherwise`. Elements that only the other one reads
    need not exist, as for padding."""
    test = as_expr(condition)
    if test.dtype != "bool":
        raise TEError(f"te.if_then_else: expected a condition, found `{test}` of {test.dtype}")
    return selected(test, *matched(then, otherwise, wraps=False))


select = where = if_then_else


def all(*conditions: Any) -> Expr:
    return _joined("and", conditions)


def any(*conditions: Any) -> Expr:
    return _joined("or", conditions)


def _joined(op: str, conditions: tuple[Any, ...]) -> Expr:
    if not conditions:
        raise TEError("expected at least one condition, found none")
    result = as_expr(conditions[0])
    for each in conditions[1:]:
        result = bitwise(op, result, each)
    if result.dtype != "bool":
        raise TEError(f"expected conditions, found `{result}` of {result.dtype}")
    return result


def var(name: str | None = None, dtype: Any = "int64") -> Var:
    """A number that the caller gives. In a shape or range it is a size, which follows from the
    arguments' shapes, and each size has its own code; elsewhere it is an argument of the function.

    Raises: TEError.
    """
    kind = dtypes.named(dtype)
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise TEError(f"te.var: expected a name that is an identifier, found {name!r}")
    return Var(name or f"var{next(_variables)}", kind)


size_var = var


def const(value: bool | int | float, dtype: Any = None) -> Expr:
    return as_expr(value, dtypes.named(dtype) if dtype is not None else None)


def cast(expr: Any, dtype: Any) -> Expr:
    """`expr` converted to a dtype; floats are truncated to integers."""
    return as_expr(expr).astype(dtype)


def abs(expr: Any) -> Expr:
    return as_expr(expr).__abs__()


def power(base: Any, exponent: Any) -> Expr:
    return arithmetic("pow", base, exponent)


def floordiv(a: Any, b: Any) -> Expr:
    return arithmetic("floordiv", a, b)


def floormod(a: Any, b: Any) -> Expr:
    return arithmetic("mod", a, b)


def sigmoid(expr: Any) -> Expr:
    """1 / (1 + exp(-x)), with a derivative that is finite even where exp(-x) is infinite."""
    return elementary("sigmoid", expr)


def elementary(name: str, expr: Any) -> Expr:
    """A function of `ELEMENTARY`, or sigmoid, of a float. Integers are converted to float32."""
    x = as_expr(expr)
    if not dtypes.is_float(x.dtype):
        x = x.astype("float32")
    return Call(name, (x,), x.dtype)


def _define(name: str) -> Any:
    def function(expr: Any) -> Expr:
        return elementary(name, expr)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of a float, elementwise, as PyTorch's `torch.{name}`."
    return function


acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, exp, exp2, expm1 = map(
    _define, ELEMENTARY[:13]
)
floor, log, log10, log1p, log2, round, rsqrt, sin, sinh, sqrt, tan, tanh, trunc = map(
    _define, ELEMENTARY[13:]
)
