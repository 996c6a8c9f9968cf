# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic, element by element."""

from __future__ import annotations

import functools
import math

import torch

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.numbers import Number
from weft.frontend.table import Promotion, Site, lowers

INT_TO_FLOAT = Promotion.INT_TO_FLOAT
EXACT = Promotion.NO_OPMATH

_FLOAT_UNARY = {
    name: name
    for name in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "sigmoid", "erf", "erfc"),
    )
} | {
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
}


def _float_unary(op: str):
    def rule(site: Site, x: Value):
        (x,) = site.promoted(x, kind=INT_TO_FLOAT)
        return site.finish(site.builder.unary(op, x))

    return rule


for _name, _op in _FLOAT_UNARY.items():
    lowers(f"{_name}.default")(_float_unary(_op))


@lowers("sinc.default", "special_sinc.default")
def sinc(site: Site, x: Value):
    """Where the square of x is zero, so is the slope, and it divides nothing by zero. The slope is
    sinc_backward of torch's FunctionsManual.cpp: cos(a) / x and sin(a) / (a x) are too large
    beside zero to be taken from each other."""
    b = site.builder
    (x,) = site.promoted(x, kind=INT_TO_FLOAT)
    one = b.constant(1, x.dtype, x.shape)
    square = b.scalar("mul", b.binary("mul", x, x), math.pi)
    is_flat = b.compare("eq", square, 0)
    angle = b.select(is_flat, one, b.scalar("mul", x, math.pi))
    sine = b.unary("sin", angle)
    value = b.select(is_flat, one, b.binary("div", sine, angle))
    if b.graph.training:
        rise = b.binary("sub", b.binary("mul", angle, b.unary("cos", angle)), sine)
        slope = b.binary("div", rise, b.select(is_flat, one, square))
        zero = b.constant(0, x.dtype, x.shape)
        value = b.with_slopes(value, (x, b.select(is_flat, zero, slope)))
    return site.finish(value)


@lowers("neg.default", "abs.default", "sign.default", "sgn.default")
def exact_unary(site: Site, x: Value):
    op = site.target.split(".")[1]
    if (x.dtype == torch.bool and op != "neg") or (x.dtype == torch.uint8 and op == "abs"):
        return x
    return site.builder.unary("sign" if op == "sgn" else op, x)


@lowers("bitwise_not.default")
def bitwise_not(site: Site, x: Value):
    return site.builder.unary("not", x)


@lowers("logical_not.default")
def logical_not(site: Site, x: Value):
    return site.finish(site.builder.compare("eq", x, 0))


@lowers("reciprocal.default")
def reciprocal(site: Site, x: Value):
    one, x = site.promoted(1.0, x, kind=INT_TO_FLOAT)
    return site.finish(site.builder.binary("div", one, x))


@lowers("square.default")
def square(site: Site, x: Value):
    return power(site, x, 2)


@lowers("isnan.default")
def isnan(site: Site, x: Value):
    return site.builder.compare("ne", x, x)


@lowers("isinf.default")
def isinf(site: Site, x: Value):
    if not is_float(x.dtype):
        return site.builder.constant(False, torch.bool, x.shape)
    return site.builder.compare("eq", site.builder.unary("abs", x), math.inf)


@lowers("isfinite.default")
def isfinite(site: Site, x: Value):
    if not is_float(x.dtype):
        return site.builder.constant(True, torch.bool, x.shape)
    return site.builder.compare("lt", site.builder.unary("abs", x), math.inf)


# Arithmetic


@lowers("add.Tensor", "add.Scalar")
def add(site: Site, x, y, alpha=1):
    return _scaled("add", site, x, y, alpha)


@lowers("sub.Tensor", "sub.Scalar")
def sub(site: Site, x, y, alpha=1):
    return _scaled("sub", site, x, y, alpha)


@lowers("rsub.Tensor", "rsub.Scalar")
def rsub(site: Site, x, y, alpha=1):
    return _scaled("sub", site, y, x, alpha)


def _scaled(op: str, site: Site, x, y, alpha):
    b = site.builder
    x, y = site.promoted(x, y)
    if alpha == 1:
        return site.finish(b.binary(op, x, y))
    if not is_float(x.dtype):
        return site.finish(b.binary(op, x, b.scalar("mul", y, alpha)))
    # torch's kernel rounds once (aten/src/ATen/native/cpu/BinaryOpsKernel.cpp), and the factor.
    factor = site.rounded(alpha if op == "add" else -alpha, site.dtype)
    return site.finish(b.fma(y, site.operand(factor, y.dtype), x))


@lowers("mul.Tensor", "mul.Scalar")
def mul(site: Site, x, y):
    return site.finish(site.builder.binary("mul", *site.promoted(x, y, exact=(1,))))


@lowers("lerp.Scalar")
def lerp(site: Site, start: Value, end: Value, weight):
    """Interpolates from the nearer end, as ATen/native/Lerp.h does; constants by the
    decomposition."""
    if type(weight) is not Number:
        raise Decline("a weight that is a constant")
    b = site.builder
    is_small = abs(weight) < 0.5
    start, end, weight = site.promoted(start, end, weight, exact=(2,))
    way = b.binary("sub", end, start)
    if is_small:
        return site.finish(b.fma(weight, way, start))
    return site.finish(b.fma(b.scalar("sub", weight, 1), way, end))


@lowers("addcmul.default")
def addcmul(site: Site, x: Value, first: Value, second: Value, value=1):
    """The factor is a part of both slopes, as in PyTorch: products of the factor and the cotangent
    would overflow elsewhere."""
    b = site.builder
    x, first, second = site.promoted(x, first, second)
    scaled = first if value == 1 else b.scalar("mul", first, value)
    result = b.binary("add", x, b.binary("mul", scaled, second))
    if b.graph.training and is_float(x.dtype):
        along_first = second if value == 1 else b.scalar("mul", second, value)
        result = b.with_slopes(result, (x, 1), (first, along_first), (second, scaled))
    return site.finish(result)


@lowers("addcdiv.default")
def addcdiv(site: Site, x: Value, first: Value, second: Value, value=1):
    b = site.builder
    x, first, second = site.promoted(x, first, second)
    factor = b.constant(value, x.dtype, x.shape)
    scaled = first if value == 1 else b.binary("mul", factor, first)
    result = b.binary("add", x, b.binary("div", scaled, second))
    if b.graph.training:
        along_first = b.binary("div", factor, second)
        along_second = b.binary("div", scaled, b.binary("mul", second, second))
        slopes = ((x, 1), (first, along_first), (second, b.unary("neg", along_second)))
        result = b.with_slopes(result, *slopes)
    return site.finish(result)


@lowers("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(site: Site, x, y):
    b = site.builder
    if isinstance(x, Value) and not isinstance(y, Value):
        base, _ = site.promoted(x, y)
        return site.finish(_power_with_slopes(site, base, y, derivatives=2))
    return site.finish(b.binary("pow", *site.promoted(x, y)))


def _power_with_slopes(site: Site, base: Value, y, derivatives: int) -> Value:
    b = site.builder
    value = _power_of_scalar(site, base, y)
    if not (b.graph.training and is_float(base.dtype)) or not derivatives or y == 1:
        return value
    if y == 0:
        return b.with_slopes(value, (base, 0), subgradient="zero")
    slope = b.scalar("mul", _power_with_slopes(site, base, y - 1, derivatives - 1), y)
    return b.with_slopes(value, (base, slope))


def _power_of_scalar(site: Site, base: Value, y) -> Value:
    """Some cases torch's pow_tensor_scalar_kernel treats apart."""
    b = site.builder
    if y == 1:
        return base
    if y == 2:
        return b.binary("mul", base, base)
    if y == 3:
        return b.binary("mul", _square_as_stored(site, base), base)
    if not is_float(base.dtype):
        whole = isinstance(y, int) and y >= 0
        return _whole_power(site, base, y) if whole else b.scalar("pow", base, y)
    # Of float16 they are what C's pow gives for infinities and negative zeros.
    if y in (0.5, -0.5) and site.dtype != torch.float16:
        return b.unary("sqrt" if y > 0 else "rsqrt", base)
    if y in (-1, -2):
        one = b.constant(1.0, base.dtype, base.shape)
        return b.binary("div", one, base if y == -1 else _square_as_stored(site, base))
    return b.binary("pow", base, site.operand(site.rounded(y, site.dtype), base.dtype))


def _whole_power(site: Site, x: Value, y: int) -> Value:
    """An integer power by repeated squares, as many as `y` has bits."""
    b, result = site.builder, None
    while y:
        if y & 1:
            result = x if result is None else b.binary("mul", result, x)
        x, y = (b.binary("mul", x, x) if y > 1 else x), y >> 1
    return b.constant(1, x.dtype, x.shape) if result is None else result


def _square_as_stored(site: Site, x: Value) -> Value:
    """torch's vectors of bfloat16 round each product, those of float16 none."""
    squared = site.builder.binary("mul", x, x)
    return site.as_stored(squared) if site.dtype == torch.bfloat16 else squared


@lowers("maximum.default", "max.other", "minimum.default", "min.other")
def extremum(site: Site, x, y):
    op = "max" if ".max" in site.target else "min"
    return site.finish(site.builder.binary(op, *site.promoted(x, y, kind=EXACT)))


@lowers("fmax.default", "fmin.default")
def nan_ignoring_extremum(site: Site, x, y):
    b = site.builder
    x, y = site.promoted(x, y, kind=EXACT)
    # Of equal zeros the first, in kernels of half precision the second.
    first, second = (x, y) if x.dtype == opmath(x.dtype) else (y, x)
    better = b.compare("ge" if "fmax" in site.target else "le", first, second)
    best = b.select(b.compare("ne", x, x), y, b.select(better, first, second))
    return site.finish(b.select(b.compare("ne", y, y), x, best))


@lowers("atan2.default")
def atan2(site: Site, y, x):
    return site.finish(site.builder.binary("atan2", *site.promoted(y, x, kind=INT_TO_FLOAT)))


@lowers("signbit.default")
def signbit(site: Site, x: Value):
    b = site.builder
    if is_float(x.dtype):
        x = b.binary("copysign", b.constant(1, x.dtype, x.shape), x)
    return b.compare("lt", b.convert(x, torch.int8) if x.dtype == torch.bool else x, 0)


@lowers("copysign.Tensor", "copysign.Scalar")
def copysign(site: Site, x, y):
    return site.finish(site.builder.binary("copysign", *site.promoted(x, y, kind=INT_TO_FLOAT)))


@lowers("clamp.default", "clamp.Tensor", "clip.default", "clip.Tensor")
def clamp(site: Site, x, low=None, high=None):
    bounds = [v for v in (low, high) if v is not None]
    x, *bounds = site.promoted(x, *bounds, kind=EXACT)
    lowest = None if low is None else bounds[0]
    highest = None if high is None else bounds[-1]
    value = x
    if lowest is not None:
        value = site.builder.binary("max", value, lowest, "one")
    if highest is not None:
        value = site.builder.binary("min", value, highest, "one")
    if site.builder.graph.training and is_float(x.dtype):
        if any(isinstance(bound, Value) for bound in (low, high)) or _are_crossed(low, high):
            value = _with_slopes_of_bounds(site, value, x, lowest, highest)
    return site.finish(value)


def _are_crossed(low, high) -> bool:
    return low is not None and high is not None and low > high


def _with_slopes_of_bounds(
    site: Site, value: Value, x: Value, low: Value | None, high: Value | None
) -> Value:
    """clamp_backward and clamp_backward_min_max of torch's FunctionsManual.cpp: where the bounds
    are crossed the upper one has the slope, whatever x is."""
    b = site.builder
    zero, one = (b.constant(number, x.dtype, x.shape) for number in (0, 1))
    slopes = []

    def give(to: Value, *conditions: Value, op: str = "and") -> None:
        holds = functools.reduce(functools.partial(b.binary, op), conditions)
        slopes.append((to, b.select(holds, one, zero)))

    within = [b.compare("ge", x, low)] if low is not None else []
    within += [b.compare("le", x, high)] if high is not None else []
    give(x, *within)
    both = low is not None and high is not None
    if low is not None:
        is_open = [b.compare("lt", low, high)] if both else []
        give(low, *is_open, b.compare("lt", x, low))
    if high is not None:
        is_crossed = [b.compare("lt", high, low)] if both else []
        give(high, *is_crossed, b.compare("gt", x, high), op="or")
    return b.with_slopes(value, *slopes, subgradient="zero")


@lowers("clamp_min.default", "clamp_min.Tensor")
def clamp_min(site: Site, x, low):
    return clamp(site, x, low)


@lowers("clamp_max.default", "clamp_max.Tensor")
def clamp_max(site: Site, x, high):
    return clamp(site, x, None, high)
