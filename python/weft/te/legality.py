# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions on a schedule as a whole, whatever steps have led to it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from weft.te import dtypes
from weft.te.errors import ScheduleError
from weft.te.stages import Stage
from weft.te.targets import lanes_of

if TYPE_CHECKING:
    from weft.te.schedules import Schedule

_MOST_COPIES = 8192  # of a body, by unrolling and vectorising: more take seconds to compile


def check(schedule: Schedule) -> None:
    """Checks the conditions on a schedule as a whole.

    Raises: ScheduleError.
    """
    from weft.te.microkernels import check_operands
    from weft.te.nests import lowered

    for stage in schedule.stages:
        _check_scan(stage)
        _check_marks(stage)
        _check_copies(stage)
        _check_decomposed(stage)
        _check_microkernel(stage)
    for root in lowered(schedule).roots:
        for nest in root.all():
            check_operands(nest)


def _check_scan(stage: Stage) -> None:
    """Raises: ScheduleError for a scan whose steps do not run one after the other."""
    state, made = stage.state, stage.op.scan
    if made is None:
        return
    if state.attach != stage.schedule.home(stage.tensor):
        raise ScheduleError(
            stage.label, "it is a scan, which is computed whole", "schedule what its steps compute"
        )
    if stage.tensor is not made.results[0]:
        return
    label, place = state.labels[made.axis], None
    for number, axis in enumerate(state.leaves):
        if axis is made.axis:
            place = number
    if place is None or made.axis in state.kinds:
        raise ScheduleError(
            label, "it runs over the steps of a scan, one after the other", "use another loop"
        )
    for axis in state.leaves[place:]:
        if state.kinds.get(axis) == "parallel":
            raise ScheduleError(
                state.labels[axis],
                f"it runs inside {label}, the steps of a scan, after each of which threads would "
                "wait",
                f"reorder it outside of {label}",
            )


def _check_copies(stage: Stage) -> None:
    """Raises: ScheduleError for a body that unrolling and vectorising would copy too often."""
    state = stage.state
    unrolled = [axis for axis in state.leaves if state.kinds.get(axis) == "unrolled"]
    copies = prod(axis.extent for axis in unrolled)
    for axis in state.leaves:
        if state.kinds.get(axis) == "vectorized":
            copies *= -(-axis.extent // lanes_of(dtypes.BYTES["float64"]))
    if unrolled and copies > _MOST_COPIES:
        raise ScheduleError(
            state.labels[unrolled[-1]],
            f"the loops' body would be written {copies} times",
            f"unroll less: at most {_MOST_COPIES}",
        )


def _check_marks(stage: Stage) -> None:
    state = stage.state
    for axis in state.leaves:
        if state.kinds.get(axis) != "parallel":
            continue
        if state.attach != "root":
            raise ScheduleError(
                state.labels[axis],
                f"{stage.label} is computed inside another tensor's loops",
                "make the outer tensor's loop parallel",
            )
        for outside in state.leaves:
            if outside is axis:
                break
            if outside.kind == "reduce":
                raise ScheduleError(
                    state.labels[axis],
                    f"it runs inside {state.labels[outside]}, which carries the reduction",
                    f"reorder it outside of {state.labels[outside]}",
                )


def _check_decomposed(stage: Stage) -> None:
    """Raises: ScheduleError if the sums' first values would be written inside of the reduction."""
    state = stage.state
    if state.decomposed is None:
        return
    loops = [axis for axis in state.leaves if state.kinds.get(axis) != "vectorized"]
    loops += [axis for axis in state.leaves if state.kinds.get(axis) == "vectorized"]
    for axis in loops:
        if axis is state.decomposed:
            return
        if axis.kind == "reduce":
            raise ScheduleError(
                state.labels[state.decomposed],
                f"it runs inside {state.labels[axis]}, which carries the reduction: sums would "
                "begin again",
                f"choose {state.labels[axis]} or a loop outside of it",
            )


def _check_microkernel(stage: Stage) -> None:
    """Raises: ScheduleError if the loops of a microkernel are no longer the innermost ones."""
    state = stage.state
    if state.microkernel is None:
        return
    name, axes = state.microkernel
    last = state.leaves[-len(axes) :]
    for axis, found in zip(axes, last):
        if axis is not found:
            raise ScheduleError(
                state.labels[axis],
                f"it is part of the microkernel {name}",
                "move the loops outside of it only",
            )
    for other in stage.schedule.stages:
        for axis in axes:
            if other.is_attached_to(stage, axis):
                raise ScheduleError(
                    state.labels[axis],
                    f"it is part of the microkernel {name}",
                    f"compute {other.label} at a loop outside of it",
                )
