# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shifts of integers, as products and quotients by powers of two."""

from __future__ import annotations

import torch

from weft.frontend.dtypes import is_integer
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site, lowers


@lowers("__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar")
def left_shift(site: Site, x: Value, by):
    return site.builder.scalar("mul", site.operand(x, site.dtype), _power_of_two(site, by))


@lowers("__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar")
def right_shift(site: Site, x: Value, by):
    return _shifted_out(site, site.operand(x, site.dtype), _power_of_two(site, by))


@lowers("__lshift__.Tensor", "bitwise_left_shift.Tensor", "bitwise_left_shift.Scalar_Tensor")
def left_shift_by_each(site: Site, x, by: Value):
    """Zero where all bits are shifted out, or by less than none, as in ATen/native/cpu."""
    b = site.builder
    x, by, bits = _shifted_by_each(site, x, by)
    for step in _powers_below(bits):
        far = b.compare("ne", b.scalar("and", by, step), 0)
        x = b.select(far, b.scalar("mul", x, 2**step), x)
    return b.select(_is_within(site, by, bits), x, b.constant(0, x.dtype, x.shape))


@lowers("__rshift__.Tensor", "bitwise_right_shift.Tensor", "bitwise_right_shift.Scalar_Tensor")
def right_shift_by_each(site: Site, x, by: Value):
    """The sign alone is left where all bits are shifted out, or by less than none."""
    b = site.builder
    x, by, bits = _shifted_by_each(site, x, by)
    beyond = b.constant(0, x.dtype, x.shape)
    if x.dtype.is_signed:
        beyond = b.select(b.compare("lt", x, 0), b.constant(-1, x.dtype, x.shape), beyond)
    for step in _powers_below(bits):
        far = b.compare("ne", b.scalar("and", by, step), 0)
        x = b.select(far, _shifted_out(site, x, 2**step), x)
    return b.select(_is_within(site, by, bits), x, beyond)


def _shifted_by_each(site: Site, x, by: Value) -> tuple[Value, Value, int]:
    """Both operands, and how many bits they have."""
    if not is_integer(site.dtype):
        raise Decline(f"a shift of {site.dtype}")
    x, by = site.promoted(x, by, kind=Promotion.NO_OPMATH)
    return x, by, torch.iinfo(site.dtype).bits


def _powers_below(bits: int) -> list[int]:
    return [2**k for k in range(bits.bit_length() - 1)]


def _is_within(site: Site, by: Value, bits: int) -> Value:
    b = site.builder
    return b.binary("and", b.compare("ge", by, 0), b.compare("lt", by, bits))


def _shifted_out(site: Site, x: Value, divisor: int) -> Value:
    """The quotient rounded down, whose remainder are the low bits that are shifted out."""
    b = site.builder
    whole = b.binary("sub", x, b.scalar("and", x, divisor - 1))
    return b.scalar("div", whole, divisor)


def _power_of_two(site: Site, by) -> int:
    if site.dtype == torch.bool or not isinstance(by, int) or by < 0:
        raise Decline(f"a shift of {site.dtype} by {by!r}")
    if 2**by > torch.iinfo(site.dtype).max:
        raise Decline(f"a shift by {by} bits, as many as {site.dtype} has")
    return 2**by
