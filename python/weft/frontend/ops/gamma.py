# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The logarithm of the gamma function and its derivatives; of float32 by float64, which has the
digits that cancel near their roots.

Source: M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964), 6.1.40, 6.3.18 and
6.4.12 at z = |x| + 7 or more, recurrences from there down, and reflections of negative numbers.
"""

from __future__ import annotations

import math

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.double_gamma import (
    MOST_ORDERS,
    double_digamma,
    double_trigamma,
    hurwitz_polygamma,
)
from weft.frontend.ops.polynomial import FEW, polynomial, single_operand
from weft.frontend.table import Site, lowers

_SHIFT = 7
# x (x + 1) ... (x + 6), and its first two derivatives.
_RISING = (0, 720, 1764, 1624, 735, 175, 21, 1)
_RISING_SLOPE = tuple(n * c for n, c in enumerate(_RISING))[1:]
_RISING_CURVE = tuple(n * c for n, c in enumerate(_RISING_SLOPE))[1:]
# Bernoulli's numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_STIRLING = tuple(b / ((2 * n + 2) * (2 * n + 1)) for n, b in enumerate(_BERNOULLI))
_DIGAMMA = tuple(b / (2 * n + 2) for n, b in enumerate(_BERNOULLI))


@lowers("lgamma.default")
def lgamma(site: Site, x: Value):
    b = site.builder
    wide = b.convert(single_operand(site, x, FEW), torch.float64)
    value = _lgamma(b, wide)
    if b.graph.training:
        value = b.with_slopes(value, (wide, _digamma_with_slopes(site, wide)))
    return site.finish(value)


@lowers("digamma.default", "special_digamma.default")
def digamma(site: Site, x: Value):
    b = site.builder
    if x.dtype == torch.float64:
        value = double_digamma(b, x)
        return b.with_slopes(value, (x, _trigamma_of_double(b, x))) if b.graph.training else value
    wide = b.convert(single_operand(site, x), torch.float64)
    return site.finish(_digamma_with_slopes(site, wide))


@lowers("polygamma.default", "special_polygamma.default")
def polygamma(site: Site, order: int, x: Value):
    b = site.builder
    if order == 0:
        return digamma(site, x)
    if order > 1:
        return _higher_polygamma(site, order, x)
    if x.dtype == torch.float64:
        return _trigamma_of_double(b, x)
    wide = b.convert(single_operand(site, x, FEW), torch.float64)
    return site.finish(_trigamma(site, wide))


def _trigamma_of_double(b: Builder, x: Value) -> Value:
    value = double_trigamma(b, x)
    return b.with_slopes(value, (x, hurwitz_polygamma(b, 2, x))) if b.graph.training else value


def _higher_polygamma(site: Site, order: int, x: Value) -> Value:
    """The slope is that of the next order, whose own is that of its formula."""
    b = site.builder
    if order > MOST_ORDERS:
        raise Decline(f"polygamma of order {order}, above {MOST_ORDERS}")
    x = b.convert(single_operand(site, x), torch.float64)
    value = hurwitz_polygamma(b, order, x)
    if b.graph.training:
        value = b.with_slopes(value, (x, hurwitz_polygamma(b, order + 1, x)))
    return site.finish(value)


def _digamma_with_slopes(site: Site, x: Value) -> Value:
    b = site.builder
    value = _digamma(b, x)
    return b.with_slopes(value, (x, _trigamma(site, x))) if b.graph.training else value


class _Parts:
    """Of x: its size; whether that is small, and moved to `far`; whether it is negative, and
    whole; the angle of pi x, whose period is taken off exactly.

    `near` and `inner`, which the formulas of small and of negative numbers read, are these where
    they count; in training elsewhere numbers that have slopes, as zero times none is no number.
    """

    def __init__(self, b: Builder, x: Value) -> None:
        self.size = b.unary("abs", x)
        self.is_small = b.compare("lt", self.size, _SHIFT)
        self.far = b.select(self.is_small, b.scalar("add", self.size, _SHIFT), self.size)
        self.inverse = b.binary("div", b.constant(1, x.dtype, x.shape), self.far)
        self.square = b.binary("mul", self.inverse, self.inverse)
        self.is_negative = b.compare("lt", x, 0)
        self.is_whole = b.compare("eq", x, b.unary("round_even", x))
        self.near, self.inner = self.size, x
        if b.graph.training:
            is_inner = b.binary("and", self.is_negative, b.unary("not", self.is_whole))
            self.near = b.select(self.is_small, x, b.constant(1, x.dtype, x.shape))
            self.near = b.unary("abs", self.near)
            self.inner = b.select(is_inner, x, b.constant(-0.5, x.dtype, x.shape))
        rest = b.binary("sub", self.inner, b.level(b.unary("round_even", self.inner)))
        self.angle = b.scalar("mul", rest, math.pi)

    def if_small(self, b: Builder, value: Value, otherwise: float) -> Value:
        return b.select(self.is_small, value, b.constant(otherwise, value.dtype, value.shape))

    def at_whole(self, b: Builder, value: Value, number: float) -> Value:
        """`value`, but `number` where x is whole."""
        return b.select(self.is_whole, b.constant(number, value.dtype, value.shape), value)


def _lgamma(b: Builder, x: Value) -> Value:
    """Of negative numbers log(pi / |x sin(pi x)|) less that of -x."""
    p = _Parts(b, x)
    logarithm = b.unary("log", p.far)
    power = b.binary("mul", b.scalar("sub", p.far, 0.5), b.scalar("sub", logarithm, 1))
    series = b.binary("mul", p.inverse, polynomial(b, p.square, _STIRLING))
    stirling = b.binary("add", power, b.scalar("add", series, 0.5 * math.log(2 * math.pi) - 0.5))
    product = p.if_small(b, polynomial(b, p.near, _RISING), 1)
    sine = b.unary("abs", b.binary("mul", p.inner, b.unary("sin", p.angle)))
    reflected = p.at_whole(b, b.binary("div", b.scalar("mul", product, math.pi), sine), math.inf)
    taken = b.unary("log", b.select(p.is_negative, reflected, product))
    value = b.binary("sub", stirling, taken)
    value = b.select(p.is_negative, b.unary("neg", value), value)
    is_root = b.binary("or", b.compare("eq", x, 1), b.compare("eq", x, 2))
    endless, zero = (b.constant(number, x.dtype, x.shape) for number in (math.inf, 0))
    value = b.select(is_root, zero, value)
    return b.select(b.compare("eq", p.size, math.inf), endless, value)


def _digamma(b: Builder, x: Value) -> Value:
    """Of negative numbers that of -x, less 1 / x and pi / tan(pi x); none of whole ones, and
    infinities of zeros, as PyTorch has them."""
    p = _Parts(b, x)
    series = b.binary("mul", p.square, polynomial(b, p.square, _DIGAMMA))
    far = b.binary("sub", b.unary("log", p.far), b.scalar("mul", p.inverse, 0.5))
    far = b.binary("sub", far, series)
    rising = polynomial(b, p.near, _RISING)
    steps = b.binary("div", polynomial(b, p.near, _RISING_SLOPE), rising)
    value = b.binary("sub", far, p.if_small(b, steps, 0))
    cotangent = b.binary("div", b.unary("cos", p.angle), b.unary("sin", p.angle))
    one = b.constant(1, x.dtype, x.shape)
    reflected = b.binary("sub", value, b.binary("div", one, p.inner))
    reflected = b.binary("sub", reflected, b.scalar("mul", cotangent, math.pi))
    reflected = p.at_whole(b, reflected, math.nan)
    value = b.select(p.is_negative, reflected, value)
    endless = b.constant(math.inf, x.dtype, x.shape)
    at_zero = b.binary("copysign", endless, b.unary("neg", x))
    return b.select(b.compare("eq", x, 0), at_zero, value)


def _trigamma(site: Site, x: Value) -> Value:
    """Of negative numbers (pi / sin(pi x))^2 and 1 / x^2 less that of -x; none of those so large
    that PyTorch's pi x is infinite."""
    b = site.builder
    p = _Parts(b, x)
    series = b.binary(
        "mul", p.inverse, b.binary("mul", p.square, polynomial(b, p.square, _BERNOULLI))
    )
    far = b.binary("add", p.inverse, b.scalar("mul", p.square, 0.5))
    far = b.binary("add", far, series)
    # The sum of the squares of 1 / (x + k), by the derivatives of the product's logarithm.
    rising = polynomial(b, p.near, _RISING)
    slope = b.binary("div", polynomial(b, p.near, _RISING_SLOPE), rising)
    curve = b.binary("div", polynomial(b, p.near, _RISING_CURVE), rising)
    steps = b.binary("sub", b.binary("mul", slope, slope), curve)
    value = b.binary("add", far, p.if_small(b, steps, 0))
    one = b.constant(1, x.dtype, x.shape)
    inverse = b.binary("div", one, p.inner)
    turn = b.binary("div", b.constant(math.pi, x.dtype, x.shape), b.unary("sin", p.angle))
    reflected = b.binary("add", b.binary("mul", turn, turn), b.binary("mul", inverse, inverse))
    reflected = p.at_whole(b, b.binary("sub", reflected, value), math.inf)
    value = b.select(p.is_negative, reflected, value)
    endless = b.compare("lt", x, -torch.finfo(opmath(site.dtype)).max / math.pi)
    value = b.select(endless, b.constant(math.nan, x.dtype, x.shape), value)
    return b.select(b.compare("eq", x, 0), b.constant(math.inf, x.dtype, x.shape), value)
