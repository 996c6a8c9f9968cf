# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tensorize`: makes the innermost loops of a sum of products one of Weft's microkernels.

fma: a tile of the result in registers, of rows times vectors, inside the reduction's loop.
vnni: the same with the processor's dot products of neighbouring terms: four of bytes (uint8 times
int8 to int32), or two of bfloat16 (to float32).
amx: products of the matrix unit's tiles (`matrix_unit.py`).
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

NAMES = ("fma", "vnni", "amx")


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


def group_of(body: ex.Reduce, factors: Factors, name: str) -> int:
    """The number of neighbouring terms of a dot product: 4, 2, or 0 if the microkernel has no
    instruction for these types."""
    kinds, bytes_of = {factors.row.dtype, factors.column.dtype}, {"uint8", "int8"}
    if (kinds <= bytes_of if name == "amx" else kinds == bytes_of) and body.dtype == "int32":
        return 4
    return 2 if kinds == {"bfloat16"} and body.dtype in ("float32", "bfloat16") else 0


def is_packed(load: Load, nest: Nest, axis: Axis) -> bool:
    """Whether groups of terms are neighbours in memory, as in `packed[…, axis, term]`."""
    if len(load.indices) < 2:
        return False
    steps = [step_along(load, nest, axis, dim) for dim in range(len(load.indices))]
    size = {1: 4, 2: 2}.get(dtypes.BYTES[load.dtype])
    still = not any(steps[:-2]) and None not in steps
    return load.tensor.shape[-1] == size and still and steps[-2:] == [1, 0]


def reads_as(row: Load, column: Load, nest: Nest, axis: Axis) -> bool:
    """Whether the column's factor is read along a loop, and the row's left where it is."""
    along = is_contiguous(column, nest, axis) or is_packed(column, nest, axis)
    return along and is_still(row, nest, axis)


def check_operands(nest: Nest) -> None:
    """Raises: ScheduleError, if a later step has changed what a microkernel reads."""
    state = nest.stage.state
    if state.microkernel is None or state.microkernel[0] == "fma":
        return
    name, axes = state.microkernel
    if not prod(axis.extent for axis in state.reduce_axes):
        return  # there is nothing to read
    loads = factors_of(nest.body) or []
    terms = [axis for axis in axes if state.kinds.get(axis) in ("tile", "dot")]
    for row, column in (loads, loads[::-1]) if loads else ():
        steps = [step_along(row, nest, axis, len(row.indices) - 1) for axis in terms[:-1]]
        follow = all(step == terms[-1].extent for step in steps)
        if follow and is_contiguous(row, nest, terms[-1]) and reads_as(row, column, nest, axes[-1]):
            return
    raise ScheduleError(
        state.labels[axes[-1]],
        f"it is part of the microkernel {name}, for which `{nest.body}` is read in another order",
        "compute what it reads as tensors of their own, or inline it before the step tensorize",
    )


def tensorize(stage: Stage, step: Step) -> None:
    """Takes the step on a stage. Raises: ScheduleError."""
    from weft.te.matrix_unit import MatrixLoops
    from weft.te.nests import lowered

    label, name = arguments(step, 2)
    axis = leaf(stage, label)
    if name not in NAMES:
        choices = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
        raise ScheduleError(label, f"there is no microkernel {name!r}", f"use {choices}")
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
    chosen = MatrixLoops if name == "amx" else RegisterLoops
    chosen(stage, label, name, place, loops, nest, low.extents).apply()


class RegisterLoops:
    """The loops of a tile of vector registers."""

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
        axes = self._arranged(sums, rows, column, factors, body)
        state.leaves[self.place :] = axes
        state.kinds.update(dict.fromkeys(rows, "unrolled"))
        state.kinds[column] = "vectorized"
        state.microkernel = (self.name, tuple(axes))

    def _arranged(
        self,
        sums: list[Axis],
        rows: list[Axis],
        column: Axis,
        factors: Factors,
        body: ex.Reduce,
    ) -> list[Axis]:
        """The microkernel's loops, outermost first."""
        self._check_registers(rows, column)
        if self.name == "fma":
            return [*sums, *rows, column]
        group = self._check_dots(column, factors, body)
        left, dot, _ = self._dotted(sums, factors, group)
        self.stage.state.kinds[dot] = "dot"
        return [*left, dot, *rows, column]

    def _column(self, spatial: list[Axis], loads: list[Load]) -> tuple[Axis, Factors]:
        """The loop that vectors run along, and the factors, by which of them is read along it."""
        target = Load(self.stage.tensor, self.stage.op.axis)
        for axis in reversed(spatial):
            if not is_contiguous(target, self.nest, axis):
                continue
            for row, column in (loads, loads[::-1]):
                along = self.name == "fma" and is_contiguous(column, self.nest, axis)
                if along and is_still(row, self.nest, axis):
                    return axis, Factors(row, column)
                if self.name != "fma" and reads_as(row, column, self.nest, axis):
                    return axis, Factors(row, column)
        raise self.refuse(
            None,
            "no loop inside it reads one factor contiguously, leaves the other where it is and "
            "fills neighbouring elements",
            "have the result's last axis inside it, and pack the factor along that axis",
        )

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

    def _check_dots(self, column: Axis, factors: Factors, body: ex.Reduce) -> int:
        """The number of terms of the processor's dot products."""
        group = group_of(body, factors, self.name)
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
        return group

    def _dotted(
        self, sums: list[Axis], factors: Factors, group: int
    ) -> tuple[list[Axis], Axis, Axis | None]:
        """The reduction's other loops, the loop over the terms of a dot product, and the loop over
        the dot products if the step has made it."""
        for axis in reversed(sums):
            if is_contiguous(factors.row, self.nest, axis):
                return self._grouped(sums, axis, group)
            if self._is_group(factors, axis, group):
                return [each for each in sums if each is not axis], axis, None
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

    def _check_whole(self, axis: Axis) -> None:
        if any(axis in guard.axes() for guard in self.nest.guards):
            raise self.refuse(
                axis, "its last iterations lie outside", "split by a factor that divides"
            )

    def _grouped(
        self, sums: list[Axis], axis: Axis, group: int
    ) -> tuple[list[Axis], Axis, Axis | None]:
        extent = self.extents[axis]
        if extent % group:
            raise self.refuse(
                axis,
                f"it has {extent} iterations, and dot products take {group} at once",
                f"pad the terms, or split by a multiple of {group}",
            )
        self._check_whole(axis)
        if extent == group:
            return [each for each in sums if each is not axis], axis, None
        outer, inner = self.split(axis, group)
        return [outer if each is axis else each for each in sums], inner, outer

    def split(self, axis: Axis, size: int) -> tuple[Axis, Axis]:
        """Splits a loop of the reduction by a size that divides it."""
        state, count = self.stage.state, self.extents[axis] // size
        outer = Axis(count, f"{axis.name}.outer", "reduce")
        inner = Axis(size, f"{axis.name}.inner", "reduce")
        state.relations.append(Split(axis, outer, inner, size))
        for each in (outer, inner):
            self.stage.name_axis(state, each)
            self.extents[each] = each.extent
        return outer, inner
