# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions made of other elementwise ones."""

from __future__ import annotations

import math

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers


@lowers("hypot.default")
def hypot(site: Site, x: Value, y: Value):
    """sqrt(x^2 + y^2); infinite where one is, whatever the other."""
    if site.dtype == torch.float64:
        raise Decline("hypot of float64")
    b = site.builder
    x, y = site.promoted(x, y)
    infinite = [b.compare("eq", b.unary("abs", each), math.inf) for each in (x, y)]
    wide = [b.convert(each, torch.float64) for each in (x, y)]
    root = b.unary("sqrt", b.binary("add", *(b.binary("mul", each, each) for each in wide)))
    endless = b.constant(math.inf, root.dtype, root.shape)
    value = b.convert(b.select(b.binary("or", *infinite), endless, root), x.dtype)
    if b.graph.training:
        value = b.with_slopes(value, *((each, b.binary("div", each, value)) for each in (x, y)))
    return site.finish(value)


@lowers("angle.default")
def angle(site: Site, x: Value):
    """The angle of real numbers: pi for negative ones, NaN for NaN, else 0. Its slope is zero."""
    b = site.builder
    value = b.convert(x, site.dtype)
    zero, half_turn = (b.constant(n, site.dtype, x.shape) for n in (0.0, math.pi))
    found = b.select(b.compare("lt", value, 0.0), half_turn, zero)
    found = b.select(b.compare("ne", value, value), value, found)
    return b.with_slopes(found, (value, 0), subgradient="zero")
