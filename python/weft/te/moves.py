# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of a schedule: when each may be taken, and how it changes the stages' states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.te import microkernels, rewrites
from weft.te.checking import arguments, leaf, numbers, plain
from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Reduce
from weft.te.relations import Fuse, Split
from weft.te.stages import Stage
from weft.te.steps import Step

if TYPE_CHECKING:
    from weft.te.schedules import Schedule

WIDEST = 1024  # lanes of a vectorised loop: more would be a page of code


def take(schedule: Schedule, step: Step) -> Any:
    """Takes one step, by its verb. Raises: ScheduleError."""
    move = _MOVES.get(step.verb)
    if move is None:
        raise ScheduleError(
            step.stage, f"{step.verb!r} is no step", f"use one of {', '.join(_MOVES)}"
        )
    stage = schedule.named(step.stage)
    if stage.op.body is None and step.verb != "cache_read":
        raise ScheduleError(
            stage.label, "it is given by the caller and has no loops", "schedule its readers"
        )
    return move(stage, step)


def _split(stage: Stage, step: Step) -> tuple[Axis, Axis]:
    axis = leaf(stage, *arguments(step, 1))
    given = numbers(step, "factor", "nparts")
    if len(given) != 1:
        raise ScheduleError(step.names[0], "a split needs its size", "give factor or nparts")
    ((name, size),) = given.items()
    if size < 1:
        raise ScheduleError(step.names[0], f"{name} is {size}", "give a positive integer")
    plain(stage, axis, "split")
    extent = max(axis.extent, 1)
    factor = min(size, extent) if name == "factor" else -(-extent // min(size, extent))
    outer = Axis(-(-extent // factor) if axis.extent else 0, f"{axis.name}.outer", axis.kind)
    inner = Axis(factor, f"{axis.name}.inner", axis.kind)
    state = stage.state
    place = next(i for i, each in enumerate(state.leaves) if each is axis)
    state.leaves[place : place + 1] = [outer, inner]
    parts = size if name == "nparts" else 0
    state.relations.append(Split(axis, outer, inner, factor if not parts else 0, parts))
    stage.name_axis(state, outer)
    stage.name_axis(state, inner)
    return outer, inner


def _reorder(stage: Stage, step: Step) -> None:
    axes = [leaf(stage, label) for label in step.names]
    if len(set(axes)) != len(axes):
        twice = next(label for label in step.names if step.names.count(label) > 1)
        raise ScheduleError(twice, "it is named twice", "name each loop once")
    leaves = stage.state.leaves
    places = [i for i, each in enumerate(leaves) if each in set(axes)]
    for place, axis in zip(places, axes):
        leaves[place] = axis


def _fuse(stage: Stage, step: Step) -> Axis:
    if not step.names:
        return _singleton(stage)
    first, second = arguments(step, 2)
    outer, inner = leaf(stage, first), leaf(stage, second)
    state = stage.state
    if outer is inner:
        raise ScheduleError(first, "it cannot be fused with itself", "give another axis")
    if outer.kind != inner.kind:
        carrier = first if outer.kind == "reduce" else second
        raise ScheduleError(
            f"{first}, {second}",
            f"{carrier} carries the reduction and the other does not",
            "fuse axes of one kind",
        )
    place = next(i for i, each in enumerate(state.leaves) if each is outer)
    if place + 1 >= len(state.leaves) or state.leaves[place + 1] is not inner:
        raise ScheduleError(
            f"{first}, {second}",
            "they are no neighbours",
            f"reorder them so that {second} is the next loop inside {first}",
        )
    plain(stage, outer, "fused")
    plain(stage, inner, "fused")
    fused = Axis(outer.extent * inner.extent, f"{outer.name}.{inner.name}.fused", outer.kind)
    state.leaves[place : place + 2] = [fused]
    state.relations.append(Fuse(outer, inner, fused))
    stage.name_axis(state, fused)
    return fused


def _singleton(stage: Stage) -> Axis:
    """A loop with one iteration. Raises: ScheduleError for a tensor that has loops to fuse."""
    if stage.op.axis:
        axes = ", ".join(stage.state.labels[axis] for axis in stage.op.axis)
        raise ScheduleError(stage.label, "fuse needs axes", f"give neighbours among {axes}")
    once = Axis(1, "singleton", "spatial")
    stage.state.leaves.insert(0, once)
    stage.name_axis(stage.state, once)
    return once


def _mark(stage: Stage, label: str, kind: str) -> Axis:
    axis = leaf(stage, label)
    present = stage.state.kinds.get(axis)
    if present:
        raise ScheduleError(label, f"it is marked {present} already", "mark another loop")
    for other in stage.state.leaves if kind != "unrolled" else ():
        if stage.state.kinds.get(other) == kind:
            raise ScheduleError(
                label,
                f"{stage.state.labels[other]} is {kind} already",
                f"fuse the two, or leave one {kind}",
            )
    stage.state.kinds[axis] = kind
    return axis


def _vectorize(stage: Stage, step: Step) -> None:
    (label,) = arguments(step, 1)
    given = numbers(step, "reassociate")
    axis = leaf(stage, label)
    if axis.kind == "reduce" and not given.get("reassociate"):
        raise ScheduleError(
            label,
            "it carries the reduction, and vectors would add in another order",
            "vectorize a loop over the result, or say reassociate=True",
        )
    if axis.extent > WIDEST:
        raise ScheduleError(
            label,
            f"it has {axis.extent} iterations, more than the {WIDEST} of a vector loop",
            "split it and vectorize the inner loop",
        )
    _mark(stage, label, "vectorized")


def _parallel(stage: Stage, step: Step) -> None:
    (label,) = arguments(step, 1)
    if leaf(stage, label).kind == "reduce":
        raise ScheduleError(
            label,
            "it carries the reduction: threads would add to the same element",
            "use rfactor, or a loop over the result",
        )
    _mark(stage, label, "parallel")


def _unroll(stage: Stage, step: Step) -> None:
    (label,) = arguments(step, 1)
    extent = leaf(stage, label).extent
    if extent > WIDEST:
        raise ScheduleError(
            label, f"it has {extent} iterations", f"split it: at most {WIDEST} are unrolled"
        )
    _mark(stage, label, "unrolled")


def _compute_at(stage: Stage, step: Step) -> None:
    parent_label, label = arguments(step, 2)
    parent = stage.schedule.named(parent_label)
    if parent is stage:
        raise ScheduleError(stage.label, "it cannot be computed inside itself", "name its reader")
    if any(stage.tensor is each for each in stage.schedule.outputs):
        raise ScheduleError(
            stage.label, "it is a result and has to be whole", "compute it at the root"
        )
    axis = leaf(parent, label)
    stage.state.attach = (parent.tensor, axis)


def _compute_inline(stage: Stage, step: Step) -> None:
    arguments(step, 0)
    if any(stage.tensor is each for each in stage.schedule.outputs):
        raise ScheduleError(stage.label, "it is a result and has to be stored", "inline another")
    if stage.state.reduce_axes:
        raise ScheduleError(
            stage.label,
            "it is a reduction, which would be repeated for every reader's element",
            "use compute_at",
        )
    for other in stage.schedule.stages:
        if other.is_attached_to(stage):
            raise ScheduleError(
                stage.label,
                f"{other.label} is computed at one of its loops",
                f"call s[{other.label}].compute_root() first",
            )
    stage.state.attach = "inline"


def _compute_root(stage: Stage, step: Step) -> None:
    arguments(step, 0)
    stage.state.attach = stage.schedule.home(stage.tensor)


def _prefetch(stage: Stage, step: Step) -> None:
    label, tensor_label = arguments(step, 2)
    offset = numbers(step, "offset").get("offset", 1)
    axis, tensor = leaf(stage, label), stage.schedule.named(tensor_label).tensor
    if not any(tensor is each for each in stage.reads()):
        raise ScheduleError(
            tensor_label,
            f"{stage.label} does not read it",
            f"prefetch one of {', '.join(stage.schedule[t].label for t in stage.reads())}",
        )
    stage.state.prefetches.append((tensor, axis, offset))


def _decompose_reduction(stage: Stage, step: Step) -> None:
    (label,) = arguments(step, 1)
    axis = leaf(stage, label)
    if not stage.state.reduce_axes:
        raise ScheduleError(label, f"{stage.label} is no reduction", "leave the step out")
    body = stage.state.body
    if isinstance(body, Reduce) and len(body.values) > 1:
        raise ScheduleError(
            label,
            f"{stage.label} is one of {len(body.values)} results that are reduced together, in "
            "registers",
            "leave the step out",
        )
    if stage.state.decomposed is not None:
        raise ScheduleError(
            label,
            f"the sums begin at {stage.state.labels[stage.state.decomposed]} already",
            "choose one loop",
        )
    stage.state.decomposed = axis


_MOVES = {
    "split": _split,
    "reorder": _reorder,
    "fuse": _fuse,
    "vectorize": _vectorize,
    "parallel": _parallel,
    "unroll": _unroll,
    "compute_at": _compute_at,
    "compute_inline": _compute_inline,
    "compute_root": _compute_root,
    "prefetch": _prefetch,
    "cache_read": rewrites.cache_read,
    "cache_write": rewrites.cache_write,
    "rfactor": rewrites.rfactor,
    "decompose_reduction": _decompose_reduction,
    "tensorize": microkernels.tensorize,
}
