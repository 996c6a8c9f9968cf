# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running reductions that no kind of `weft.cumulative` is: loops over the steps of one dim."""

from __future__ import annotations

import math

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, dim_of, lowers

# Steps of a single row that take no longer than a call of PyTorch's kernel does beyond its own.
_MOST_STEPS_OF_ONE = 1 << 8


@lowers("logcumsumexp.default", "_logcumsumexp.default")
def logcumsumexp(site: Site, x: Value, dim):
    """By torch's steps, which carry float64 where elements are float32."""
    b = site.builder
    if not x.rank or not x.size:
        return x
    dim = dim_of(dim, x.rank)
    if x.shape[dim] == x.size > _MOST_STEPS_OF_ONE:
        raise Decline(f"logcumsumexp of one row of {x.size} elements, where nothing is a vector")
    is_half = x.dtype in (torch.bfloat16, torch.float16)
    wide = b.convert(x, torch.float32 if is_half else torch.float64)
    to_front = [dim, *(d for d in range(x.rank) if d != dim)]
    rows = b.transpose(wide, to_front)
    start = b.constant(-math.inf, wide.dtype, rows.shape[1:])

    def step(inner: Builder, state, elements, same):
        after = _logaddexp(inner, elements[0], state[0])
        # Twice, since slopes have the slope of the sum that is in them.
        for _ in range(2 if inner.graph.training else 0):
            of_last, of_rest = (_share(inner, each, after) for each in (elements[0], state[0]))
            # A sum that stays what it was, infinite or not, hands on what it is given.
            stays = inner.compare("eq", state[0], after)
            of_rest = inner.select(stays, inner.constant(1, after.dtype, after.shape), of_rest)
            after = inner.with_slopes(after, (elements[0], of_last), (state[0], of_rest))
        return [after], [after]

    _, (steps,) = b.scan([start], [rows], [], x.shape[dim], step)
    back = [to_front.index(d) for d in range(x.rank)]
    return site.finish(b.transpose(steps, back))


def _share(b: Builder, x: Value, total: Value) -> Value:
    """The slope of x in the logarithm of a sum that e^x is part of."""
    return b.unary("exp", b.binary("sub", x, total))


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """log(e^x + e^y); of equal infinities one of them."""
    low, high = b.binary("min", x, y), b.binary("max", x, y)
    value = b.unary("log1p", b.unary("exp", b.binary("sub", low, high)))
    value = b.binary("add", value, high)
    is_equal = b.compare("eq", low, high)
    is_infinite = b.compare("eq", b.unary("abs", low), math.inf)
    return b.select(b.binary("and", is_equal, is_infinite), x, value)
