# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that TVM's te has beside those of `functions`, for expressions written for it."""

from __future__ import annotations

from typing import Any

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.expressions import Const, Expr, arithmetic, as_expr, compared, matched
from weft.te.functions import abs, floordiv, floormod, if_then_else, power, round
from weft.te.values import neutral

pow, fabs, nearbyint = power, abs, round
indexdiv, indexmod = floordiv, floormod


def add(a: Any, b: Any) -> Expr:
    return arithmetic("add", a, b)


def subtract(a: Any, b: Any) -> Expr:
    return arithmetic("sub", a, b)


def multiply(a: Any, b: Any) -> Expr:
    return arithmetic("mul", a, b)


def divide(a: Any, b: Any) -> Expr:
    return arithmetic("div", a, b)


def truncdiv(a: Any, b: Any) -> Expr:
    """Of integers, towards zero."""
    x, y = _integers("truncdiv", a, b)
    quotient = floordiv(abs(x), abs(y))
    return if_then_else(compared("ne", x < 0, y < 0), 0 - quotient, quotient)


def truncmod(a: Any, b: Any) -> Expr:
    """The rest of `truncdiv`, with the sign of `a`."""
    x, y = _integers("truncmod", a, b)
    rest = floormod(abs(x), abs(y))
    return if_then_else(x < 0, 0 - rest, rest)


def _integers(name: str, a: Any, b: Any) -> tuple[Expr, Expr]:
    x, y = matched(a, b)
    if not dtypes.is_integer(x.dtype):
        raise TEError(f"te.{name}: expected integers, found `{x}` of {x.dtype}")
    return x, y


def isnan(expr: Any) -> Expr:
    x = as_expr(expr)
    return compared("ne", x, x)


def isinf(expr: Any) -> Expr:
    return compared("eq", abs(as_expr(expr)), float("inf"))


def isfinite(expr: Any) -> Expr:
    return compared("lt", abs(as_expr(expr)), float("inf"))


def min_value(dtype: Any) -> Expr:
    """The least finite value of a dtype."""
    return _extreme(dtype, "max")


def max_value(dtype: Any) -> Expr:
    return _extreme(dtype, "min")


def _extreme(dtype: Any, kind: str) -> Expr:
    import torch

    name = dtypes.named(dtype)
    if not dtypes.is_float(name):
        return Const(neutral(kind, name), name)
    info = torch.finfo(getattr(torch, name))
    return Const(info.min if kind == "max" else info.max, name)


def infinity(dtype: Any = "float32") -> Expr:
    return Const(float("inf"), dtypes.named(dtype))
