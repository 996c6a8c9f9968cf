# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a tensor reads its operands, as far as the default schedule needs to know."""

from __future__ import annotations

from math import prod

from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.expressions import Axis, Load
from weft.te.linear import linear
from weft.te.nests import inlined
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.targets import lanes_of
from weft.te.tensors import Tensor


def points(stage: Stage) -> int:
    return prod(axis.extent for axis in (*stage.op.axis, *stage.state.reduce_axes))


def widest(stage: Stage) -> int:
    loads = [node for node in ex.walk(stage.state.body) if isinstance(node, Load)]
    return max(dtypes.BYTES[each.dtype] for each in (stage.tensor, *loads))


def step_of(axis: Axis, index: ex.Expr) -> int | None:
    form = linear(index, {}, lambda each: each.extent)
    return form.coefficient(axis) if form is not None else None


def _last_dim(load: Load) -> int:
    """The dimension after which all dimensions have one element, so that it is contiguous in
    memory."""
    shape = load.tensor.shape
    return next((n for n in range(len(shape)) if prod(shape[n + 1 :]) == 1), 0)


def contiguous_axis(s: Schedule, stage: Stage) -> Axis | None:
    """The axis along which most loads are contiguous and the others do not move. The result's last
    axis is preferred, since stores are contiguous along it."""
    loads = [n for n in ex.walk(inlined(s, stage.state.body)) if isinstance(n, Load)]
    best, best_count = None, 0
    for axis in (*reversed(stage.op.axis), *reversed(stage.state.reduce_axes)):
        count = 0
        for load in loads:
            steps = [step_of(axis, index) for index in load.indices]
            last = _last_dim(load)
            if any(step is None or (step and n < last) for n, step in enumerate(steps)):
                count -= 2  # each iteration jumps from row to row
            elif 1 in steps[last:]:
                count += 1
        if axis.kind == "spatial" and axis is not stage.op.axis[-1]:
            count -= 1  # the store would be scattered
        if axis.kind == "reduce" and axis.extent < lanes_of(4):
            continue  # the axis is too short to fill a vector
        if count > best_count:
            best, best_count = axis, count
    return best


def has_register_tiles(s: Schedule, stage: Stage) -> bool:
    along = contiguous_axis(s, stage)
    if not stage.state.reduce_axes or along is None or along.kind == "reduce":
        return False
    return along.extent >= 2


# Of the terms of a row; measured in docs/measurements/0072-te-edges-and-packing.md.
_FEW_VECTORS = 2


def axis_of_rows(stage: Stage, along: Axis | None) -> Axis | None:
    """The loop over the result that the vectors of a reduction run along, if they are not to run
    along the reduction itself: because the combiner is the user's and may distinguish equal values,
    as the index of the first maximum does, or because the terms are so few that combining the lanes
    would cost more. It is the last loop that fills a vector, or else the longest. None if there is
    none, or if one row is computed at a time. along: the result of `contiguous_axis`."""
    kind, lanes = stage.state.body.kind, lanes_of(4)
    if along is not None and along.kind == "reduce" and kind != "fold":
        if along.extent > (lanes // 2 - 1 if kind == "sum" else _FEW_VECTORS * lanes):
            return None
    if stage.state.attach != "root" or any(
        each.is_attached_to(stage) for each in stage.schedule.stages
    ):
        return None
    axes = [axis for axis in stage.op.axis if axis.extent > 1]
    full = [axis for axis in axes if axis.extent >= lanes]
    return full[-1] if full else max(axes, key=lambda axis: axis.extent, default=None)


# Rows that an axis other than the last one must have to be chosen for a register tile.
_FEWEST_ROWS = 4


def rows_of_tiles(stage: Stage, along: Axis) -> Axis | None:
    """The axis of a register tile's rows: the last axis in which the elements that vectors read do
    not move, so that all rows share their loads; the last axis of all if there is none."""
    others = [axis for axis in stage.op.axis if axis is not along]
    sharing = [
        axis
        for axis in others
        if axis.extent >= _FEWEST_ROWS and panel_of(stage, along, axis) is not None
    ]
    return sharing[-1] if sharing else (others[-1] if others else None)


def panel_of(stage: Stage, along: Axis, rows: Axis | None) -> Tensor | None:
    """The tensor that vectors read and in which rows do not move. It is read again for each
    tile."""
    if rows is None or not isinstance(stage.state.body, ex.Reduce):
        return None
    for node in ex.walk(stage.state.body):
        if isinstance(node, Load):
            steps = [(step_of(along, i), step_of(rows, i)) for i in node.indices]
            if any(a for a, _ in steps) and not any(r or r is None for _, r in steps):
                return node.tensor
    return None


def outer_axes(s: Schedule, stage: Stage) -> list[Axis]:
    """The loops over the result that belong to neither a tile nor a vector."""
    if has_register_tiles(s, stage):
        along = contiguous_axis(s, stage)
        assert along is not None
        rows = rows_of_tiles(stage, along)
        return [axis for axis in stage.op.axis if axis is not along and axis is not rows]
    if not stage.state.reduce_axes:
        return list(stage.op.axis[:-1])
    rows = axis_of_rows(stage, contiguous_axis(s, stage))
    return [axis for axis in stage.op.axis if axis is not rows]
