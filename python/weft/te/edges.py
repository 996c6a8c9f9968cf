# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edges of a tensor that cut all tiles which reach beyond them in the same place.

Tiles of 16 in 100 elements begin at multiples of 16: the one that is cut has 4. That follows from
the guard, and neither bounds nor masks have to be computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.te.expressions import Axis
from weft.te.linear import AxisAtom, Linear


@dataclass(frozen=True)
class Edge:
    """axis: of the tile; count: its iterations in a tile that is cut. whole: is not negative for a
    tile that is not cut; begins: for one of which something lies inside, None if all do."""

    guard: Linear
    axis: Axis
    count: int
    whole: Linear
    begins: Linear | None


def known_edge(
    guard: Linear, tile: set[Axis], outer: set[Axis], extent: Callable[[Axis], int]
) -> Edge | None:
    """Of a guard `last - start - axis >= 0` where starts are multiples of the axis' extent; None of
    any other. tile: loops of the tile that are written out; outer: those around it."""
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
