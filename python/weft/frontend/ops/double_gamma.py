# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of the logarithm of the gamma function in float64.

Source: the first two by the steps of torch's ATen/native/Math.h, whose values they have near whole
negative numbers, too; further ones by M. Abramowitz, I. Stegun, "Handbook of Mathematical
Functions" (1964), 6.4.7, 6.4.10 and 23.2.9: as zeta functions of Hurwitz.
"""

from __future__ import annotations

import math

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.ops.polynomial import polynomial

# Orders above one that are compiled; the factorial of the next one overflows nothing.
MOST_ORDERS = 20
_PSI_10 = 2.25175258906672110764
# B(2n) / 2n, of 1 / x^2 and further powers.
_DIGAMMA = (
    8.33333333333333333333e-2,
    -8.33333333333333333333e-3,
    3.96825396825396825397e-3,
    -4.16666666666666666667e-3,
    7.57575757575757575758e-3,
    -2.10927960927960927961e-2,
    8.33333333333333333333e-2,
)
# B(2n) / (2n)!
_ZETA = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)
_TERMS = 10


def double_digamma(b: Builder, x: Value) -> Value:
    """Of negative numbers that of 1 - x, less pi / tan(pi x); none of whole ones, and infinities of
    zeros."""
    one = b.constant(1, x.dtype, x.shape)
    is_negative = b.compare("lt", x, 0)
    far = b.select(is_negative, b.binary("sub", one, x), x)
    result = b.constant(0, x.dtype, x.shape)
    for _ in range(10):
        is_near = b.compare("lt", far, 10)
        step = b.binary("sub", result, b.binary("div", one, far))
        result = b.select(is_near, step, result)
        far = b.select(is_near, b.scalar("add", far, 1), far)
    square = b.binary("div", one, b.binary("mul", far, far))
    series = b.binary("mul", square, polynomial(b, square, _DIGAMMA))
    series = b.select(b.compare("lt", far, 1e17), series, b.constant(0, x.dtype, x.shape))
    half = b.binary("div", b.constant(0.5, x.dtype, x.shape), far)
    value = b.binary("sub", b.binary("add", result, b.unary("log", far)), half)
    value = b.binary("sub", value, series)
    value = b.select(b.compare("eq", far, 10), b.scalar("add", result, _PSI_10), value)
    whole = b.unary("trunc", x)
    angle = b.scalar("mul", b.binary("sub", x, whole), math.pi)
    turn = b.binary("div", b.constant(math.pi, x.dtype, x.shape), b.unary("tan", angle))
    value = b.select(is_negative, b.binary("sub", value, turn), value)
    is_pole = b.binary("and", is_negative, b.compare("eq", x, whole))
    value = b.select(is_pole, b.constant(math.nan, x.dtype, x.shape), value)
    endless = b.binary("copysign", b.constant(math.inf, x.dtype, x.shape), b.unary("neg", x))
    return b.select(b.compare("eq", x, 0), endless, value)


def double_trigamma(b: Builder, x: Value) -> Value:
    """Of numbers below a half (pi / sin(pi x))^2 less that of 1 - x."""
    one = b.constant(1, x.dtype, x.shape)
    is_low = b.compare("lt", x, 0.5)
    sine = b.unary("sin", b.scalar("mul", x, math.pi))
    turn = b.constant(math.pi * math.pi, x.dtype, x.shape)
    turn = b.binary("div", turn, b.binary("mul", sine, sine))
    result = b.select(is_low, b.unary("neg", turn), b.constant(0, x.dtype, x.shape))
    far = b.select(is_low, b.binary("sub", one, x), x)
    for _ in range(6):
        result = b.binary("add", result, b.binary("div", one, b.binary("mul", far, far)))
        far = b.scalar("add", far, 1)
    square = b.binary("div", one, b.binary("mul", far, far))
    series = b.constant(1 / 42, x.dtype, x.shape)
    for number in (1 / 30, 1 / 6):
        series = b.binary("mul", square, series)
        series = b.binary("sub", b.constant(number, x.dtype, x.shape), series)
    half = b.binary("div", one, b.scalar("mul", far, 2))
    near = b.binary("add", b.scalar("add", half, 1), b.binary("mul", square, series))
    result = b.binary("add", result, b.binary("div", near, far))
    return b.select(is_low, b.unary("neg", result), result)


def hurwitz_polygamma(b: Builder, order: int, x: Value) -> Value:
    """Of orders from two on: factorials times Hurwitz's zeta function, with the sign of odd orders;
    infinite at whole negative numbers and zeros, none at infinity, as PyTorch has it."""
    one, half = (b.constant(number, x.dtype, x.shape) for number in (1, -0.5))
    is_negative = b.compare("lt", x, 0)
    is_pole = b.binary("and", b.compare("le", x, 0), b.compare("eq", x, b.unary("floor", x)))
    # What the formulas read that do not count has slopes, since zero times none is no number.
    positive = b.select(is_negative, b.binary("sub", one, x), x)
    positive = b.select(is_pole, one, positive)
    is_inner = b.binary("and", is_negative, b.unary("not", is_pole))
    inner = b.select(is_inner, x, half)
    sign = 1.0 if order % 2 else -1.0
    value = b.scalar("mul", _hurwitz(b, order + 1, positive), math.factorial(order))
    reflected = _derivative_of_cotangent(b, order, inner)
    if order % 2:
        reflected = b.unary("neg", b.binary("add", value, reflected))
    else:
        reflected = b.binary("add", value, reflected)
    value = b.select(is_negative, reflected, value)
    value = b.select(is_pole, b.constant(math.inf, x.dtype, x.shape), value)
    nan = b.constant(math.nan, x.dtype, x.shape)
    value = b.select(b.compare("eq", x, math.inf), nan, value)
    return b.scalar("mul", value, sign)


def _hurwitz(b: Builder, s: int, x: Value) -> Value:
    """The sum of (x + k)^-s: of the first terms, and by the formula of Euler and Maclaurin."""
    one = b.constant(1, x.dtype, x.shape)
    term = total = None
    far = x
    for number in range(_TERMS):
        far = b.scalar("add", x, number) if number else x
        term = b.binary("div", one, _power(b, far, s))
        total = term if total is None else b.binary("add", total, term)
    # The last term is halved.
    inverse = b.binary("div", one, far)
    square = b.binary("mul", inverse, inverse)
    factors = [float(s)]
    for number in range(1, len(_ZETA)):
        factors.append(factors[-1] * (s + 2 * number - 1) * (s + 2 * number))
    series = polynomial(b, square, [c * f for c, f in zip(_ZETA, factors)])
    rest = b.scalar("sub", b.binary("mul", inverse, series), 0.5)
    rest = b.binary("add", rest, b.scalar("div", far, s - 1))
    return b.binary("add", total, b.binary("mul", term, rest))


def _power(b: Builder, x: Value, exponent: int) -> Value:
    """By squares."""
    result = None
    while exponent:
        if exponent % 2:
            result = x if result is None else b.binary("mul", result, x)
        exponent //= 2
        if exponent:
            x = b.binary("mul", x, x)
    return result


def _derivative_of_cotangent(b: Builder, order: int, x: Value) -> Value:
    """The derivative of pi cot(pi x) of that order: a polynomial in the cotangent c, of which each
    differentiation makes -pi (1 + c^2) times its slope."""
    coefficients = [0, 1]
    for _ in range(order):
        slope = [n * c for n, c in enumerate(coefficients)][1:]
        coefficients = [-(a + c) for a, c in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    angle = b.scalar("mul", b.binary("sub", x, b.level(b.unary("round_even", x))), math.pi)
    cotangent = b.binary("div", b.unary("cos", angle), b.unary("sin", angle))
    square = b.binary("mul", cotangent, cotangent)
    first = (order + 1) % 2  # the power of the last term
    value = polynomial(b, square, [float(c) for c in coefficients[first::2]])
    value = b.binary("mul", value, cotangent) if first else value
    return b.scalar("mul", value, math.pi ** (order + 1))
