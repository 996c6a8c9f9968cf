# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where elements lie in padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from weft.frontend.graph import Value
from weft.frontend.sizes.extents import Extent, Factor

if TYPE_CHECKING:
    from weft.frontend.sizes.padding import Padding


def gathered(p: Padding, x: Value, dim: int, places: Value) -> Value:
    """Elements of one dim at places, int64 (n); those out of range count for nothing."""
    b = p.builder
    places = b.scalar("min", b.scalar("max", places, 0), x.shape[dim] - 1)
    taken = b.gather(x, [places], [dim])
    # The places are the first dim.
    order = [*range(1, dim + 1), 0, *range(dim + 1, x.rank)]
    return b.transpose(taken, order)


def places_of(p: Padding, number: Value, factors: Sequence[Factor]) -> Value:
    """Where each element is along a dim of these factors, of its number among those that count:
    int64, as `number`."""
    b, shape, step = p.builder, number.shape, 1
    place = b.constant(0, number.dtype, shape)
    for k in reversed(range(len(factors))):
        # Where nothing counts, nothing may be divided by either.
        count = b.scalar("max", b.convert(p.count(extent_of(p, factors[k])), number.dtype), 1)
        size = b.broadcast(count, shape)
        index = number if k == 0 else b.binary("rem", number, size)
        place = b.binary("add", place, b.scalar("mul", index, step))
        number, step = b.binary("div", number, size), step * factors[k].sizes[0]
    return place


def numbers_of(p: Padding, factors: Sequence[Factor], dtype: torch.dtype) -> Value:
    """The number of each element of dims of these factors among those that count: `dtype`, a dim a
    factor."""
    b, shape = p.builder, [factor.sizes[0] for factor in factors]
    counts = [p.count(extent_of(p, each)) for each in factors]
    number = b.iota(dtype, shape, 0)
    for k in range(1, len(factors)):
        size = b.broadcast(b.convert(counts[k], dtype), shape)
        number = b.binary("add", b.binary("mul", number, size), b.iota(dtype, shape, k))
    return number


def extent_of(p: Padding, factor: Factor) -> Extent:
    if factor.extent is None and not factor.is_static:
        p.refuse("places along what is no linear function of the symbols")
    return factor.extent or Extent((0,) * len(p.highs), factor.sizes[0])
