# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that add a tensor to the schedule: cache_read, cache_write and rfactor."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from weft.te.errors import ScheduleError
from weft.te.expressions import (
    Axis,
    Expr,
    Load,
    Reduce,
    Select,
    arithmetic,
    compared,
    substituted,
    transformed,
)
from weft.te.relations import Fuse, Split
from weft.te.tensors import Operation, Tensor

if TYPE_CHECKING:
    from weft.te.stages import Stage
    from weft.te.steps import Step


def _redirected(body: Expr, old: Tensor, new: Tensor) -> Expr:
    def change(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.tensor is old:
            return Load(new, tuple(_redirected(each, old, new) for each in node.indices))
        return None

    return transformed(body, change)


def cache_read(stage: Stage, step: Step) -> Tensor:
    if len(step.names) < 2:
        raise ScheduleError(stage.label, "cache_read needs its readers", "name at least one")
    scope, *labels = step.names
    readers = [stage.schedule.named(label) for label in labels]
    old = stage.tensor
    for reader in readers:
        if not any(old is each for each in reader.reads()):
            raise ScheduleError(stage.label, f"{reader.label} does not read it", "name its readers")
    axes = tuple(Axis(axis.extent, f"{axis.name}.c", "spatial") for axis in stage.op.axis)
    new = Tensor(
        old.shape, old.dtype, Operation(f"{stage.label}.{scope}", axes, Load(old, axes), "cache")
    )
    stage.schedule.add(new)
    for reader in readers:
        reader.state.body = _redirected(reader.state.body, old, new)
    return new


def _untouched(stage: Stage, verb: str) -> None:
    state = stage.state
    made = [*stage.op.axis, *state.reduce_axes]
    moved = len(state.leaves) != len(made) or any(map(operator.is_not, state.leaves, made))
    chosen = state.decomposed is not None or state.microkernel is not None
    changed = state.relations or state.kinds or state.prefetches or moved or chosen
    if changed or state.attach != stage.schedule.home(stage.tensor):
        raise ScheduleError(
            stage.label, f"its loops were changed before {verb}", f"call {verb} ahead of the rest"
        )


def cache_write(stage: Stage, step: Step) -> Tensor:
    if len(step.names) != 1:
        raise ScheduleError(stage.label, "cache_write needs a scope", "give one name")
    if stage.op.scan is not None:
        raise ScheduleError(
            stage.label,
            "it is a scan, whose steps are read where they are written",
            f"call cache_write of {', '.join(each.name for each in stage.op.scan.update)}",
        )
    _untouched(stage, "cache_write")
    old, body = stage.tensor, stage.state.body
    axes = tuple(Axis(axis.extent, f"{axis.name}.c", "spatial") for axis in stage.op.axis)
    values: dict[Axis, Expr] = dict(zip(stage.op.axis, axes))
    moved = substituted(body, values)
    new = Tensor(
        old.shape, old.dtype, Operation(f"{stage.label}.{step.names[0]}", axes, moved, "cache")
    )
    stage.schedule.add(new)
    state = stage.state
    state.body = Load(new, stage.op.axis)
    state.leaves = list(stage.op.axis)
    return new


def rfactor(stage: Stage, step: Step) -> Tensor:
    state, body = stage.state, stage.state.body
    if len(step.names) != 1:
        raise ScheduleError(stage.label, "rfactor needs one loop", "name a reduction loop")
    axis = stage.axis_named(step.names[0])
    place = dict(step.numbers).get("factor_axis", 0)
    if not any(axis is each for each in state.leaves) or axis.kind != "reduce":
        raise ScheduleError(
            step.names[0], "it is no loop that carries the reduction", "name one that does"
        )
    if not 0 <= place <= len(stage.op.axis):
        raise ScheduleError(
            step.names[0], f"factor_axis is {place}", f"give 0 to {len(stage.op.axis)}"
        )
    for each in state.leaves:
        if each.kind == "reduce" and each in state.kinds:
            raise ScheduleError(
                state.labels[each], f"it is marked {state.kinds[each]}", "call rfactor first"
            )
    if state.decomposed is not None:
        raise ScheduleError(step.names[0], "the sums begin elsewhere", "call rfactor first")
    assert isinstance(body, Reduce)
    if len(body.values) > 1:
        raise ScheduleError(
            step.names[0],
            f"{stage.label} is one of {len(body.values)} results that are reduced together",
            "split the reduction in the formula",
        )
    return _factored(stage, axis, place, body)


def _factored(stage: Stage, axis: Axis, place: int, body: Reduce) -> Tensor:
    """The partial results. The other reduction loops become reduce axes of the new tensor."""
    state = stage.state
    spatial = [Axis(each.extent, each.name, "spatial") for each in stage.op.axis]
    new_axis = Axis(axis.extent, axis.name, "spatial")
    values: dict[Axis, Expr] = dict(zip(stage.op.axis, spatial))
    values[axis] = new_axis
    rest: list[Axis] = []
    for leaf in state.leaves:
        if leaf.kind == "reduce" and leaf is not axis:
            values[leaf] = Axis(leaf.extent, leaf.name, "reduce")
            rest.append(values[leaf])
    value = _unsplit(stage, values, body)
    partial = body.over((value,), tuple(rest)) if rest else value
    spatial.insert(place, new_axis)
    shape = tuple(each.extent for each in spatial)
    new = Tensor(shape, body.dtype, Operation(f"{stage.label}.rf", tuple(spatial), partial))
    stage.schedule.add(new)
    over = Axis(axis.extent, axis.name, "reduce")
    indices = list(stage.op.axis)
    indices.insert(place, over)
    state.body = body.over((Load(new, tuple(indices)),), (over,))
    state.leaves = [each for each in state.leaves if each.kind != "reduce"] + [over]
    state.relations = [each for each in state.relations if _parent(each).kind != "reduce"]
    stage.name_axis(state, over)
    return new


def _parent(relation: Split | Fuse) -> Axis:
    return relation.parent if isinstance(relation, Split) else relation.outer


def _unsplit(stage: Stage, values: dict[Axis, Expr], body: Reduce) -> Expr:
    """The reduced value in terms of the loops, or the neutral value where a split exceeds an
    axis."""
    bounds: list[Expr] = []
    for relation in reversed(stage.state.relations):
        parent = _parent(relation)
        if parent.kind != "reduce":
            continue
        if isinstance(relation, Split):
            outer, inner = values[relation.outer], values[relation.inner]
            values[parent] = arithmetic(
                "add", arithmetic("mul", outer, relation.inner.extent), inner
            )
            if relation.outer.extent * relation.inner.extent > parent.extent:
                bounds.append(compared("lt", values[parent], parent.extent))
        else:
            fused, extent = values[relation.fused], relation.inner.extent
            values[relation.outer] = arithmetic("floordiv", fused, extent)
            values[relation.inner] = arithmetic("mod", fused, extent)
    value = substituted(body.value, values)
    for bound in bounds:
        value = Select(bound, value, body.identities[0])
    return value
