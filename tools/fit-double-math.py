#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the polynomials of compiler/Kernels/VectorMath/DoubleMathTables.h and print them.

As in fit-vector-math.py every function is `function(x) = fixed(x) + factor(x) * p(variable(x))`,
and p minimises the largest error relative to `scale(x)`. float64 has too many digits for a fit in
its own arithmetic: here the exchange algorithm runs at 60 digits, on the extrema among a grid of
Chebyshev nodes (E. Ya. Remez, "Sur le calcul effectif des polynomes d'approximation de
Tchebichef", 1934). Coefficients are rounded last; the error that is printed includes that.

Needs mpmath. Deterministic; takes a few seconds.
"""

import mpmath
from fitting import Fit, scaled_erfc, square
from mpmath import mpf

DIGITS = 60
NODES = 600
ROUNDS = 12


def nodes(low: float, high: float) -> list[mpf]:
    """Chebyshev nodes, in rising order; none where the targets are quotients that cancel."""
    middle, half = (mpf(low) + mpf(high)) / 2, (mpf(high) - mpf(low)) / 2
    found = (middle - half * mpmath.cos((mpf(i) + 0.5) * mpmath.pi / NODES) for i in range(NODES))
    return [x for x in found if abs(x) > 1e-9]


def extrema(errors: list[mpf], count: int) -> list[int]:
    """Places of `count` errors of alternating sign, the largest among them."""
    runs: list[int] = []
    for place, error in enumerate(errors):
        if not runs or (error > 0) != (errors[runs[-1]] > 0):
            runs.append(place)
        elif abs(error) > abs(errors[runs[-1]]):
            runs[-1] = place
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def exchange(variables: list, targets: list, weights: list, terms: int) -> list[mpf]:
    """Coefficients, lowest first, whose largest weighted error is the least."""
    places = [round((i + 0.5) * len(targets) / (terms + 1)) for i in range(terms + 1)]
    best, least = None, mpmath.inf
    for _ in range(ROUNDS):
        rows = [
            [variables[place] ** k for k in range(terms)] + [(-1) ** row / weights[place]]
            for row, place in enumerate(places)
        ]
        right = mpmath.matrix([targets[place] for place in places])
        found = list(mpmath.lu_solve(mpmath.matrix(rows), right))[:-1]
        errors = errors_of(found, variables, targets, weights)
        largest = max(map(abs, errors))
        if largest < least:
            best, least = found, largest
        turns = extrema(errors, terms + 1)
        if len(turns) <= terms or turns == places:
            break
        places = turns
    return best


def errors_of(coefficients: list, variables: list, targets: list, weights: list) -> list[mpf]:
    descending = coefficients[::-1]
    return [
        weight * (mpmath.polyval(descending, variable) - target)
        for variable, target, weight in zip(variables, targets, weights)
    ]


def fit(problem: Fit) -> tuple[list[float], mpf]:
    """Coefficients, lowest first, and the largest weighted error that they leave once rounded."""
    grid = nodes(problem.low, problem.high)
    weights = [problem.weight(x) for x in grid]
    targets = [problem.target(x) for x in grid]
    variables = [problem.variable(x) for x in grid]
    rounded = list(map(problem.number, exchange(variables, targets, weights, problem.terms)))
    return rounded, max(map(abs, errors_of(rounded, variables, targets, weights)))


with mpmath.workdps(DIGITS):
    HALF_LN2 = mpmath.log(2) / 2 * mpf("1.0001")  # rounding to the nearest n is not exact
    QUARTER_PI = mpmath.pi / 4 * mpf("1.0001")
    EIGHTH_TURN = mpmath.tan(mpmath.pi / 8) * mpf("1.0001")
    ROOT2 = mpmath.sqrt(2)
    LARGEST_RATIO = (ROOT2 - 1) / (ROOT2 + 1)

FITS = [
    Fit(
        "expTail",
        "exp(x) = 1 + x + x^2 p(x)",
        11,
        -HALF_LN2,
        HALF_LN2,
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: abs(r**2 / mpmath.expm1(r)),  # expm1 is made of it, too
    ),
    Fit(
        "exp2Tail",
        "2^x = 1 + ln(2) x + x^2 p(x)",
        11,
        -0.5001,  # rounding to the nearest n is not exact
        0.5001,
        lambda x: (mpmath.expm1(x * mpmath.log(2)) - x * mpmath.log(2)) / x**2,
        lambda x: x**2 / 2**x,
    ),
    Fit(
        "sinhTail",
        "sinh(x) = x + x^3 p(x^2)",
        7,
        0,
        1.0,
        lambda x: (mpmath.sinh(x) - x) / x**3,
        lambda x: x**3 / mpmath.sinh(x),
        square,
    ),
    Fit(
        "tanhTail",
        "tanh(x) = x + x^3 p(x^2)",
        11,
        0,
        0.625,
        lambda x: (mpmath.tanh(x) - x) / x**3,
        lambda x: x**3 / mpmath.tanh(x),
        square,
    ),
    Fit(
        "logTail",
        "log((1 + x) / (1 - x)) = 2 x + x^3 p(x^2)",
        7,
        0,
        LARGEST_RATIO,
        lambda x: (2 * mpmath.atanh(x) - 2 * x) / x**3,
        lambda x: x**3 / (2 * mpmath.atanh(x)),
        square,
    ),
    Fit(
        "erfNear",
        "erf(x) = x + x p(x^2)",
        11,
        0,
        0.81,
        lambda x: (mpmath.erf(x) - x) / x,
        lambda x: x / mpmath.erf(x),
        square,
    ),
    Fit(
        "erfFar",
        "log(1 - erf(x)) = -x + x p(x)",
        18,
        0.79,
        5.95,
        lambda x: (mpmath.log(mpmath.erfc(x)) + x) / x,
        lambda x: x * mpmath.erfc(x) / mpmath.erf(x),  # d erf = erfc * d log(erfc)
    ),
    Fit(
        "erfcFar",
        "(1 + 2 y) exp(y^2) erfc(y) = 5/4 + p(x), y = 4 (1 + x) / (1 - x)",
        22,
        (mpf("0.59") - 4) / (mpf("0.59") + 4),
        (mpf("27.3") - 4) / (mpf("27.3") + 4),
        lambda x: scaled_erfc(4 * (1 + x) / (1 - x)) - 1.25,
        lambda x: 1 / scaled_erfc(4 * (1 + x) / (1 - x)),
    ),
    Fit(
        "sinTail",
        "sin(x) = x + x^3 p(x^2)",
        6,
        0,
        QUARTER_PI,
        lambda x: (mpmath.sin(x) - x) / x**3,
        lambda x: x**3 / mpmath.sin(x),
        square,
    ),
    Fit(
        "cosTail",
        "cos(x) = 1 - x^2 / 2 + x^4 p(x^2)",
        6,
        0,
        QUARTER_PI,
        lambda x: (mpmath.cos(x) - 1 + x**2 / 2) / x**4,
        lambda x: x**4 / mpmath.cos(x),
        square,
    ),
    Fit(
        "asinTail",
        "asin(x) = x + x^3 p(x^2)",
        12,
        0,
        0.5,
        lambda x: (mpmath.asin(x) - x) / x**3,
        lambda x: x**3 / mpmath.asin(x),
        square,
    ),
    Fit(
        "atanTail",
        "atan(x) = x + x^3 p(x^2)",
        11,
        0,
        EIGHTH_TURN,
        lambda x: (mpmath.atan(x) - x) / x**3,
        lambda x: x**3 / mpmath.atan(x),
        square,
    ),
    Fit(
        "powerLogTail",
        "log((1 + x) / (1 - x)) = 2 x + 2/3 x^3 + x^5 p(x^2)",
        7,
        0,
        LARGEST_RATIO,
        lambda x: (2 * mpmath.atanh(x) - 2 * x - 2 * x**3 / 3) / x**5,
        lambda x: x**5 / (2 * mpmath.atanh(x)),
        square,
    ),
]


def main() -> None:
    mpmath.mp.dps = DIGITS
    for problem in FITS:
        coefficients, error = fit(problem)
        low, high = float(problem.low), float(problem.high)
        print(f"/// {problem.formula}, {low:.3g} <= x <= {high:.3g}; ", end="")
        print(f"error {float(error * 2**53):.2g} * 2^-53.")
        print(f"constexpr double {problem.name}[] = {{")
        print(*(f"    {value!r}," for value in coefficients), sep="\n")
        print("};\n")


if __name__ == "__main__":
    main()
