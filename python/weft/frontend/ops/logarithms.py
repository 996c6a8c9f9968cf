# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with logarithms, with PyTorch's values and slopes where these are infinite or none."""

from __future__ import annotations

import math

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, lowers


@lowers("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(site: Site, x, y):
    x, y = _unrounded(site, x, y)
    return _times_logarithm(site, x, y, site.builder.unary("log", y), 0)


@lowers("special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar")
def xlog1py(site: Site, x, y):
    x, y = _unrounded(site, x, y)
    return _times_logarithm(site, x, y, site.builder.unary("log1p", y), -1)


@lowers("special_entr.default")
def entr(site: Site, x: Value):
    """-x log x, with the slope -(1 + log x) wherever x is."""
    b = site.builder
    (x,) = _unrounded(site, x)
    logarithm = b.unary("log", x)
    product = b.unary("neg", b.binary("mul", x, logarithm))
    product = b.select(b.compare("eq", x, 0), b.constant(0, x.dtype, x.shape), product)
    below = b.constant(-math.inf, x.dtype, x.shape)
    value = b.select(b.compare("lt", x, 0), below, product)
    if b.graph.training:
        value = b.with_slopes(value, (x, b.unary("neg", b.scalar("add", logarithm, 1))))
    return value


@lowers("logit.default")
def logit(site: Site, x: Value, eps=None):
    b = site.builder
    (x,) = _unrounded(site, x)
    if eps is not None:
        low, high = (b.constant(bound, x.dtype, x.shape) for bound in (eps, 1 - eps))
        below, above = b.compare("lt", x, low), b.compare("gt", x, high)
        x = b.select(below, low, b.select(above, high, x))
    one = b.constant(1, x.dtype, x.shape)
    if not b.graph.training:
        return b.unary("log", b.binary("div", x, b.binary("sub", one, x)))
    # At the ends, where parts of the quotient's slope are infinite and others zero, the logarithms
    # of its sides have it; outside, where both are numbers, it is that of a root of less than zero.
    rest = b.binary("sub", one, x)
    sides = b.binary("mul", x, rest)
    at_end, is_outside = b.compare("eq", sides, 0), b.compare("lt", sides, 0)
    half = b.constant(0.5, x.dtype, x.shape)
    inside, end = b.select(at_end, half, x), b.select(at_end, x, half)
    value = b.unary("log", b.binary("div", inside, b.binary("sub", one, inside)))
    ends = b.binary("sub", b.unary("log", end), b.unary("log", b.binary("sub", one, end)))
    nothing = b.unary("sqrt", b.select(is_outside, sides, one))
    return b.select(is_outside, nothing, b.select(at_end, ends, value))


def _unrounded(site: Site, *operands):
    """Eager's kernels of these round elements of half precision between their steps."""
    operands = site.promoted(*operands, kind=Promotion.INT_TO_FLOAT)
    if site.dtype != operands[0].dtype:
        raise Decline(f"{site.target} of {site.dtype}")
    return operands


def _times_logarithm(site: Site, x: Value, y: Value, logarithm: Value, end: int) -> Value:
    """x times the logarithm of y: zero where x is and y a number. So is the slope along x where
    its cotangent is zero, and where x is and y is at most `end`, where the logarithm begins."""
    b = site.builder
    is_zero, zero = b.compare("eq", x, 0), b.constant(0, x.dtype, x.shape)
    product = b.binary("mul", x, logarithm, "zero")
    is_number, one = b.compare("eq", y, y), b.constant(1, x.dtype, x.shape)
    product = b.select(is_number, product, b.binary("mul", x, b.select(is_number, one, y)))
    value = b.select(b.binary("and", is_zero, is_number), zero, product)
    if b.graph.training:
        is_flat = b.binary("and", is_zero, b.compare("le", y, end))
        value = b.with_slopes(value, (b.select(is_flat, zero, product), 1))
    return value
