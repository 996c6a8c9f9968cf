# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cost model: the predicted seconds of a call, from a schedule's loops and the machine.

For each nest it predicts the cycles of arithmetic, of loads and stores, of the latency of sums, and
of the cache lines that come from each level of memory. The greatest of these counts, and the
overhead of loops and threads is added. The model is made for ranking schedules. It knows nothing of
conflicts in caches, of pages of memory, or of other processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from weft import _core
from weft.machine import ASSUMED_CORE, frequency
from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.expressions import Axis, Load
from weft.te.linear import Linear, linear
from weft.te.loops import sums_begin, tile_start
from weft.te.nests import Lowered, Nest, lowered, reduction
from weft.te.schedules import Schedule
from weft.te.targets import lanes_of

_FUNCTION = 14.0  # an elementary function counts as so many operations
_ITERATION = 1.0  # cycles of a loop's own instructions, for each iteration
_THREADS = 4000.0  # cycles to start all threads and to wait for them


@dataclass(frozen=True)
class Cost:
    """Cycles of one core. memory: bytes from L2, from L3 and from memory."""

    arithmetic: float
    loads: float
    latency: float
    memory: tuple[float, float, float]
    loops: float

    @property
    def cycles(self) -> float:
        moving = sum(each / rate for each, rate in zip(self.memory, ASSUMED_CORE.cycle_bytes))
        return max(self.arithmetic, self.loads, self.latency, moving) + self.loops


def predicted_seconds(schedule: Schedule) -> float:
    """The predicted seconds of one call. Raises: ScheduleError for loops that cannot be
    generated."""
    low = lowered(schedule)
    total = 0.0
    for root in low.roots:
        cycles = sum(cost(low, nest).cycles for nest in root.all())
        shares = [low.extents[a] for a in root.loops if root.kind(a) == "parallel"]
        if shares:
            team = min(_core.get_num_threads(), max(shares[0], 1))
            pieces = -(-max(shares[0], 1) // team) / max(shares[0], 1)
            cycles = cycles * pieces + (_THREADS if team > 1 else 0.0)
        total += cycles
    return total / frequency()


def cost(low: Lowered, nest: Nest) -> Cost:
    """The cost of one nest, in all the iterations of the loops around it."""
    if not all(low.extents[axis] for axis in (*nest.enclosing, *nest.loops)):
        return Cost(0.0, 0.0, 0.0, (0.0, 0.0, 0.0), 0.0)  # the nest computes nothing
    extent = low.extents
    loops = [*nest.enclosing, *nest.loops]
    start = tile_start(nest, nest.loops)
    tile = nest.loops[start:]
    vector = next((axis for axis in tile if nest.kind(axis) == "vectorized"), None)
    points = prod(extent[axis] for axis in loops)
    lanes = lanes_of(max(4, dtypes.BYTES[nest.tensor.dtype]))
    chunks = -(-extent[vector] // lanes) if vector is not None else 1
    wide = extent[vector] if vector is not None else 1
    vectors = points / wide * chunks  # the vectors that are computed at all points
    unrolled = [a for a in tile if nest.kind(a) == "unrolled" and a.kind != "reduce"]
    spread = vector is not None and vector.kind != "reduce"
    instances = prod(extent[a] for a in unrolled) * (chunks if vector is not None else 1)
    terms = prod(extent[a] for a in tile if nest.kind(a) in ("dot", "tile"))
    in_registers = start <= sums_begin(nest, nest.loops)
    arithmetic = vectors / terms * _operations(nest) / ASSUMED_CORE.vector_operations
    steps = points / wide / prod(extent[a] for a in unrolled) / terms
    moved = sum(
        _registers(low, nest, each, unrolled, vector, chunks, lanes) for each in _read(nest)
    )
    stored = instances if reduction(nest) is None or not in_registers else 0
    loads = steps * max((moved + stored) / ASSUMED_CORE.vector_operations, stored)
    latency = (
        steps * ASSUMED_CORE.latency
        if reduction(nest) is not None and (in_registers or spread)
        else 0.0
    )
    if reduction(nest) is not None and not in_registers and not spread:
        latency = vectors * ASSUMED_CORE.latency * 2  # through memory
    if reduction(nest) is not None and nest.loops and nest.loops[-1].kind != "reduce":
        latency = latency if in_registers else 0.0
    return Cost(arithmetic, loads, latency, _traffic(low, nest, loops), steps * _ITERATION)


def _operations(nest: Nest) -> float:
    """Vector operations for an element; a product that is added is one."""
    count = 0.0
    for node in ex.walk(nest.body):
        if isinstance(node, ex.Call):
            count += _FUNCTION
        elif isinstance(node, (ex.Binary, ex.Select)) and node.dtype != "int64":
            count += 1
    return max(count, 1.0)


def _read(nest: Nest) -> list[Load]:
    return [node for node in ex.walk(nest.body) if isinstance(node, Load)]


def accesses_of(nest: Nest) -> list[Load]:
    """One element of each tensor that the nest reads, and the one that it writes."""
    target = Load(nest.tensor, nest.stage.op.axis)
    return list({id(each.tensor): each for each in [*_read(nest), target]}.values())


def address_of(low: Lowered, nest: Nest, load: Load) -> Linear | None:
    """The address in elements of the tensor, as a form of the loops."""
    total, stride = Linear(), 1
    for index, size in zip(reversed(load.indices), reversed(load.tensor.shape)):
        form = linear(index, nest.index, low.extent)
        if form is None:
            return None
        total, stride = total + form * stride, stride * size
    return total


def _registers(
    low: Lowered,
    nest: Nest,
    load: Load,
    unrolled: list[Axis],
    vector: Axis | None,
    chunks: int,
    lanes: int,
) -> float:
    """The loads of one iteration of the loops around the registers."""
    form = address_of(low, nest, load)
    if form is None:
        return float(chunks * lanes)
    count = float(prod(low.extents[a] for a in unrolled if a in form.axes()))
    if vector is None or vector not in form.axes():
        return count
    step = form.coefficient(vector)
    return count * chunks * (1 if step == 1 else lanes)


def _traffic(low: Lowered, nest: Nest, loops: list[Axis]) -> tuple[float, float, float]:
    """The bytes that come from L2, L3 and memory. For each cache, the innermost loops whose data
    fit into it are taken as one block, which is loaded once for each iteration of the loops outside
    that make it read other data."""
    touched = []
    for load in accesses_of(nest):
        form = address_of(low, nest, load)
        touched.append((load, form.axes() if form is not None else set(loops)))
    return tuple(  # type: ignore[return-value]
        _from_beyond(low, loops, touched, capacity) for capacity in ASSUMED_CORE.cache_bytes
    )


def _from_beyond(
    low: Lowered, loops: list[Axis], touched: list[tuple[Load, set[Axis]]], capacity: int
) -> float:
    def bytes_of(load: Load, axes: set[Axis], inside: list[Axis]) -> float:
        count = prod(low.extents[axis] for axis in inside if axis in axes)
        return min(count, prod(load.tensor.shape)) * dtypes.BYTES[load.dtype]

    for depth in range(len(loops) + 1):
        inside = loops[depth:]
        if sum(bytes_of(load, axes, inside) for load, axes in touched) > capacity:
            continue
        if depth == 0:
            return 0.0  # everything stays in the cache from call to call
        total = 0.0
        for load, axes in touched:
            outside = loops[:depth]
            while outside and outside[-1] not in axes:
                outside = outside[:-1]
            turns = prod(low.extents[axis] for axis in outside)
            total += bytes_of(load, axes, inside) * turns
        return total
    return 0.0
