#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the polynomials of compiler/Kernels/VectorMath/VectorMathTables.h and print them.

Every function is written as `function(x) = fixed(x) + factor(x) * polynomial(variable(x))`;
the polynomial minimises the largest error relative to `scale(x)`, on Chebyshev nodes of the
interval, by Lawson's iteration: least squares whose weights grow where the error is large
(C. L. Lawson, "Contributions to the theory of linear least maximum approximation", 1961).
Coefficients become floats one by one, the lowest first, and those left are fitted again,
so that the later ones make up for the rounding of the earlier ones.

Needs numpy and mpmath. Deterministic; takes a few seconds.
"""

from collections.abc import Callable

import mpmath
import numpy as np
from fitting import Fit, identity, scaled_erfc, square

Function = Callable[[np.ndarray], np.ndarray]
NODES = 1500
ROUNDS = 60


def reference(function: Callable) -> Function:
    """`function` of mpmath at 40 digits, elementwise."""

    def evaluate(x: np.ndarray) -> np.ndarray:
        with mpmath.workdps(40):
            return np.array([float(function(mpmath.mpf(v))) for v in x])

    return evaluate


def lawson(basis: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Coefficients that make the largest |basis @ c - target| nearly smallest."""
    columns = np.abs(basis).max(axis=0)
    weights = np.ones(len(target)) / len(target)
    best, least = None, np.inf
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq((basis / columns) * root[:, None], target * root, rcond=None)[0]
        error = np.abs(basis @ (found / columns) - target)
        if error.max() < least:
            best, least = found / columns, error.max()
        weights *= error
        weights /= weights.sum()
    return best


def fit(problem: Fit) -> tuple[list[np.floating], float]:
    """Coefficients, lowest first, and the largest weighted error they leave."""
    angle = (np.arange(NODES) + 0.5) * np.pi / NODES
    x = (problem.low + problem.high) / 2 + (problem.high - problem.low) / 2 * np.cos(angle)
    x = x[np.abs(x) > 1e-4]  # the targets are quotients that cancel around zero
    weight = reference(problem.weight)(x)
    target = reference(problem.target)(x) * weight
    powers = problem.variable(x)[:, None] ** np.arange(problem.terms)
    basis = powers * weight[:, None]
    rounded: list[np.floating] = []
    for term in range(problem.terms):
        rest = target - basis[:, :term] @ np.array(rounded, dtype=np.float64)
        rounded.append(problem.number(lawson(basis[:, term:], rest)[0]))
    error = np.abs(basis @ np.array(rounded, dtype=np.float64) - target).max()
    return rounded, float(error)


HALF_LN2 = float(mpmath.log(2) / 2) * 1.001  # rounding to the nearest n is not exact
QUARTER_PI = float(mpmath.pi / 4) * 1.01
ROOT2 = float(mpmath.sqrt(2))

# Of a mantissa from 1 + n / 16 on, a short number near its reciprocal: their product less one has
# few more digits than a float, or none more next to one, where logarithms are small. Around one the
# mantissas are what they are, or halves.
STEPS = np.where(np.arange(1, 15) == 1, 64, 128)
INNER = np.round(STEPS / (1 + (np.arange(1, 15) + 0.5) / 16)) / STEPS
RECIPROCALS = np.concatenate([[1.0], INNER, [0.5]])
RESTS = (1 + np.add.outer([0, 1], np.arange(16)) / 16) * RECIPROCALS - 1
LOWEST_REST, HIGHEST_REST = RESTS.min(), RESTS.max()

FITS = [
    Fit(
        "expTail",
        "exp(x) = 1 + x + x^2 p(x)",
        5,
        -HALF_LN2,
        HALF_LN2,
        lambda r: (mpmath.exp(r) - 1 - r) / r**2,
        lambda r: r**2 / mpmath.exp(r),
        identity,
        np.float32,
    ),
    Fit(
        "exp2Tail",
        "2^x = 1 + x p(x)",
        6,
        -0.5005,  # rounding to the nearest n is not exact
        0.5005,
        lambda x: (2**x - 1) / x,
        lambda x: abs(x) / 2**x,
        identity,
        np.float32,
    ),
    Fit(
        "exp2ShortTail",
        "2^x = 1 + x p(x)",
        3,
        -1 / 32,
        1 / 32,
        lambda x: (2**x - 1) / x,
        lambda x: abs(x) / 2**x,
        identity,
        np.float32,
    ),
    Fit(
        "expm1Tail",
        "expm1(x) = x + x^2 p(x)",
        6,
        -HALF_LN2,
        HALF_LN2,
        lambda r: (mpmath.exp(r) - 1 - r) / r**2,
        lambda r: abs(r**2 / mpmath.expm1(r)),
        identity,
        np.float32,
    ),
    Fit(
        "halfExpm1Tail",
        "expm1(2 x) / 2 = x + x^2 p(x)",
        5,
        -HALF_LN2 / 2,
        HALF_LN2 / 2,
        lambda r: (mpmath.expm1(2 * r) / 2 - r) / r**2,
        lambda r: abs(2 * r**2 / mpmath.expm1(2 * r)),
        identity,
        np.float32,
    ),
    Fit(
        "logTail",
        "log(1 + x) = x + x^2 p(x)",
        9,
        ROOT2 / 2 - 1,
        ROOT2 - 1,
        lambda f: (mpmath.log(1 + f) - f) / f**2,
        lambda f: abs(f**2 / mpmath.log(1 + f)),
        identity,
        np.float32,
    ),
    Fit(
        "logShortTail",
        "log(1 + x) = x + x^2 p(x)",
        4,
        LOWEST_REST,
        HIGHEST_REST,
        lambda f: (mpmath.log(1 + f) - f) / f**2,
        lambda f: abs(f**2 / mpmath.log(1 + f)),
        identity,
        np.float32,
    ),
    Fit(
        "log2ShortTail",
        "log2(1 + x) = x / ln(2) + x^2 p(x)",
        4,
        LOWEST_REST,
        HIGHEST_REST,
        lambda f: (mpmath.log(1 + f) - f) / f**2 / mpmath.log(2),
        lambda f: abs(f**2 / mpmath.log(1 + f) * mpmath.log(2)),
        identity,
        np.float32,
    ),
    Fit(
        "tanhTail",
        "tanh(x) = x + x^3 p(x^2)",
        5,
        0.0,
        0.625,
        lambda x: (mpmath.tanh(x) - x) / x**3,
        lambda x: x**3 / mpmath.tanh(x),
        square,
        np.float32,
    ),
    Fit(
        "erfNear",
        "erf(x) = x + x p(x^2)",
        6,
        0.0,
        0.93,
        lambda x: (mpmath.erf(x) - x) / x,
        lambda x: x / mpmath.erf(x),
        square,
        np.float32,
    ),
    Fit(
        "erfFar",
        "log(1 - erf(x)) = -x + x p(x)",
        7,
        0.92,
        3.95,
        lambda x: (mpmath.log(mpmath.erfc(x)) + x) / x,
        # d erf = erfc * d log(erfc)
        lambda x: x * mpmath.erfc(x) / mpmath.erf(x),
        identity,
        np.float32,
    ),
    Fit(
        "erfcFar",
        "(1 + 2 y) exp(y^2) erfc(y) = 5/4 + p(x), y = 4 (1 + x) / (1 - x)",
        11,
        (0.49 - 4) / (0.49 + 4),
        (10.2 - 4) / (10.2 + 4),
        lambda x: scaled_erfc(4 * (1 + x) / (1 - x)) - 1.25,
        lambda x: 1 / scaled_erfc(4 * (1 + x) / (1 - x)),
        identity,
        np.float32,
    ),
    Fit(
        "bellSlope",
        "1 - erf(x) = 2^(x p(x))",
        8,
        0.0,
        3.95,
        lambda x: mpmath.log(mpmath.erfc(x), 2) / x,
        # d 2^q = 2^q ln(2) dq; relative to 1 - erf(0)
        lambda x: x * mpmath.erfc(x) * mpmath.log(2),
        identity,
        np.float32,
    ),
    Fit(
        "sinTail",
        "sin(x) = x + x^3 p(x^2)",
        3,
        0.0,
        QUARTER_PI,
        lambda x: (mpmath.sin(x) - x) / x**3,
        lambda x: x**3 / mpmath.sin(x),
        square,
        np.float32,
    ),
    Fit(
        "cosTail",
        "cos(x) = 1 - x^2 / 2 + x^4 p(x^2)",
        3,
        0.0,
        QUARTER_PI,
        lambda x: (mpmath.cos(x) - 1 + x**2 / 2) / x**4,
        lambda x: x**4 / mpmath.cos(x),
        square,
        np.float32,
    ),
    Fit(
        "sinhTail",
        "sinh(x) = x + x^3 p(x^2)",
        4,
        0.0,
        1.0,
        lambda x: (mpmath.sinh(x) - x) / x**3,
        lambda x: x**3 / mpmath.sinh(x),
        square,
        np.float32,
    ),
    Fit(
        "asinTail",
        "asin(x) = x + x^3 p(x^2)",
        5,
        0.0,
        0.5,
        lambda x: (mpmath.asin(x) - x) / x**3,
        lambda x: x**3 / mpmath.asin(x),
        square,
        np.float32,
    ),
    Fit(
        "atanTail",
        "atan(x) = x + x^3 p(x^2)",
        9,
        0.0,
        1.0,
        lambda x: (mpmath.atan(x) - x) / x**3,
        lambda x: x**3 / mpmath.atan(x),
        square,
        np.float32,
    ),
    Fit(
        "log2OfRatio",
        "log2((1 + x) / (1 - x)) = x p(x^2)",
        6,
        0.0,
        (ROOT2 - 1) / (ROOT2 + 1),
        lambda x: mpmath.log((1 + x) / (1 - x), 2) / x,
        lambda x: x / mpmath.log((1 + x) / (1 - x), 2),
        square,
        np.float64,
    ),
    Fit(
        "wideExp2Tail",
        "2^x = 1 + x p(x)",
        7,
        -0.5,
        0.5,
        lambda x: (2**x - 1) / x,
        lambda x: abs(x) / 2**x,
        identity,
        np.float64,
    ),
]

SIXTEENTHS = np.exp2(np.arange(16) / 16).astype(np.float32)

# Pieces of 1 - erf(x), each around a multiple of 1 / PIECES_PER_UNIT, which makes its values there
# nearly floats: the lowest coefficients, whose rounding none of the others can make up for.
PIECES, PIECES_PER_UNIT, PIECE_TERMS = 16, np.float32(3.9366004), 6


def piece(number: int) -> Fit:
    return Fit(
        "",
        "",
        PIECE_TERMS,
        -0.5,
        0.5,
        lambda t: mpmath.erfc((number + t) / float(PIECES_PER_UNIT)),
        lambda t: mpmath.mpf(1),
        identity,
        np.float32,
    )


def print_sixteenths() -> None:
    print("/// 2^(n / 16) of column n.")
    print(f"constexpr float exp2Sixteenths[{len(SIXTEENTHS)}] = {{")
    print("    " + ", ".join(f"{value:#.9g}f" for value in SIXTEENTHS) + ",")
    print("};\n")


def print_table(name: str, values: np.ndarray) -> None:
    print(f"constexpr float {name}[{len(values)}] = {{")
    print("    " + ", ".join(f"{value:#.9g}f" for value in values.astype(np.float32)) + ",")
    print("};\n")


def print_logarithms() -> None:
    print("/// Nearly 1 / m, of mantissas m from 1 + n / 16 on in column n.")
    print_table("mantissaReciprocals", RECIPROCALS)
    for name, base in (("log", mpmath.e), ("log2", 2)):
        exact = [-mpmath.log(mpmath.mpf(value), base) for value in RECIPROCALS]
        high = np.round(np.array(exact, dtype=np.float64) * 2**15) / 2**15
        low = np.array([value - mpmath.mpf(part) for value, part in zip(exact, high)])
        print(f"/// Their negative {name}s: a multiple of 2^-15, and what it lacks.")
        print_table(f"{name}OfReciprocalsHigh", high)
        print_table(f"{name}OfReciprocalsLow", low.astype(np.float64))


def print_pieces() -> None:
    fits = [fit(piece(number)) for number in range(PIECES)]
    error = max(error for _, error in fits)
    print("/// 1 - erf((n + x) / bellPiecesPerUnit) = p(x) of column n, -0.5 <= x <= 0.5; ", end="")
    print(f"error {error * 2**24:.2f} * 2^-24.")
    print(f"constexpr float bellPiecesPerUnit = {PIECES_PER_UNIT:#.9g}f;")
    print(f"constexpr float bellPieces[{PIECE_TERMS}][{PIECES}] = {{")
    for term in range(PIECE_TERMS):
        print("    {" + ", ".join(f"{found[term]:#.9g}f" for found, _ in fits) + "},")
    print("};\n")


def main() -> None:
    for problem in FITS:
        coefficients, error = fit(problem)
        print(f"/// {problem.formula}, {problem.low:.3g} <= x <= {problem.high:.3g}; ", end="")
        wide = problem.number is np.float64
        bits, digits, suffix = (34, 17, "") if wide else (24, 9, "f")
        print(f"error {error * 2**bits:.2f} * 2^-{bits}.")
        print(f"constexpr {'double' if wide else 'float'} {problem.name}[] = {{")
        print(*(f"    {value:#.{digits}g}{suffix}," for value in coefficients), sep="\n")
        print("};\n")
    print_sixteenths()
    print_logarithms()
    print_pieces()


if __name__ == "__main__":
    main()
