# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tensorize`: makes the innermost loops of a sum of products one of Weft's microkernels.

fma: a tile of the result in registers, of rows times vectors, inside the reduction's loop.
vnni: the same with the processor's dot products of neighbouring terms: four of bytes (uint8 times
int8 to int32), or two of bfloat16 (to float32).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weft.artifacts.builds import cpu_flags
from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.checking import arguments, leaf, plain
from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Load
from weft.te.linear import linear
from weft.te.relations import Split
from weft.te.stages import Stage
from weft.te.steps import Step
from weft.te.targets import lanes_of, vector_bytes, vector_registers

if TYPE_CHECKING:
    from weft.te.nests import Nest

NAMES = ("fma", "vnni")


@dataclass(frozen=True)
class Factors:
    """The factors of a product. `row` is broadcast to all lanes, `column` is read as vectors."""

    row: Load
    column: Load


def factors_of(body: ex.Expr) -> list[Load] | None:
    """The two elements whose product is summed, without casts; None if the body is another."""
    if not isinstance(body, ex.Reduce) or body.kind != "sum":
        return None
    if not isinstance(body.value, ex.Binary) or body.value.op != "mul":
        return None
    found = []
    for each in body.value.operands():
        while isinstance(each, ex.Cast) and _keeps_values(each):
            each = each.value
        if not isinstance(each, Load):
            return None
        found.append(each)
    return found


def _keeps_values(cast: ex.Cast) -> bool:
    """Whether the conversion is exact."""
    return dtypes.promoted(cast.value.dtype, cast.dtype) == cast.dtype


def step_along(load: Load, nest: Nest, axis: Axis, dim: int) -> int | None:
    """By how much an iteration of a loop moves in a dimension; None if that is not constant."""
    form = linear(load.indices[dim], nest.index, lambda each: each.extent)
    return None if form is None else form.coefficient(axis)


def is_contiguous(load: Load, nest: Nest, axis: Axis) -> bool:
    """Whether each iteration of the loop reads the element after the one before."""
    steps = [step_along(load, nest, axis, dim) for dim in range(len(load.indices))]
    return bool(steps) and steps[-1] == 1 and not any(steps[:-1]) and None not in steps


def is_still(load: Load, nest: Nest, axis: Axis) -> bool:
    steps = [step_along(load, nest, axis, dim) for dim in range(len(load.indices))]
    return all(step == 0 for step in steps)


def group_of(body: ex.Reduce, factors: Factors) -> int:
    """The number of neighbouring terms of a dot product: 4, 2, or 0 if no instruction has these
    types."""
    kinds = {factors.row.dtype, factors.column.dtype}
    if kinds == {"uint8", "int8"} and body.dtype == "int32":
        return 4
    return 2 if kinds == {"bfloat16"} and body.dtype in ("float32", "bfloat16") else 0


def tensorize(stage: Stage, step: Step) -> None:
    """Takes the step on a stage. Raises: ScheduleError."""
    from weft.te.nests import lowered

    label, name = arguments(step, 2)
    axis = leaf(stage, label)
    if name == "amx":
        lacks = "te has" if "amx_tile" in cpu_flags().split() else "the processor has"
        raise ScheduleError(label, f"{lacks} no matrix unit", "use the microkernel vnni or fma")
    if name not in NAMES:
        raise ScheduleError(label, f"there is no microkernel {name!r}", f"use {' or '.join(NAMES)}")
    state = stage.state
    if state.microkernel is not None:
        raise ScheduleError(label, "the loops are a microkernel already", "leave one")
    place = next(i for i, each in enumerate(state.leaves) if each is axis)
    loops = state.leaves[place:]
    for each in loops:
        plain(stage, each, "tensorized")
    low = lowered(stage.schedule)
    nest = next((n for r in low.roots for n in r.all() if n.stage is stage), None)
    if nest is None:
        raise ScheduleError(label, f"{stage.label} is not computed", "tensorize its reader")
    _Tile(stage, label, name, place, loops, nest, low.extents).apply()


class _Tile:
    def __init__(
        self,
        stage: Stage,
        label: str,
        name: str,
        place: int,
        loops: list[Axis],
        nest: Nest,
        extents: dict[Axis, int],
    ) -> None:
        self.stage, self.label, self.name, self.place = stage, label, name, place
        self.loops, self.nest, self.extents = loops, nest, extents
        self.labels = stage.state.labels

    def refuse(self, axis: Axis | None, reason: str, remedy: str) -> ScheduleError:
        return ScheduleError(self.labels[axis] if axis is not None else self.label, reason, remedy)

    def apply(self) -> None:
        state, body = self.stage.state, self.nest.body
        loads = factors_of(body)
        if loads is None:
            value = body.value if isinstance(body, ex.Reduce) else body
            if isinstance(value, ex.Cast) and isinstance(value.value, ex.Binary):
                raise self.refuse(
                    None,
                    f"its terms are converted to {value.dtype} before they are added",
                    f"add them as they are: te.sum(…, dtype='{value.value.dtype}')",
                )
            raise self.refuse(
                None,
                f"`{body}` is no sum of products of two elements",
                "compute other terms as a tensor of their own",
            )
        assert isinstance(body, ex.Reduce)
        sums = [axis for axis in self.loops if axis.kind == "reduce"]
        spatial = [axis for axis in self.loops if axis.kind != "reduce"]
        if not sums:
            raise self.refuse(
                None,
                "no loop of the reduction is inside it",
                "begin at a loop outside of one that carries the reduction",
            )
        column, factors = self._column(spatial, loads)
        rows = [axis for axis in spatial if axis is not column]
        self._check_registers(rows, column)
        dot: list[Axis] = []
        if self.name == "vnni":
            sums, dot = self._dotted(sums, column, factors, body)
        axes = [*sums, *dot, *rows, column]
        state.leaves[self.place :] = axes
        state.kinds.update(dict.fromkeys(rows, "unrolled"))
        state.kinds[column] = "vectorized"
        state.kinds.update(dict.fromkeys(dot, "dot"))
        state.microkernel = (self.name, tuple(axes))

    def _column(self, spatial: list[Axis], loads: list[Load]) -> tuple[Axis, Factors]:
        """The loop that vectors run along, and the factors, by which of them is read along it."""
        target = Load(self.stage.tensor, self.stage.op.axis)
        for axis in reversed(spatial):
            if not is_contiguous(target, self.nest, axis):
                continue
            for row, column in (loads, loads[::-1]):
                along = is_contiguous(column, self.nest, axis) or self._is_packed(column, axis)
                if along and is_still(row, self.nest, axis):
                    return axis, Factors(row, column)
        raise self.refuse(
            None,
            "no loop inside it reads one factor contiguously, leaves the other where it is and "
            "fills neighbouring elements",
            "have the result's last axis inside it, and pack the factor along that axis",
        )

    def _is_packed(self, load: Load, axis: Axis) -> bool:
        """Whether groups of terms are neighbours in memory, as in `packed[…, column, term]`."""
        if self.name != "vnni" or len(load.indices) < 2:
            return False
        group = {1: 4, 2: 2}.get(dtypes.BYTES[load.dtype])
        steps = [step_along(load, self.nest, axis, d) for d in range(len(load.indices))]
        return load.tensor.shape[-1] == group and steps[-2] == 1 and steps[-1] == 0

    def _check_registers(self, rows: list[Axis], column: Axis) -> None:
        lanes = lanes_of(max(4, dtypes.BYTES[self.stage.tensor.dtype]))
        vectors = -(-self.extents[column] // lanes)
        height = prod(self.extents[axis] for axis in rows)
        if height * vectors + vectors + 1 > vector_registers():
            raise self.refuse(
                None,
                f"its tile of {height} times {vectors} vectors of {lanes} needs "
                f"{height * vectors + vectors + 1} registers, and there are {vector_registers()}",
                "split the loops, so that the tile is smaller",
            )

    def _dotted(
        self, sums: list[Axis], column: Axis, factors: Factors, body: ex.Reduce
    ) -> tuple[list[Axis], list[Axis]]:
        """The reduction's loops, and the loop over the terms of a dot product."""
        group = group_of(body, factors)
        if not group:
            types = f"{factors.row.dtype} by {factors.column.dtype} to {body.dtype}"
            raise self.refuse(
                None,
                f"there are no dot products of {types}",
                "use uint8 by int8 with te.sum(…, dtype='int32'), bfloat16 by bfloat16 with "
                "float32, or the microkernel fma",
            )
        flag = "avx512_vnni" if group == 4 else "avx512_bf16"
        if flag not in cpu_flags().split() or vector_bytes() < 64:
            raise self.refuse(None, f"the processor has no {flag}", "use the microkernel fma")
        lanes = lanes_of(4)
        if self.extents[column] % lanes:
            raise self.refuse(
                column,
                f"it has {self.extents[column]} iterations, and vectors have {lanes} lanes",
                f"split it by a multiple of {lanes}",
            )
        for axis in reversed(sums):
            if is_contiguous(factors.row, self.nest, axis):
                return self._grouped(sums, axis, group)
            if self._is_group(factors, axis, group):
                return [each for each in sums if each is not axis], [axis]
        raise self.refuse(
            None,
            f"no loop of the reduction reads {factors.row.tensor.name} contiguously",
            "have its terms in the last dim",
        )

    def _is_group(self, factors: Factors, axis: Axis, group: int) -> bool:
        """Whether the loop runs over exactly one group, of an operand that the formula has
        packed."""
        return self.extents[axis] == group and all(
            step_along(each, self.nest, axis, len(each.indices) - 1) == 1
            for each in (factors.row, factors.column)
        )

    def _grouped(self, sums: list[Axis], axis: Axis, group: int) -> tuple[list[Axis], list[Axis]]:
        extent = self.extents[axis]
        if extent % group:
            raise self.refuse(
                axis,
                f"it has {extent} iterations, and dot products take {group} at once",
                f"pad the terms, or split by a multiple of {group}",
            )
        if any(axis in guard.axes() for guard in self.nest.guards):
            raise self.refuse(
                axis, "its last iterations lie outside", "split by a factor that divides"
            )
        if extent == group:
            return [each for each in sums if each is not axis], [axis]
        state = self.stage.state
        outer = Axis(extent // group, f"{axis.name}.outer", "reduce")
        inner = Axis(group, f"{axis.name}.inner", "reduce")
        state.relations.append(Split(axis, outer, inner, group))
        self.stage.name_axis(state, outer)
        self.stage.name_axis(state, inner)
        return [outer if each is axis else each for each in sums], [inner]
