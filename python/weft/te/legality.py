# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds of a schedule as a whole, whatever steps have led to it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from weft.te import dtypes
from weft.te.errors import ScheduleError
from weft.te.stages import Stage
from weft.te.targets import lanes_of

if TYPE_CHECKING:
    from weft.te.schedules import Schedule

_MOST_COPIES = 8192  # of a body, by unrolled and vectorised loops: seconds of compilation


def check(schedule: Schedule) -> None:
    """What holds of a schedule as a whole.

    Raises: ScheduleError.
    """
    from weft.te.nests import lowered

    for stage in schedule.stages:
        _check_marks(stage)
        _check_copies(stage)
    lowered(schedule)


def _check_copies(stage: Stage) -> None:
    """Raises: ScheduleError for a body that is written very often."""
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
