# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions made of other elementwise ones."""

from __future__ import annotations

import math

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, lowers

# Beyond it a square may overflow, and one is lost beside x.
_LARGE = 1e8


@lowers("asinh.default")
def asinh(site: Site, x: Value):
    """log(|x| + sqrt(x^2 + 1)), with the sign of x."""
    b = site.builder
    (x,) = site.promoted(x, kind=Promotion.INT_TO_FLOAT)
    size = b.unary("abs", x)
    squared = b.binary("mul", size, size)
    root = b.unary("sqrt", b.scalar("add", squared, 1))
    rest = b.binary("div", squared, b.scalar("add", root, 1))
    near = b.unary("log1p", b.binary("add", size, rest))
    return _with_sign(site, _or_log_of_twice(site, size, near), x)


@lowers("acosh.default")
def acosh(site: Site, x: Value):
    """log(x + sqrt(x^2 - 1)) for x >= 1."""
    b = site.builder
    (x,) = site.promoted(x, kind=Promotion.INT_TO_FLOAT)
    above = b.scalar("sub", x, 1)
    squared = b.binary("mul", above, b.scalar("add", above, 2))
    near = b.unary("log1p", b.binary("add", above, b.unary("sqrt", squared)))
    nan = b.constant(math.nan, x.dtype, x.shape)
    found = _or_log_of_twice(site, x, near)
    return site.finish(b.select(b.compare("lt", x, 1), nan, found))


@lowers("atanh.default")
def atanh(site: Site, x: Value):
    """log((1 + x) / (1 - x)) / 2"""
    b = site.builder
    (x,) = site.promoted(x, kind=Promotion.INT_TO_FLOAT)
    size = b.unary("abs", x)
    rest = b.binary("sub", b.constant(1, size.dtype, size.shape), size)
    ratio = b.binary("div", b.scalar("mul", size, 2), rest)
    return _with_sign(site, b.scalar("mul", b.unary("log1p", ratio), 0.5), x)


def _or_log_of_twice(site: Site, x: Value, near: Value) -> Value:
    """log(2 x) where x is large."""
    b = site.builder
    far = b.scalar("add", b.unary("log", x), math.log(2))
    return b.select(b.compare("gt", x, _LARGE), far, near)


def _with_sign(site: Site, size: Value, x: Value) -> Value:
    """An odd function's value; x itself where it is zero of either sign."""
    b = site.builder
    signed = b.select(b.compare("lt", x, 0), b.unary("neg", size), size)
    return site.finish(b.select(b.compare("eq", x, 0), x, signed))


@lowers("hypot.default")
def hypot(site: Site, x: Value, y: Value):
    """sqrt(x^2 + y^2); infinite where one is, whatever the other."""
    if site.dtype == torch.float64:
        raise Decline("hypot of float64")
    b = site.builder
    x, y = site.promoted(x, y)
    infinite = [b.compare("eq", b.unary("abs", each), math.inf) for each in (x, y)]
    wide = [b.convert(each, torch.float64) for each in (x, y)]
    root = b.unary("sqrt", b.binary("add", *(b.binary("mul", each, each) for each in wide)))
    endless = b.constant(math.inf, root.dtype, root.shape)
    return site.finish(b.select(b.binary("or", *infinite), endless, root))


@lowers("__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar")
def left_shift(site: Site, x: Value, by):
    return site.builder.scalar("mul", site.operand(x, site.dtype), _power_of_two(site, by))


@lowers("__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar")
def right_shift(site: Site, x: Value, by):
    """The quotient, rounded down: the low bits are what division would round."""
    b = site.builder
    divisor = _power_of_two(site, by)
    x = site.operand(x, site.dtype)
    whole = b.binary("sub", x, b.scalar("and", x, divisor - 1))
    return b.scalar("div", whole, divisor)


def _power_of_two(site: Site, by) -> int:
    if site.dtype == torch.bool or not isinstance(by, int) or by < 0:
        raise Decline(f"a shift of {site.dtype} by {by!r}")
    if 2**by > torch.iinfo(site.dtype).max:
        raise Decline(f"a shift by {by} bits, as many as {site.dtype} has")
    return 2**by
