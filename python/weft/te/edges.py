# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edges of a tensor that cut all tiles which cross them at the same place.

With tiles of 16 in 100 elements, which begin at multiples of 16, the one that is cut has 4. That
follows from the guard, so that neither loop bounds nor masks have to be computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.te.expressions import Axis
from weft.te.linear import AxisAtom, Linear


@dataclass(frozen=True)
class Edge:
    """An edge. axis: of the tile. count: the iterations in a tile that is cut. whole: a form that
    is not negative for a tile that is not cut. begins: a form that is not negative for a tile that
    has an element inside; None if all have."""

    guard: Linear
    axis: Axis
    count: int
    whole: Linear
    begins: Linear | None


def known_edge(
    guard: Linear, tile: set[Axis], outer: set[Axis], extent: Callable[[Axis], int]
) -> Edge | None:
    """The edge of a guard `last - start - axis >= 0` where starts are multiples of the axis'
    extent; None for any other guard. tile: the loops of the tile, which are unrolled. outer: the
    loops around it."""
    own = [axis for axis in guard.axes() if axis in tile]
    if len(own) != 1 or guard.coefficient(own[0]) != -1:
        return None
    (axis,) = own
    size, last = extent(axis), guard.constant
    starts = {atom: factor for atom, factor in guard.terms.items() if atom != AxisAtom(axis)}
    if last < 0 or not starts:
        return None
    for atom, factor in starts.items():
        axes = {atom.axis} if isinstance(atom, AxisAtom) else atom.form.axes()
        if not axes <= outer or factor > 0 or factor % size:
            return None
    begins = Linear(starts, last)
    whole = begins - (size - 1)
    all_begin = begins.range(extent)[0] >= 0
    return Edge(guard, axis, last % size + 1, whole, None if all_begin else begins)
