# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The analytical default schedule: vectors, register tiles, packing and threads, from the shape
and the machine alone.

Elementwise producers with one reader are inlined. A reduction whose operands lie contiguous along
an axis of the result is computed in register tiles, with vectors along that axis; one whose
operands lie contiguous along the reduction has vectors along that.
"""

from __future__ import annotations

from math import prod
from typing import Any

from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Load
from weft.te.linear import linear
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.targets import lanes_of, vector_registers
from weft.te.tensors import Tensor

_WORTH_THREADS = 2_000_000  # operations: some 20 µs of one core
_FEW_ITERATIONS = 32  # of a parallel loop: fewer are fused with the next one
_FEW_TERMS = 32  # a reduction that is unrolled
_PANEL_BYTES = 1 << 19  # of a packed operand: half of a usual L2
_MOST_INLINED = 24  # nodes of an expression that is computed again for each reader


def default_schedule(outputs: Any) -> Schedule:
    """A schedule of the tensors, made of the steps that one could take by hand."""
    s = Schedule.of(outputs)
    for stage in s.stages:
        if stage.op.body is not None and _is_worth_inlining(s, stage):
            stage.compute_inline()
    for stage in reversed(s.stages):
        if stage.op.body is not None and stage.state.attach == "root":
            _schedule(s, stage, _attach_producers(s, stage))
    return s


def _attach_producers(s: Schedule, stage: Stage) -> list[Stage]:
    """Computes inside the outermost loop what the stage reads row by row, if no element of it is
    computed twice: the row stays in the cache. Returns what is now computed there."""
    if len(_outer_axes(s, stage)) == 0:
        return []
    row = stage.op.axis[0]
    attached = []
    for producer in reversed(s.stages):
        state = producer.state
        fits = (
            producer.op.body is not None
            and producer is not stage
            and state.attach == "root"
            and not any(producer.tensor is each for each in s.outputs)
            and _is_row_by_row(s, producer)
        )
        if fits and _attached(s, producer, stage, row):
            attached.append(producer)
    return attached


def _attached(s: Schedule, producer: Stage, stage: Stage, row: Axis) -> bool:
    from weft.te.nests import lowered

    class Repeats(Exception):
        pass

    def attach() -> None:
        producer.compute_at(stage, row)
        for root in lowered(s).roots:
            for nest in root.all():
                whole = prod(producer.tensor.shape)
                if nest.tensor is producer.tensor and prod(nest.sizes) * row.extent > whole:
                    raise Repeats

    try:
        s.together(attach)
    except (ScheduleError, Repeats):
        return False
    return True


def _is_row_by_row(s: Schedule, stage: Stage) -> bool:
    """Whether its inner loops are as good for one row as for many."""
    return not stage.state.reduce_axes or not _has_register_tiles(s, stage)


def _has_register_tiles(s: Schedule, stage: Stage) -> bool:
    along = _contiguous_axis(s, stage)
    lanes = lanes_of(max(4, _widest(stage)))
    if not stage.state.reduce_axes or along is None or along.kind == "reduce":
        return False
    return along.extent >= lanes // 2


def _outer_axes(s: Schedule, stage: Stage) -> list[Axis]:
    """Loops over the result that no tile or vector is made of."""
    if _has_register_tiles(s, stage):
        along = _contiguous_axis(s, stage)
        return [axis for axis in stage.op.axis if axis is not along][:-1]
    return list(stage.op.axis) if stage.state.reduce_axes else list(stage.op.axis[:-1])


def _is_worth_inlining(s: Schedule, stage: Stage) -> bool:
    """Elementwise, cheap, and read once for each element of one reader."""
    if stage.state.reduce_axes or any(stage.tensor is each for each in s.outputs):
        return False
    readers = [each for each in s.stages if any(t is stage.tensor for t in each.reads())]
    if len(readers) != 1:
        return False
    nodes = list(ex.walk(stage.state.body))
    loads = [
        node
        for node in ex.walk(readers[0].state.body)
        if isinstance(node, Load) and node.tensor is stage.tensor
    ]
    costly = any(isinstance(node, ex.Call) for node in nodes)
    repeated = _points(readers[0]) > prod(stage.tensor.shape)
    if len(nodes) > _MOST_INLINED or len(loads) > 1 or (repeated and len(nodes) > 8):
        return False
    return not (costly and repeated)


def _points(stage: Stage) -> int:
    return prod(axis.extent for axis in (*stage.op.axis, *stage.state.reduce_axes))


def _schedule(s: Schedule, stage: Stage, attached: list[Stage]) -> None:
    for each in attached:
        _loops(s, each)
    work = sum(_points(each) * _cost(each) for each in (stage, *attached))
    _loops(s, stage)
    loops = _outermost(stage)
    if not loops or work < _WORTH_THREADS:
        return
    fusable = not any(each.is_attached_to(stage) for each in s.stages)
    enough = loops[0].extent >= _FEW_ITERATIONS
    stage.parallel(stage.fuse(*loops) if fusable and len(loops) > 1 and not enough else loops[0])


def _outermost(stage: Stage) -> list[Axis]:
    """Loops at the outside that are over the result and not marked."""
    loops: list[Axis] = []
    for axis in stage.leaf_iter_vars:
        if axis.kind == "reduce" or axis in stage.state.kinds:
            break
        loops.append(axis)
    return loops


def _cost(stage: Stage) -> int:
    """Operations for each element, elementary functions as ten."""
    nodes = list(ex.walk(stage.state.body))
    return 1 + sum(10 if isinstance(n, ex.Call) else isinstance(n, ex.Binary) for n in nodes)


def _loops(s: Schedule, stage: Stage) -> None:
    """Tiles and vectors of one tensor."""
    lanes = lanes_of(max(4, _widest(stage)))
    if _has_register_tiles(s, stage):
        along = _contiguous_axis(s, stage)
        assert along is not None
        _register_tiles(s, stage, along, lanes)
    elif stage.state.reduce_axes:
        _along_the_reduction(stage, _contiguous_axis(s, stage), lanes)
    elif stage.op.axis:
        _elementwise(stage, lanes)


def _widest(stage: Stage) -> int:
    loads = [node for node in ex.walk(stage.state.body) if isinstance(node, Load)]
    return max(dtypes.BYTES[each.dtype] for each in (stage.tensor, *loads))


def _step(axis: Axis, index: ex.Expr) -> int | None:
    form = linear(index, {}, lambda each: each.extent)
    return form.coefficient(axis) if form is not None else None


def _contiguous_axis(s: Schedule, stage: Stage) -> Axis | None:
    """The axis along which most loads are contiguous and the rest do not move; the result's last
    one before any other, as stores follow it."""
    from weft.te.nests import inlined

    loads = [n for n in ex.walk(inlined(s, stage.state.body)) if isinstance(n, Load)]
    best, best_count = None, 0
    for axis in (*reversed(stage.op.axis), *reversed(stage.state.reduce_axes)):
        count = 0
        for load in loads:
            steps = [_step(axis, index) for index in load.indices]
            if any(step is None or (step and n < len(steps) - 1) for n, step in enumerate(steps)):
                count -= 2  # it jumps from row to row
            elif steps and steps[-1] == 1:
                count += 1
        if axis.kind == "spatial" and axis is not stage.op.axis[-1]:
            count -= 1  # the store would be scattered
        if axis.kind == "reduce" and axis.extent < lanes_of(4):
            continue  # no vector is full
        if count > best_count:
            best, best_count = axis, count
    return best


def _elementwise(stage: Stage, lanes: int) -> None:
    last = stage.op.axis[-1]
    if last.extent >= 2:
        _, inner = stage.split(last, factor=_vector_extent(last.extent, lanes))
        stage.vectorize(inner)


def _vector_extent(extent: int, lanes: int, most: int = 4) -> int:
    """Lanes to compute at once: up to `most` registers, with little left over."""
    for registers in range(most, 0, -1):
        if extent % (registers * lanes) == 0:
            return registers * lanes
    if extent <= lanes:
        return 1 << (extent - 1).bit_length() if extent > 1 else 1
    waste = {n: -extent % (n * lanes) for n in range(1, most + 1)}
    best = min(waste.values())
    return max(n for n, left in waste.items() if left == best) * lanes


def _divisor(extent: int, most: int) -> int:
    """Rows of a tile: a divisor of the extent, if there is a good one."""
    for size in range(most, most // 2, -1):
        if extent % size == 0:
            return size
    return min(most, max(extent, 1))


def _register_tiles(s: Schedule, stage: Stage, along: Axis, lanes: int) -> None:
    """Rows times vectors in registers; the operand that vectors read is packed if many tiles of
    rows read it again."""
    sums = list(stage.state.reduce_axes)
    others = [axis for axis in stage.op.axis if axis is not along]
    columns = _vector_extent(along.extent, lanes)
    registers = columns // lanes or 1
    rows_axis = others[-1] if others else None
    most = max(1, min(12, (vector_registers() - 2 - registers) // registers))
    rows = _divisor(rows_axis.extent, most) if rows_axis is not None else 1
    outer = others[:-1]
    along_outer, along_inner = stage.split(along, factor=columns)
    order: list[Axis]
    inner: list[Axis] = []
    rows_outer: Axis | None = None
    if rows_axis is not None:
        rows_outer, rows_inner = stage.split(rows_axis, factor=rows)
        inner = [rows_inner]
    panel = _panel(stage, along, rows_axis)
    packs = panel is not None and _points_of(sums) * columns * _bytes(panel) <= _PANEL_BYTES
    if rows_outer is None:
        order = [*outer, along_outer]
    elif packs:
        order = [*outer, along_outer, rows_outer]
    else:
        order = [*outer, rows_outer, along_outer]
    stage.reorder(*order, *sums, *inner, along_inner)
    for axis in inner:
        stage.unroll(axis)
    stage.vectorize(along_inner)
    if prod(axis.extent for axis in sums) <= _FEW_TERMS:
        for axis in sums:
            stage.unroll(axis)
    if packs and panel is not None and rows_outer is not None and rows_outer.extent >= 4:
        packed = s.cache_read(panel, "packed", stage.tensor)
        s[packed].compute_at(stage, along_outer)
        last = s[packed].op.axis[-1]
        s[packed].split(last, factor=columns)
        s[packed].vectorize(s[packed].leaf_iter_vars[-1])


def _points_of(axes: list[Axis]) -> int:
    return prod(axis.extent for axis in axes)


def _bytes(tensor: Tensor) -> int:
    return dtypes.BYTES[tensor.dtype]


def _panel(stage: Stage, along: Axis, rows: Axis | None) -> Tensor | None:
    """The tensor that vectors read and rows do not move in: it is read again for each tile."""
    if rows is None or not isinstance(stage.state.body, ex.Reduce):
        return None
    for node in ex.walk(stage.state.body):
        if isinstance(node, Load):
            steps = [(_step(along, i), _step(rows, i)) for i in node.indices]
            if any(a for a, _ in steps) and not any(r or r is None for _, r in steps):
                return node.tensor
    return None


def _along_the_reduction(stage: Stage, along: Axis | None, lanes: int) -> None:
    """One row at a time, with vectors along the contiguous reduction."""
    if along is not None and along.kind == "reduce" and along.extent >= lanes // 2:
        along_outer, along_inner = stage.split(along, factor=_vector_extent(along.extent, lanes))
        rest = [axis for axis in stage.state.reduce_axes if axis is not along]
        stage.reorder(*rest, along_outer, along_inner)
        stage.vectorize(along_inner, reassociate=True)
