# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What fit-vector-math.py and fit-double-math.py have in common: the problems, not the methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath

Function = Callable[[Any], Any]


def identity(x: Any) -> Any:
    return x


def square(x: Any) -> Any:
    return x * x


@dataclass
class Fit:
    """One polynomial: what it stands for, `target(x)`, with `weight(x)` turning its absolute
    error into the relative error of the function that is computed from it. number: the type that
    coefficients are rounded to."""

    name: str
    formula: str
    terms: int
    low: float
    high: float
    target: Function
    weight: Function
    variable: Function = identity
    number: type = float


def scaled_erfc(y: mpmath.mpf) -> mpmath.mpf:
    """Nearly constant (M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of
    (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981)."""
    return (1 + 2 * y) * mpmath.exp(y * y) * mpmath.erfc(y)
