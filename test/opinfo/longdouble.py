# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float64 functions of one element in more digits: numpy's long double (64 bits of mantissa on
x86), or mpmath. Results are rounded to float64, half an ULP of what is compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy
import torch

from opinfo.calls import Call

_DIGITS = 40
# mpmath takes some 50 µs for each.
_MOST_ELEMENTS = 4096
_UFUNCS: dict[str, Callable[..., Any]] = {
    name: getattr(numpy, ufunc)
    for name, ufunc in {
        **{name: name for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
        **{name: name for name in ("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
        **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"},
        **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "hypot": "hypot"},
        **{"reciprocal": "reciprocal", "logaddexp": "logaddexp", "logaddexp2": "logaddexp2"},
        **{"fmod": "fmod", "remainder": "remainder"},
        **{"deg2rad": "deg2rad", "rad2deg": "rad2deg", "square": "square"},
    }.items()
}
_UFUNCS["rsqrt"] = lambda x: 1 / numpy.sqrt(x)
_UFUNCS["sigmoid"] = lambda x: 1 / (1 + numpy.exp(-x))
_BY_MPMATH: dict[str, Callable[[Any], Any]] = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfinv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "digamma": mpmath.digamma,
    "i0": lambda x: mpmath.besseli(0, x),
    "special.i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "special.i1": lambda x: mpmath.besseli(1, x),
    "special.i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "special.erfcx": lambda x: mpmath.erfc(x) * mpmath.exp(x * x),
    "special.ndtr": mpmath.ncdf,
}


def exact_of(op: str, call: Call) -> torch.Tensor | None:
    """None where there is no function for the op or the arguments."""
    arguments = [*call.args]
    if call.kwargs or any(_is_other(each) for each in arguments):
        return None
    if op in _UFUNCS:
        with numpy.errstate(all="ignore"):
            value = _UFUNCS[op](*(numpy.asarray(x, dtype=numpy.longdouble) for x in arguments))
        return torch.from_numpy(numpy.asarray(value, dtype=numpy.float64))
    if op in _BY_MPMATH and len(arguments) == 1 and arguments[0].numel() <= _MOST_ELEMENTS:
        return _by_mpmath(_BY_MPMATH[op], arguments[0])
    return None


def _is_other(argument: Any) -> bool:
    return not isinstance(argument, torch.Tensor) or argument.dtype != torch.float64


def _by_mpmath(function: Callable[[Any], Any], x: torch.Tensor) -> torch.Tensor:
    """Where the function has no value, or argument and value are special: eager's, marked NaN."""

    def at(value: float) -> float:
        if not math.isfinite(value):
            return math.nan
        try:
            result = function(mpmath.mpf(value))
        except (ValueError, ZeroDivisionError, OverflowError, mpmath.NoConvergence):
            return math.nan
        return float(result) if isinstance(result, mpmath.mpf) else math.nan

    with mpmath.workdps(_DIGITS):
        values = [at(value) for value in x.flatten().tolist()]
    return torch.tensor(values, dtype=torch.float64).reshape(x.shape)
