# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding to integers, and to decimals."""

from __future__ import annotations

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers


@lowers("ceil.default", "floor.default", "trunc.default", "fix.default", "round.default")
def rounding(site: Site, x: Value):
    op = {"round": "round_even", "fix": "trunc"}.get(name := site.target.split(".")[1], name)
    return site.builder.unary(op, x) if is_float(x.dtype) else x


@lowers("round.decimals")
def rounded_to(site: Site, x: Value, *, decimals):
    """Rounds to multiples of a power of ten, by multiplying with it or dividing by it, as torch
    does, elements of half precision in float32."""
    b = site.builder
    if not is_float(x.dtype):
        return x
    if abs(decimals) > 15:
        raise Decline(f"round to {decimals} decimals")
    if decimals == 0:
        return b.unary("round_even", x)
    first, second = ("mul", "div") if decimals > 0 else ("div", "mul")
    power = float(10 ** abs(decimals))
    wide = b.convert(x, opmath(x.dtype))
    return site.finish(b.scalar(second, b.unary("round_even", b.scalar(first, wide, power)), power))
