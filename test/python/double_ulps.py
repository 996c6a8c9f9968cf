# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of float64 functions in units in the last place, compared with mpmath, for arguments of
all exponents and near points where argument reductions and formulas change."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import mpmath
import numpy as np
import torch

# Bits of the exact values; for sines of huge arguments mpmath itself uses as many as needed.
PRECISION = 200
INTERVAL_SAMPLES = 500
SPECIAL = (0.0, math.inf, math.nan, 5e-324, 2.0**-1022, 1.7976931348623157e308, 1.0, 0.5, 2.0)


@dataclass
class DoubleFunction:
    """A function, its bound in ULP, and its arguments: intervals (low, high) that are sampled
    evenly, exponents of two with both signs, and numbers that are sampled closely."""

    torch: Callable[[torch.Tensor], torch.Tensor]
    exact: Callable[[mpmath.mpf], mpmath.mpf]
    bound: float = 1.0
    intervals: tuple[tuple[float, float], ...] = ((-1, 1), (-8, 8))
    exponents: tuple[float, float] = (-60, 60)
    around: tuple[float, ...] = field(default=())


_LOG = {
    "intervals": ((0.5, 2), (0.70, 0.72), (1.40, 1.43)),
    "exponents": (-1074, 1024),
    "around": (1.0,),
}
_QUARTERS = tuple(n * math.pi / 4 for n in (*range(1, 60), 1001, 10**6 + 1, 2**29 + 1, 2**29 + 2))
_ANGLE = {"intervals": ((-1, 1), (-100, 100)), "exponents": (-60, 1023), "around": _QUARTERS}
_RATIO = {"intervals": ((-1, 1), (0.4, 0.6)), "exponents": (-60, 0), "around": (-1.0, 1.0)}

FUNCTIONS: dict[str, DoubleFunction] = {
    "exp": DoubleFunction(
        torch.exp, mpmath.exp, intervals=((-1, 1), (-20, 20), (-745.2, -700), (700, 709.8))
    ),
    "exp2": DoubleFunction(
        torch.exp2,
        lambda x: mpmath.mpf(2) ** x,
        intervals=((-1, 1), (-1076, -1000), (1000, 1024)),
        around=(-0.5, 0.5, 1.5),
    ),
    "expm1": DoubleFunction(
        torch.expm1, mpmath.expm1, intervals=((-1, 1), (0.3, 0.4), (-50, 50), (700, 709.8))
    ),
    "log": DoubleFunction(torch.log, mpmath.log, **_LOG),
    "log2": DoubleFunction(torch.log2, lambda x: mpmath.log(x, 2), **_LOG),
    "log10": DoubleFunction(torch.log10, mpmath.log10, **_LOG),
    "log1p": DoubleFunction(
        torch.log1p,
        mpmath.log1p,
        intervals=((-1, 1), (-0.3, -0.28), (0.41, 0.42)),
        exponents=(-60, 1023),
        around=(-1.0,),
    ),
    "sinh": DoubleFunction(
        torch.sinh, mpmath.sinh, intervals=((-1, 1), (-20, 20), (0.9, 1.1), (700, 711))
    ),
    "cosh": DoubleFunction(
        torch.cosh, mpmath.cosh, intervals=((-1, 1), (-20, 20), (0.3, 0.4), (700, 711))
    ),
    "tanh": DoubleFunction(torch.tanh, mpmath.tanh, intervals=((-1, 1), (0.6, 0.65), (-20, 20))),
    "erf": DoubleFunction(torch.erf, mpmath.erf, intervals=((-1, 1), (0.75, 0.85), (-6, 6))),
    "erfc": DoubleFunction(
        torch.erfc,
        # Mpmath overflows for larger arguments.
        lambda x: mpmath.erfc(x) if abs(x) < 100 else 1 - mpmath.sign(x),
        intervals=((-1, 1), (0.5, 0.7), (-6, 6), (0.7, 27.5)),
    ),
    "sin": DoubleFunction(torch.sin, mpmath.sin, **_ANGLE),
    "cos": DoubleFunction(torch.cos, mpmath.cos, **_ANGLE),
    "tan": DoubleFunction(torch.tan, mpmath.tan, **_ANGLE),
    "asin": DoubleFunction(torch.asin, mpmath.asin, **_RATIO),
    "acos": DoubleFunction(torch.acos, mpmath.acos, **_RATIO),
    "atan": DoubleFunction(torch.atan, mpmath.atan, around=(0.41421356, 1.0, 2.41421356)),
    "rsqrt": DoubleFunction(
        torch.rsqrt, lambda x: 1 / mpmath.sqrt(x), intervals=((1, 4),), exponents=(-1074, 1024)
    ),
    # These consist of several functions, whose rounding errors add up.
    "sigmoid": DoubleFunction(
        torch.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), 2.0, ((-1, 1), (-40, 40), (-745, -700))
    ),
    "asinh": DoubleFunction(torch.asinh, mpmath.asinh, exponents=(-60, 1023)),
    "acosh": DoubleFunction(
        torch.acosh,
        mpmath.acosh,
        intervals=((1, 2), (1, 30)),
        exponents=(0, 1023),
        around=(1.0,),
    ),
    "atanh": DoubleFunction(torch.atanh, mpmath.atanh, **_RATIO),
}


@cache
def samples(name: str) -> tuple[torch.Tensor, list]:
    """Arguments of the function `name`, and its exact values: NaN outside of its domain."""
    function = FUNCTIONS[name]
    generator = np.random.default_rng(0)
    count = INTERVAL_SAMPLES
    low, high = function.exponents
    sign = generator.choice([-1.0, 1.0], 2 * count)
    x = [
        generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64),
        *(generator.uniform(*interval, count) for interval in function.intervals),
        np.exp2(generator.uniform(low, high, 2 * count)) * sign,
        *(
            centre + np.exp2(generator.uniform(-53, -8, 1 + count // len(function.around))) * step
            for centre in function.around
            for step in (-1.0, 1.0)
        ),
        np.array(function.around),
        np.array(SPECIAL),
        -np.array(SPECIAL),
    ]
    arguments = np.concatenate(x)
    with mpmath.workprec(PRECISION):
        values = [_value(function.exact, number) for number in arguments]
    return torch.from_numpy(arguments), values


def _value(exact: Callable, x: float):
    try:
        value = exact(mpmath.mpf(x))
    except ZeroDivisionError:
        return mpmath.mpf(math.copysign(math.inf, x))  # at a pole at zero
    except ValueError:
        return mpmath.nan
    return value if isinstance(value, mpmath.mpf) else mpmath.nan


def worst_error(name: str, found: torch.Tensor) -> tuple[float, float]:
    """The largest error of `found`, the values for `samples(name)`, in ULP, and the argument."""
    arguments, values = samples(name)
    pairs = zip(values, found.tolist(), arguments.tolist(), strict=True)
    return max((error(exact, y), x) for exact, y, x in pairs)


def error(exact, y: float) -> float:
    """The error of `y` in ULP of `exact`; infinite if one of them is NaN or infinite and the other
    not."""
    if mpmath.isnan(exact) or math.isnan(y):
        return 0.0 if mpmath.isnan(exact) and math.isnan(y) else math.inf
    if mpmath.isinf(exact) or math.isinf(y):
        return 0.0 if float(exact) == y else math.inf
    if exact == 0:
        return 0.0 if y == 0 else math.inf
    with mpmath.workprec(PRECISION):
        exponent = max(mpmath.frexp(exact)[1], -1021)
        return float(abs(mpmath.mpf(y) - exact) * mpmath.mpf(2) ** (53 - exponent))
