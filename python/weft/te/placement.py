# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the default schedule computes a producer: inlined, or in its reader's outermost loop."""

from __future__ import annotations

from math import prod

from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.analysis import (
    axis_of_rows,
    contiguous_axis,
    has_register_tiles,
    outer_axes,
    points,
)
from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Load
from weft.te.linear import linear
from weft.te.nests import Nest, lowered
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.targets import lanes_of

_STORES_ON_THEIR_WAY = 112  # vectors, by the number of entries of the store buffer (Golden Cove)
_MOST_INLINED = 24  # nodes of an expression that is computed again for each reader


def is_worth_inlining(s: Schedule, stage: Stage) -> bool:
    """Whether the tensor is elementwise, cheap, and has one reader that reads each element once."""
    if stage.state.reduce_axes or stage.op.scan is not None:
        return False
    if any(stage.tensor is each for each in s.outputs):
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
    repeated = points(readers[0]) > prod(stage.tensor.shape)
    if len(nodes) > _MOST_INLINED or len(loads) > 1 or (repeated and len(nodes) > 8):
        return False
    return not (costly and repeated)


def attach_producers(s: Schedule, stage: Stage) -> list[Stage]:
    """Computes the stage's row-by-row producers inside of its outermost loop, unless elements would
    be computed twice, or read before their stores have reached the cache. Returns the stages that
    are computed there."""
    outer = outer_axes(s, stage)
    if not outer or outer[0] is not stage.op.axis[0]:
        return []
    row = outer[0]
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
    class NotWorthIt(Exception):
        pass

    def attach() -> None:
        producer.compute_at(stage, row)
        for root in lowered(s).roots:
            for nest in root.all():
                whole = prod(producer.tensor.shape)
                if nest.tensor is not producer.tensor:
                    continue
                if prod(nest.sizes) * row.extent > whole or _waits_for_stores(s, nest):
                    raise NotWorthIt

    try:
        s.together(attach)
    except (ScheduleError, NotWorthIt):
        return False
    return True


def _waits_for_stores(s: Schedule, nest: Nest) -> bool:
    """Whether vectors are read that overlap several vectors stored just before, as windows of a
    small buffer do. Such a load waits until the stores have reached the cache. (A depthwise product
    of 24, 30, 30 took 1.7 times as long.)"""
    if prod(nest.sizes) > _STORES_ON_THEIR_WAY * lanes_of(dtypes.BYTES[nest.tensor.dtype]):
        return False
    for reader in s.stages:
        for load in ex.walk(reader.state.body) if reader.state.body is not None else ():
            if isinstance(load, Load) and load.tensor is nest.tensor and load.indices:
                form = linear(load.indices[-1], {}, lambda axis: axis.extent)
                if form is None or form.constant or len(form.terms) > 1:
                    return True
    return False


def _is_row_by_row(s: Schedule, stage: Stage) -> bool:
    """Whether the stage's inner loops are as efficient for one row as for many."""
    if not stage.state.reduce_axes:
        return True
    rows = axis_of_rows(stage, contiguous_axis(s, stage))
    return rows is None and not has_register_tiles(s, stage)
