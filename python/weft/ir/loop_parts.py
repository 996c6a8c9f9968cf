# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which part of a tensor a loop reads, as loops of linalg go along all of an operand."""

from __future__ import annotations

import math

from weft import errors
from weft.ir.loops import Index, Load


def place(index: Index) -> tuple[int, int] | None:
    """Start and step along a dim that one axis goes along, or none; None of several axes."""
    if len(index.terms) > 1:
        return None
    return index.offset, next(iter(index.terms.values()), 1)


def sizes_of(load: Load) -> tuple[int, ...]:
    """The sizes of the part that is read. Raises: errors.IRError for an index that leaves the
    tensor."""
    sizes = []
    for dim, (index, size) in enumerate(zip(load.index, load.tensor.shape, strict=True)):
        first = index.offset + sum(min(0, f * (a.size - 1)) for a, f in index.terms.items())
        last = index.offset + sum(max(0, f * (a.size - 1)) for a, f in index.terms.items())
        if first < 0 or last >= size:
            raise errors.IRError(
                f"expected indices of dim {dim} from 0 to {size - 1}, found {first} to {last}"
            )
        if any(f < 1 for f in index.terms.values()):
            raise errors.IRError(f"expected axes forward along dim {dim}, found a negative step")
        if place(index) is None:
            sizes.append(size)
        else:
            sizes.append(math.prod(axis.size for axis in index.terms))
    return tuple(sizes)


def within(load: Load) -> list[Index]:
    """The indices in the part that is read."""
    places = map(place, load.index)
    return [
        index if place is None else Index(dict.fromkeys(index.terms, 1), 0)
        for index, place in zip(load.index, places, strict=True)
    ]
