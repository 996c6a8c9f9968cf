# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of TVM's te besides those of `functions`, for expressions written for TVM."""

from __future__ import annotations

from typing import Any

from weft.te import dtypes
from weft.te.derivatives import gradients
from weft.te.errors import TEError
from weft.te.expressions import Const, Expr, arithmetic, as_expr, compared, matched
from weft.te.functions import abs, elementary, floordiv, floormod, if_then_else, power, round
from weft.te.sizes import alike
from weft.te.tensors import Tensor, compute
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


def div(a: Any, b: Any) -> Expr:
    """A division as in C: of integers, it rounds towards zero."""
    x, y = matched(a, b)
    return arithmetic("div", x, y) if dtypes.is_float(x.dtype) else truncdiv(x, y)


def fmod(a: Any, b: Any) -> Expr:
    """The remainder of a division that rounds towards zero; it has the sign of `a`."""
    x, y = matched(a, b)
    if not dtypes.is_float(x.dtype):
        return truncmod(x, y)
    rest = floormod(abs(x), abs(y))
    return if_then_else(x < 0, -rest, rest)


def logaddexp(a: Any, b: Any) -> Expr:
    """log(exp(a) + exp(b)), without overflow."""
    x, y = matched(a, b)
    if not dtypes.is_float(x.dtype):
        x, y = x.astype("float32"), y.astype("float32")
    gap = if_then_else(compared("eq", x, y), 0.0, abs(x - y))  # also right for two infinities
    return arithmetic("max", x, y) + elementary("log1p", elementary("exp", -gap))


def popcount(expr: Any) -> Expr:
    """The number of bits of an integer that are one, in its dtype."""
    x = as_expr(expr)
    if not dtypes.is_integer(x.dtype):
        raise TEError(f"te.popcount: expected an integer, found `{x}` of {x.dtype}")
    wide = "int64" if x.dtype == "int64" else "int32"
    bits = dtypes.BYTES[wide] * 8

    def mask(byte: int) -> Const:
        return Const(int.from_bytes(bytes([byte]) * (bits // 8), "little", signed=True), wide)

    # Neighbouring counts of 1, 2 and 4 bits are added, and a product adds the counts of all bytes
    # (Warren, Hacker's Delight, 5-1). Masks remove copies of the sign bit that a shift brought in.
    w = x.astype(wide)
    if dtypes.BYTES[x.dtype] < dtypes.BYTES[wide]:
        w = w & (2 ** (8 * dtypes.BYTES[x.dtype]) - 1)
    w = w - ((w >> 1) & mask(0x55))
    w = (w & mask(0x33)) + ((w >> 2) & mask(0x33))
    w = (w + (w >> 4)) & mask(0x0F)
    return (((w * mask(0x01)) >> (bits - 8)) & 0xFF).astype(x.dtype)


def gradient(output: Tensor, inputs: Any, head: Tensor | None = None) -> list[Tensor]:
    """The gradients of Σ head · output by `inputs`, which are placeholders, with their shapes.
    head: a tensor with the output's shape; it may be omitted for an output of one element.

    Raises: TEError.
    """
    if head is None:
        if not alike(output.shape, (1,) * output.ndim):
            raise TEError(
                f"te.gradient: expected a head for {output.name} of shape {list(output.shape)}, "
                "found none"
            )
        head = compute(output.shape, lambda *_: Const(1.0, output.dtype), f"{output.name}.head")
    if not alike(head.shape, output.shape):
        raise TEError(
            f"te.gradient: expected a head of shape {list(output.shape)}, found {list(head.shape)}"
        )
    wrt = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    return gradients([output], [head], wrt)


def truncdiv(a: Any, b: Any) -> Expr:
    """The quotient of integers, rounded towards zero."""
    x, y = _integers("truncdiv", a, b)
    quotient = floordiv(abs(x), abs(y))
    return if_then_else(compared("ne", x < 0, y < 0), 0 - quotient, quotient)


def truncmod(a: Any, b: Any) -> Expr:
    """The remainder of `truncdiv`, with the sign of `a`."""
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
