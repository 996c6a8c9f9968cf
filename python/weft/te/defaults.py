# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The analytical default schedule: vectors, register tiles, packing and threads are chosen from the
shape and the machine alone.

Elementwise producers with one reader are inlined. A reduction whose operands are contiguous along
an axis of the result is computed in register tiles, with vectors along that axis. One whose
operands are contiguous along the reduction has vectors along the reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from weft import _core
from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.analysis import (
    axis_of_rows,
    contiguous_axis,
    has_register_tiles,
    panel_of,
    points,
    rows_of_tiles,
    step_of,
    widest,
)
from weft.te.errors import TEError
from weft.te.expressions import Axis, Load
from weft.te.packing import packing_pays
from weft.te.placement import attach_producers, is_worth_inlining
from weft.te.register_tiles import Problem, best_tile
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.targets import lanes_of
from weft.te.tensors import Tensor

_WORTH_THREADS = 2_000_000  # operations: some 20 µs of one core
_FEW_ITERATIONS = 32  # a parallel loop with fewer iterations is fused with the next one
_SHARING_ROWS = 4  # rows that share an operand, in a reduction along which vectors run
_SHARES = 4  # iterations for each thread, so that threads that finish early can take more
_FEWEST_TILES = 8  # tiles of rows that have to read a panel to make packing it worthwhile
_FEW_TERMS = 32  # a reduction with so few terms is unrolled
_PANEL_BYTES = 1 << 19  # of a packed operand: half of a typical L2


@dataclass(frozen=True)
class Choice:
    """The choices that a tuner may override; None leaves a choice to the shape.

    rows: of a register tile, or rows that share an operand. registers: vectors in a row of the
    tile, or computed at once. packs: whether the operand that vectors read is packed. inlines:
    whether cheap producers are inlined. attaches: whether producers are computed row by row, inside
    their reader's loops.
    """

    rows: int | None = None
    registers: int | None = None
    packs: bool | None = None
    inlines: bool = True
    attaches: bool = True


def default_schedule(outputs: Any, choice: Choice = Choice()) -> Schedule:  # noqa: B008
    """A schedule of the tensors, made of steps that a user could take as well."""
    s = Schedule.of(outputs)
    if s.family is not None:
        raise TEError(
            "te.default_schedule: the steps depend on the sizes: build the tensors, or a schedule "
            "without steps"
        )
    for stage in s.stages:
        if choice.inlines and stage.op.body is not None and is_worth_inlining(s, stage):
            stage.compute_inline()
    for stage in reversed(s.stages):
        if s.scan_around(stage.tensor) is not None or stage.op.scan is not None:
            if stage.op.body is not None and stage.state.attach != "inline":
                _loops_of_a_step(s, stage, choice)
        elif stage.op.body is not None and stage.state.attach == "root":
            attached = attach_producers(s, stage) if choice.attaches else []
            _schedule(s, stage, attached, choice)
    return s


def _loops_of_a_step(s: Schedule, stage: Stage, choice: Choice) -> None:
    """Tiles and vectors for a tensor of a scan, inside the loop over steps, which is serial."""
    if stage.op.scan is None or stage.tensor.ndim > 1:
        _loops(s, stage, choice)


def _schedule(s: Schedule, stage: Stage, attached: list[Stage], choice: Choice) -> None:
    for each in attached:
        _loops(s, each, choice)
    work = sum(points(each) * _cost(each) for each in (stage, *attached))
    _loops(s, stage, choice)
    loops = _outermost(stage)
    if not loops or work < _WORTH_THREADS:
        return
    fusable = not any(each.is_attached_to(stage) for each in s.stages)
    enough = loops[0].extent >= _FEW_ITERATIONS
    stage.parallel(stage.fuse(*loops) if fusable and len(loops) > 1 and not enough else loops[0])


def _outermost(stage: Stage) -> list[Axis]:
    """The outermost loops over the result to which no step has been applied."""
    loops: list[Axis] = []
    for axis in stage.leaf_iter_vars:
        if axis.kind == "reduce" or axis in stage.state.kinds:
            break
        loops.append(axis)
    return loops


def _cost(stage: Stage) -> int:
    """Operations for each element, where an elementary function counts as ten."""
    nodes = list(ex.walk(stage.state.body))
    return 1 + sum(10 if isinstance(n, ex.Call) else isinstance(n, ex.Binary) for n in nodes)


def _loops(s: Schedule, stage: Stage, choice: Choice) -> None:
    """Tiles and vectors for one tensor."""
    lanes = lanes_of(max(4, widest(stage)))
    if has_register_tiles(s, stage):
        along = contiguous_axis(s, stage)
        assert along is not None
        _register_tiles(s, stage, along, lanes, choice)
    elif stage.state.reduce_axes:
        _reduction(stage, contiguous_axis(s, stage), lanes, choice)
    elif stage.op.axis:
        _elementwise(stage, lanes, choice)


def _elementwise(stage: Stage, lanes: int, choice: Choice) -> None:
    last = stage.op.axis[-1]
    if last.extent >= 2:
        _, inner = stage.split(last, factor=_vector_extent(last.extent, lanes, choice))
        stage.vectorize(inner)


def _vector_extent(extent: int, lanes: int, choice: Choice, most: int = 4, whole: int = 8) -> int:
    """The number of lanes to compute at once: all of them if `whole` registers hold them; otherwise
    up to `most` registers, the number with the fewest operations, where an iteration of the loop
    counts as one operation."""
    if choice.registers is not None:
        return choice.registers * lanes
    if extent <= whole * lanes:
        return extent
    steps = {n: -(-extent // (n * lanes)) * (n + 1) for n in range(1, most + 1)}
    return max(n for n in steps if steps[n] == min(steps.values())) * lanes


def _register_tiles(s: Schedule, stage: Stage, along: Axis, lanes: int, choice: Choice) -> None:
    """Register tiles of rows times vectors. The operand that vectors read is packed if many tiles
    of rows read it again."""
    sums = list(stage.state.reduce_axes)
    rows_axis = rows_of_tiles(stage, along)
    body = stage.state.body
    assert isinstance(body, ex.Reduce)
    panel = panel_of(stage, along, rows_axis)
    depth = prod(axis.extent for axis in sums)
    problem = Problem(
        rows_axis.extent if rows_axis is not None else 1,
        along.extent,
        lanes,
        len(body.values),
        depth,
        _bytes(panel) if panel is not None else 0,
        _row_stride(stage, rows_axis) if rows_axis is not None else 0,
        _taps(stage, rows_axis) if panel is None and depth <= _FEW_TERMS else 0,
    )
    tile = best_tile(problem, choice.rows, choice.registers)
    rows, columns = tile.rows, tile.registers * lanes
    outer = [axis for axis in stage.op.axis if axis is not along and axis is not rows_axis]
    along_outer, along_inner = stage.split(along, factor=columns)
    order: list[Axis]
    inner: list[Axis] = []
    rows_outer: Axis | None = None
    if rows_axis is not None:
        rows_outer, rows_inner = stage.split(rows_axis, factor=rows)
        inner = [rows_inner]
    row_tiles = rows_outer.extent if rows_outer is not None else 1
    packs = (
        panel is not None
        and not _is_window(stage, panel)
        and row_tiles > 1
        and along_outer.extent > 1  # otherwise its rows are adjacent without packing
        and depth * columns * _bytes(panel) <= _PANEL_BYTES
    )
    if packs and panel is not None and choice.packs is None:
        packs = packing_pays(row_tiles, tile.registers, depth, _row_step(stage, panel))
    elif choice.packs is False:
        packs = False
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
    if depth <= _FEW_TERMS:
        for axis in sums:
            stage.unroll(axis)
    if packs and panel is not None and rows_outer is not None:
        place = _shared_out(stage, along_outer, rows_outer, outer)
        packed = s.cache_read(panel, "packed", stage.tensor)
        s[packed].compute_at(stage, place)
        last = s[packed].op.axis[-1]
        s[packed].split(last, factor=columns)
        s[packed].vectorize(s[packed].leaf_iter_vars[-1])


def _shared_out(stage: Stage, panels: Axis, rows: Axis, outer: list[Axis]) -> Axis:
    """The loop over packed panels. If there are too few panels for the threads, it is fused with
    parts of the rows, and each part packs its panel again."""
    team = _core.get_num_threads()
    wanted = -(-_SHARES * team // max(prod(axis.extent for axis in (*outer, panels)), 1))
    parts = min(wanted, rows.extent // _FEWEST_TILES)
    if team == 1 or parts < 2 or points(stage) * _cost(stage) < _WORTH_THREADS:
        return panels
    part, _ = stage.split(rows, nparts=parts)
    stage.reorder(part, panels)
    return stage.fuse(part, panels)


def _taps(stage: Stage, rows: Axis | None) -> int:
    """For a window, the terms of the reduction along which an operand moves as it does along the
    rows; 0 for other reductions."""
    for node in ex.walk(stage.state.body) if rows is not None else ():
        for index in node.indices if isinstance(node, Load) else ():
            if step_of(rows, index):
                return max(
                    (a.extent for a in stage.state.reduce_axes if step_of(a, index)), default=0
                )
    return 0


def _row_stride(stage: Stage, rows: Axis) -> int:
    """The bytes from one row to the next of the operand that differs between rows."""
    for node in ex.walk(stage.state.body):
        for dim, index in enumerate(node.indices if isinstance(node, Load) else ()):
            if step := step_of(rows, index):
                return step * prod(node.tensor.shape[dim + 1 :]) * _bytes(node.tensor)
    return 0


def _row_step(stage: Stage, panel: Tensor) -> int:
    """The bytes from one row of a panel to the next row that the reduction reads."""
    steps = []
    for node in ex.walk(stage.state.body):
        if isinstance(node, Load) and node.tensor is panel:
            for dim, index in enumerate(node.indices):
                size = prod(panel.shape[dim + 1 :]) * _bytes(panel)
                steps += [abs(step_of(axis, index) or 0) * size for axis in stage.state.reduce_axes]
    return min((step for step in steps if step), default=0)


def _bytes(tensor: Tensor) -> int:
    return dtypes.BYTES[tensor.dtype]


def _is_window(stage: Stage, tensor: Tensor) -> bool:
    """Whether one of the tensor's indices adds an axis of the result and one of the reduction, so
    that a copy of what a tile reads contains elements of its neighbours."""
    for node in ex.walk(stage.state.body):
        for index in node.indices if isinstance(node, Load) and node.tensor is tensor else ():
            over = [any(step_of(a, index) for a in axes) for axes in _axes(stage)]
            if all(over):
                return True
    return False


def _axes(stage: Stage) -> tuple[Sequence[Axis], Sequence[Axis]]:
    return stage.op.axis, stage.state.reduce_axes


def _reduction(stage: Stage, along: Axis | None, lanes: int, choice: Choice) -> None:
    """A reduction without register tiles: vectors along many rows, or vectors along a contiguous
    reduction, for one row at a time or for several rows that share an operand."""
    rows = axis_of_rows(stage, along)
    if rows is not None:
        _rows_at_once(stage, rows, lanes, choice)
        return
    if along is None or along.kind != "reduce" or along.extent < lanes // 2:
        return
    if stage.state.body.kind == "fold":
        return  # the combiner may distinguish equal values, as the index of the first maximum does
    height = choice.rows or _SHARING_ROWS
    rows = _rows_that_share(stage, height) if height > 1 else None
    registers = 2 if rows is not None and along.extent >= 2 * lanes else 4
    whole = 8 if rows is None else registers
    factor = _vector_extent(along.extent, lanes, choice, registers, whole)
    along_outer, along_inner = stage.split(along, factor=factor)
    rest = [axis for axis in stage.state.reduce_axes if axis is not along]
    if rows is not None:
        rows_outer, rows_inner = stage.split(rows, factor=height)
        outer = [axis for axis in stage.op.axis if axis is not rows]
        stage.reorder(*outer, rows_outer, *rest, along_outer, rows_inner, along_inner)
        stage.unroll(rows_inner)
    else:
        stage.reorder(*rest, along_outer, along_inner)
    stage.vectorize(along_inner, reassociate=True)


def _rows_at_once(stage: Stage, rows: Axis, lanes: int, choice: Choice) -> None:
    """Vectors along the rows; the terms of each row are added in their order."""
    outer, inner = stage.split(rows, factor=_vector_extent(rows.extent, lanes, choice, 2, 2))
    rest = [axis for axis in stage.op.axis if axis is not rows]
    stage.reorder(*rest, outer, *stage.state.reduce_axes, inner)
    stage.vectorize(inner)
    if prod(axis.extent for axis in stage.state.reduce_axes) <= _FEW_TERMS:
        for axis in stage.state.reduce_axes:
            stage.unroll(axis)


def _rows_that_share(stage: Stage, height: int) -> Axis | None:
    """A loop over the result with enough iterations in which one operand of a product does not
    change."""
    if any(each.is_attached_to(stage) for each in stage.schedule.stages):
        return None
    loads = [node for node in ex.walk(stage.state.body) if isinstance(node, Load)]
    for axis in reversed(stage.op.axis):
        steps = [[step_of(axis, index) for index in load.indices] for load in loads]
        still = [all(step == 0 for step in each) for each in steps]
        if axis.extent >= 2 * height and any(still) and not all(still):
            return axis
    return None
