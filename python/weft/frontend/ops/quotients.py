# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients, those rounded to whole numbers, and what they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.frontend.dtypes import is_float, is_integer
from weft.frontend.graph import Value
from weft.frontend.table import Promotion, Site, lowers


@lowers("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def div(site: Site, x, y):
    return site.finish(
        site.builder.binary("div", *site.promoted(x, y, kind=Promotion.INT_TO_FLOAT, exact=(1,)))
    )


@lowers("div.Tensor_mode", "div.Scalar_mode")
def div_mode(site: Site, x, y, rounding_mode=None):
    if rounding_mode is None:
        return div(site, x, y)
    b = site.builder
    as_stored = _step_of_quotients(site, y)
    x, y = site.promoted(x, y, exact=(1,))
    _refuse_zero(site, y)
    if rounding_mode == "floor":
        quotient = _floor_divide(site, x, y, as_stored)
    else:
        quotient = as_stored(b.binary("div", x, y))
        quotient = b.unary("trunc", quotient) if is_float(x.dtype) else quotient
    if b.graph.training and is_float(x.dtype):
        # That of the parts would be their rounding, or an infinity times zero.
        quotient = b.with_slopes(quotient, (x, 0), (y, 0), subgradient="zero")
    return site.finish(quotient)


@lowers("floor_divide.default", "floor_divide.Scalar")
def floor_divide(site: Site, x, y):
    as_stored = _step_of_quotients(site, y)
    x, y = site.promoted(x, y, exact=(1,))
    _refuse_zero(site, y)
    return site.finish(_floor_divide(site, x, y, as_stored))


def _floor_divide(site: Site, x: Value, y: Value, as_stored: Callable[[Value], Value]) -> Value:
    b = site.builder
    rest = b.binary("rem", x, y)
    if is_float(x.dtype):
        return _floor_quotient(site, x, y, rest, as_stored)
    quotient = b.binary("div", x, y)
    return b.select(_wrong_sign(site, rest, y), b.scalar("sub", quotient, 1), quotient)


def _step_of_quotients(site: Site, y: Any) -> Callable[[Value], Value]:
    """What becomes of each step of a quotient that is rounded to a whole number: torch's kernels
    compute it in half precision where tensors divide, and in float32 where one number does."""
    by_number = getattr(y, "size", 1) == 1
    return lambda step: step if by_number or not is_float(step.dtype) else site.as_stored(step)


def _floor_quotient(
    site: Site, x: Value, y: Value, rest: Value, as_stored: Callable[[Value], Value]
) -> Value:
    """div_floor_floating of c10/util/generic_math.h: the quotient of what fmod leaves, so that
    1 // 0.1 is 9, the plain quotient where the divisor is zero, and its sign for zeros."""
    b = site.builder
    plain = b.binary("div", x, y)
    quotient = as_stored(b.binary("div", as_stored(b.binary("sub", x, rest)), y))
    less = as_stored(b.scalar("sub", quotient, 1))
    quotient = b.select(_wrong_sign(site, rest, y), less, quotient)
    floor = b.unary("floor", quotient)
    below = b.compare("gt", b.binary("sub", quotient, floor), 0.5)
    floor = b.select(below, b.scalar("add", floor, 1), floor)
    floor = b.select(b.compare("eq", quotient, 0), b.scalar("mul", plain, 0), floor)
    return b.select(b.compare("eq", y, 0), plain, floor)


@lowers("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(site: Site, x, y):
    b, divisor = site.builder, y
    x, y = site.promoted(x, y)
    _refuse_zero(site, y)
    rest = b.binary("rem", x, y)
    value = b.select(_wrong_sign(site, rest, y), b.binary("add", rest, y), rest)
    if b.graph.training and is_float(x.dtype):
        as_stored = _step_of_quotients(site, divisor)
        slope = b.unary("neg", _floor_quotient(site, x, y, rest, as_stored))
        slope = b.with_slopes(slope, (x, 0), (y, 0), subgradient="zero")
        value = b.with_slopes(value, (x, 1), (y, slope))
    return site.finish(value)


@lowers("fmod.Tensor", "fmod.Scalar")
def fmod(site: Site, x, y):
    x, y = site.promoted(x, y)
    _refuse_zero(site, y)
    return site.finish(site.builder.binary("rem", x, y))


def _wrong_sign(site: Site, rest: Value, y: Value) -> Value:
    """Whether a remainder is not zero and has not the divisor's sign."""
    b = site.builder
    differ = b.binary("xor", b.compare("lt", rest, 0), b.compare("lt", y, 0))
    return b.binary("and", b.compare("ne", rest, 0), differ)


def _refuse_zero(site: Site, y: Value) -> None:
    known = y.bounds is not None and not y.bounds[0] <= 0 <= y.bounds[1]
    if is_integer(y.dtype) and not known:
        site.builder.check(site.builder.compare("ne", y, 0), "RuntimeError: ZeroDivisionError")
