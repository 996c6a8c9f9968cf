# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of the normal distribution: quantiles, the inverse of the error function, and the logarithm of
the distribution function, of float32.

Quantiles by M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011):
erfinv(x) / x is smooth in w = -log((1 - x) (1 + x)), and far from zero in its root.
"""

from __future__ import annotations

import math

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.ops.polynomial import FEW, polynomial, single_operand
from weft.frontend.table import Site, lowers

# Interpolations at the nodes of Chebyshev, computed with 40 digits, of erfinv(x) / x in w up to the
# bend and in sqrt(w) from there to the end, both brought to -1...1. For erfinv, to be computed in
# float32, within 4e-8, with the largest w that float32 has; for quantiles, within 5e-9.
_BEND, _END = 6.0, 4.1
_NEAR = (
    1.623542006,
    0.7248912442,
    -0.05164330495,
    -0.02257751496,
    0.01580173211,
    -0.003087078132,
    -0.001284256115,
    0.0009790986621,
    -0.0001323032053,
    -0.0001070097529,
    4.180326451e-05,
)
_FAR = (
    3.108763847,
    0.8298084638,
    0.00347445439,
    -0.001969435417,
    0.001059976774,
    -0.0006148138424,
    0.0002917135121,
    -6.403269183e-05,
    -5.321984902e-06,
)
_WIDE_BEND, _WIDE_END = 16.0, 10.25
_WIDE_NEAR = (
    2.66143864071,
    1.41085825028,
    -0.323547741391,
    0.125726180935,
    -0.0364849733933,
    -0.0157869617061,
    0.0422114321812,
    -0.0458308011687,
    0.0325845795431,
    -0.0128100143838,
    -0.00185586436032,
    0.00821606690819,
    -0.0129163486753,
    0.0145365599096,
    -0.00429642646762,
    -0.0086239052737,
    0.00810553357386,
    -0.00022214225962,
    -0.00223347247297,
    0.000715204893461,
)
_WIDE_FAR = (
    6.99508610844,
    3.15146186695,
    -0.00497817596501,
    0.000276846542799,
    0.000488254932325,
    -0.000417859055936,
    0.000248307636189,
    -0.000130975835587,
    7.58611065141e-05,
    -3.85104647006e-05,
    2.73400582379e-06,
    1.99206044035e-06,
    8.7882342818e-06,
    -5.27733135243e-06,
)


@lowers("erfinv.default")
def erfinv(site: Site, x: Value):
    b = site.builder
    x = single_operand(site, x, FEW)
    one = b.constant(1, x.dtype, x.shape)
    sides = b.binary("mul", b.binary("sub", one, x), b.binary("add", one, x))
    value = _of_sides(b, x, sides, (_BEND, _NEAR), (_END, _FAR))
    # The distance between the quantiles of the density e^-y^2 / sqrt(pi).
    return site.finish(_with_slope(b, value, x, math.sqrt(math.pi) / 2, 1.0))


@lowers("special_ndtri.default")
def ndtri(site: Site, x: Value):
    b = site.builder
    x = b.convert(single_operand(site, x), torch.float64)
    one = b.constant(1, x.dtype, x.shape)
    sides = b.scalar("mul", b.binary("mul", x, b.binary("sub", one, x)), 4)
    centred = b.scalar("sub", b.scalar("mul", x, 2), 1)
    value = _of_sides(b, centred, sides, (_WIDE_BEND, _WIDE_NEAR), (_WIDE_END, _WIDE_FAR))
    value = b.scalar("mul", value, math.sqrt(2))
    return site.finish(_with_slope(b, value, x, math.sqrt(2 * math.pi), 0.5))


def _of_sides(
    b: Builder,
    x: Value,
    sides: Value,
    near: tuple[float, tuple[float, ...]],
    far: tuple[float, tuple[float, ...]],
) -> Value:
    """erfinv(x), where sides = (1 - x) (1 + x); infinite at the ends, and nothing beyond."""
    (bend, close), (end, beyond) = near, far
    w = b.unary("neg", b.unary("log", sides))
    low = math.sqrt(bend)
    inner = polynomial(b, b.scalar("sub", b.scalar("mul", w, 2 / bend), 1), close)
    root = b.scalar("mul", b.unary("sqrt", b.scalar("max", w, bend)), 2 / (end - low))
    outer = polynomial(b, b.scalar("sub", root, (end + low) / (end - low)), beyond)
    outer = b.select(b.compare("eq", sides, 0), b.constant(math.inf, x.dtype, x.shape), outer)
    return b.binary("mul", x, b.select(b.compare("lt", w, bend), inner, outer))


def _with_slope(b: Builder, value: Value, x: Value, scale: float, curve: float) -> Value:
    """`value`, with the slope scale * e^(curve * value^2), and so with that one's."""
    sloping = value
    for _ in range(2 if b.graph.training else 0):
        square = b.binary("mul", sloping, sloping)
        slope = b.scalar("mul", b.unary("exp", b.scalar("mul", square, curve)), scale)
        sloping = b.with_slopes(value, (x, slope))
    return sloping


# Beyond it the distribution function itself is no number of float64.
_ASYMPTOTIC = -30.0


@lowers("special_log_ndtr.default")
def log_ndtr(site: Site, x: Value):
    b = site.builder
    x = b.convert(single_operand(site, x), torch.float64)
    tail = b.unary("erfc", b.scalar("mul", b.unary("abs", x), math.sqrt(0.5)))
    half = b.scalar("mul", tail, 0.5)
    above = b.unary("log1p", b.unary("neg", half))
    square = b.binary("mul", x, x)
    inverse = b.binary("div", b.constant(1, x.dtype, x.shape), square)
    # Handbook of Mathematical Functions, 26.2.12.
    series = b.unary("log1p", b.binary("mul", inverse, polynomial(b, inverse, (-1, 3, -15))))
    scaled = b.scalar("mul", b.unary("abs", x), math.sqrt(2 * math.pi))
    far = b.binary("sub", b.scalar("mul", square, -0.5), b.unary("log", scaled))
    far = b.binary("add", far, series)
    below = b.select(b.compare("lt", x, _ASYMPTOTIC), far, b.unary("log", half))
    value = b.select(b.compare("gt", x, 0), above, below)
    if b.graph.training:
        value = _with_slope_of_log_ndtr(b, value, x, square)
    return site.finish(value)


def _with_slope_of_log_ndtr(b: Builder, value: Value, x: Value, square: Value) -> Value:
    """The value, with the slope of log_ndtr: the density divided by the distribution, both by their
    logarithms."""
    sloping = value
    for _ in range(2):
        exponent = b.binary("sub", b.scalar("mul", square, -0.5), sloping)
        slope = b.scalar("div", b.unary("exp", exponent), math.sqrt(2 * math.pi))
        sloping = b.with_slopes(value, (x, slope))
    return sloping
