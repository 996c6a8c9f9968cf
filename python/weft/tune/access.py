# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the learned model is told of the access maps: how far apart, and how often again, the tile
of a schedule reads and writes each operand."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from weft.te import costs, dtypes
from weft.te.loops import tile_start
from weft.te.nests import Lowered, Nest, lowered
from weft.te.schedules import Schedule
from weft.te.tensors import Tensor
from weft.tune.kernel_text import specs_of

Features = tuple[float, ...]


@dataclass(frozen=True)
class Access:
    """One operand of a loop nest. strides: the bytes from one iteration of a loop to the next, of
    the loops along which it moves. size: bytes of an element."""

    strides: Mapping[Hashable, int]
    size: int

    def features(
        self, tile: Mapping[Hashable, int], lanes: Hashable | None, step: Hashable | None
    ) -> Features:
        """Logarithms of the bytes that the tile touches, how often it uses each of them, and the
        strides along the vectors and from step to step. tile: iterations of its loops."""
        touched = prod(each for loop, each in tile.items() if loop in self.strides)
        again = prod(each for loop, each in tile.items() if loop not in self.strides)
        strides = (abs(self.strides.get(loop, 0)) for loop in (lanes, step))
        return tuple(math.log2(1 + each) for each in (touched * self.size, again, *strides))


NO_ACCESS = (0.0,) * 4


def of_schedule(schedule: Schedule, args: Sequence[Tensor]) -> Features:
    """For each argument that of the nest with the most iterations that has it; and the same for the
    copies and other tensors of the schedule together."""
    low = lowered(schedule)
    found: dict[Tensor | None, tuple[int, Features]] = {}
    for root in low.roots:
        for nest in root.all():
            points = prod(low.extents[axis] for axis in (*nest.enclosing, *nest.loops))
            for tensor, features in _of_nest(low, nest):
                key = tensor if any(tensor is each for each in args) else None
                if points > found.get(key, (-1, NO_ACCESS))[0]:
                    found[key] = points, features
    return sum((found.get(each, (0, NO_ACCESS))[1] for each in (*args, None)), ())


def _of_nest(low: Lowered, nest: Nest) -> list[tuple[Tensor, Features]]:
    inside = nest.loops[tile_start(nest, nest.loops) :]
    tile = {axis: low.extents[axis] for axis in inside}
    lanes = next((axis for axis in inside if nest.kind(axis) == "vectorized"), None)
    reduced = [axis for axis in inside if axis.kind == "reduce"]
    step = next(reversed(reduced or [axis for axis in nest.loops if axis not in tile]), None)
    made = []
    for load in costs.accesses_of(nest):
        form = costs.address_of(low, nest, load)
        if form is not None:
            size = dtypes.BYTES[load.tensor.dtype]
            # A fused loop moves by quotients and remainders: its neighbours are taken for such.
            strides = {axis: (form.coefficient(axis) or 1) * size for axis in form.axes()}
            made.append((load.tensor, Access(strides, size).features(tile, lanes, step)))
    return made


_MAP = re.compile(r"(#\w+) = affine_map<\(([^)]*)\) -> \(([^)]*)\)>")
_CONTRACTION = re.compile(
    r"linalg\.generic \{indexing_maps = \[([^\]]*)\], "
    r"iterator_types = \[([^\]]*\"reduction\"[^\]]*)\]"
    r"[^\n]*? ins\([^:]*: ([^)]*)\) outs\([^:]*: ([^)]*)\)"
)


@dataclass(frozen=True)
class Contraction:
    """The accesses of a kernel's contraction. lanes, rows, step: the loops of vectors, of broadcast
    elements and of the reduction, None if there is none. extents: of all loops."""

    accesses: tuple[Access, ...]
    extents: Mapping[str, int]
    lanes: str
    rows: str | None
    step: str

    def features(self, numbers: Mapping[str, int], width: int) -> Features:
        """Those of a tile. numbers: rows, groups, chunk and panels. width: lanes of a vector."""
        wanted = {
            self.lanes: numbers["groups"] * width,
            self.step: numbers["chunk"],
            self.rows: numbers["rows"],
        }
        tile = {k: min(each, self.extents[k]) for k, each in wanted.items() if k is not None}
        block = {**tile, self.lanes: tile[self.lanes] * numbers["panels"]}
        return sum(
            (
                each.features(sizes, self.lanes, self.step)
                for each in self.accesses
                for sizes in (tile, block)
            ),
            (),
        )


@lru_cache(maxsize=64)
def contraction_of(module: str) -> Contraction | None:
    """The contraction of a kernel as MLIR of the stage `linalg`; None if there is none whose maps
    are plain loops."""
    maps = {name: (loops, results) for name, loops, results in _MAP.findall(module)}
    found = _CONTRACTION.search(module)
    if found is None:
        return None
    names, kinds, ins, outs = found.groups()
    types = specs_of(f"{ins}, {outs}")
    places = [maps.get(each.strip()) for each in names.split(",")]
    if types is None or None in places or len(types) != len(places):
        return None
    accesses, extents = [], {}
    for (shape, dtype), place in zip(types, places):
        assert place is not None
        loops = [each.strip() for each in place[1].split(",") if each.strip()]
        if len(loops) != len(shape) or any(not each.isalnum() for each in loops):
            return None
        size = dtypes.BYTES[dtype]
        strides = {loop: prod(shape[n + 1 :]) * size for n, loop in enumerate(loops)}
        extents.update(zip(loops, shape))
        accesses.append(Access(strides, size))
    loops = [each.strip() for each in places[0][0].split(",")]  # type: ignore[index]
    reduced = [loop for loop, kind in zip(loops, kinds.split(",")) if "reduction" in kind]
    result = accesses[-1].strides
    if not result or not all(loop in extents for loop in loops):
        return None
    lanes = min(result, key=lambda loop: (result[loop], -extents[str(loop)]))
    still = [loop for loop in result if loop != lanes and _is_broadcast(accesses, loop, lanes)]
    rows = max(still, key=lambda loop: extents[str(loop)], default=None)
    return Contraction(tuple(accesses), extents, str(lanes), rows and str(rows), reduced[-1])


def _is_broadcast(accesses: Sequence[Access], loop: Hashable, lanes: Hashable) -> bool:
    """Whether what the vectors read does not move along a loop."""
    read = [each.strides for each in accesses[:-1] if lanes in each.strides]
    return all(loop not in each for each in read)
