# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with logarithms, with PyTorch's values and slopes where these are infinite or none."""

from __future__ import annotations

import math

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, lowers


@lowers("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(site: Site, x, y):
    x, y = _operands(site, x, y)
    logarithm = site.as_stored(site.builder.unary("log", y))
    return site.finish(_times_logarithm(site, x, y, logarithm, 0))


@lowers("special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar")
def xlog1py(site: Site, x, y):
    x, y = _operands(site, x, y)
    logarithm = site.as_stored(site.builder.unary("log1p", y))
    return site.finish(_times_logarithm(site, x, y, logarithm, -1))


@lowers("special_entr.default")
def entr(site: Site, x: Value):
    """-x log x, with the slope -(1 + log x) wherever x is."""
    b = site.builder
    (x,) = _operands(site, x)
    logarithm = site.as_stored(b.unary("log", x))
    product = b.unary("neg", b.binary("mul", x, logarithm))
    product = b.select(b.compare("eq", x, 0), b.constant(0, x.dtype, x.shape), product)
    below = b.constant(-math.inf, x.dtype, x.shape)
    value = b.select(b.compare("lt", x, 0), below, product)
    if b.graph.training:
        value = b.with_slopes(value, (x, b.unary("neg", b.scalar("add", logarithm, 1))))
    return site.finish(value)


@lowers("logit.default")
def logit(site: Site, x: Value, eps=None):
    """The slope is that of logit_backward of torch's BinaryOpsKernel.cpp: between the bounds
    1 / (x (1 - x)), beyond them none of a logit with eps, and no number of one without. Its own
    slope divides by x (1 - x), and is multiplied with the parts of that, beyond the bounds, too."""
    b = site.builder
    (x,) = _operands(site, x)
    if b.graph.training and eps is not None and eps < 0:
        raise Decline("a logit with a negative eps, whose slope ends at zero and one")
    one, bounded = b.constant(1, x.dtype, x.shape), x
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    if site.dtype != x.dtype:
        low = site.rounded(low, site.dtype)
        high = site.rounded(1 - low, site.dtype)
    if eps is not None:
        least, most = (b.constant(bound, x.dtype, x.shape) for bound in (low, high))
        bounded = b.select(b.compare("gt", x, high), most, x)
        bounded = b.select(b.compare("lt", x, low), least, bounded)
    rest = site.as_stored(b.binary("sub", one, bounded))
    value = b.unary("log", site.as_stored(b.binary("div", bounded, rest)))
    if b.graph.training:
        inside = b.binary("and", b.compare("ge", x, low), b.compare("le", x, high))
        # A cotangent of zero over a denormal is zero, which times the quotient is no number.
        within = b.select(inside, x, b.constant(0.5, x.dtype, x.shape))
        sides = b.binary(
            "sub", b.unary("log", within), b.unary("log", b.binary("sub", one, within))
        )
        zero = b.constant(0, x.dtype, x.shape)
        beyond = b.constant(math.nan if eps is None else 0, x.dtype, x.shape)
        product = b.binary("mul", x, b.binary("sub", one, x))
        is_plain = b.binary(
            "and", b.compare("ne", product, 0), b.compare("lt", b.unary("abs", x), math.inf)
        )
        bend = b.select(is_plain, zero, b.constant(math.nan, x.dtype, x.shape))
        masked = b.select(inside, zero, beyond)
        masked = b.with_slopes(masked, (x, bend), subgradient="zero")
        slopes = ((b.select(inside, sides, zero), 1), (x, masked))
        value = b.with_slopes(value, *slopes, subgradient="zero")
    return site.finish(value)


def _operands(site: Site, *operands):
    """Eager's kernels of these round elements of half precision between their steps, which has no
    slope."""
    operands = site.promoted(*operands, kind=Promotion.INT_TO_FLOAT)
    if site.builder.graph.training and site.dtype != operands[0].dtype:
        raise Decline(f"the gradient of {site.target} of {site.dtype}")
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
