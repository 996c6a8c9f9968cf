# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that most steps make: which of the stage's loops are meant, what has been done with these
already, and the step's own options."""

from __future__ import annotations

from weft.te.errors import ScheduleError
from weft.te.expressions import Axis
from weft.te.relations import Fuse, Split
from weft.te.stages import Stage
from weft.te.steps import Step


def leaf(stage: Stage, label: str) -> Axis:
    axis = stage.axis_named(label)
    if any(axis is each for each in stage.state.leaves):
        return axis
    labels = stage.state.labels
    for relation in stage.state.relations:
        if isinstance(relation, Split) and relation.parent is axis:
            parts = f"{labels[relation.outer]} and {labels[relation.inner]}"
            raise ScheduleError(label, f"it was split into {parts}", "use one of these")
        if isinstance(relation, Fuse) and (relation.outer is axis or relation.inner is axis):
            raise ScheduleError(label, f"it is part of {labels[relation.fused]}", "use that")
    raise ScheduleError(label, f"it is no loop of {stage.label} any more", "use one that is")


def plain(stage: Stage, axis: Axis, verb: str) -> None:
    if stage.op.scan is not None and axis is stage.op.scan.axis:
        raise ScheduleError(
            stage.state.labels[axis],
            f"it runs over the steps of a scan, one after the other, and cannot be {verb}",
            "use another loop",
        )
    kind = stage.state.kinds.get(axis)
    if kind:
        raise ScheduleError(
            stage.state.labels[axis],
            f"it is marked {kind} and cannot be {verb}",
            "do that before it is marked",
        )
    if stage.state.decomposed is axis:
        raise ScheduleError(
            stage.state.labels[axis],
            f"the sums begin at it and it cannot be {verb}",
            "do that before decompose_reduction",
        )
    for other in stage.schedule.stages:
        if other.is_attached_to(stage, axis):
            raise ScheduleError(
                stage.state.labels[axis],
                f"{other.label} is computed at it",
                f"call s[{other.label}].compute_root() first",
            )


def numbers(step: Step, *names: str) -> dict[str, int]:
    given = dict(step.numbers)
    for name in given:
        if name not in names:
            raise ScheduleError(step.stage, f"{step.verb} has no option {name}", "leave it out")
    return given


def arguments(step: Step, count: int) -> tuple[str, ...]:
    if len(step.names) != count:
        raise ScheduleError(
            step.stage,
            f"{step.verb} takes {count} names, found {len(step.names)}",
            "write as many",
        )
    return step.names
