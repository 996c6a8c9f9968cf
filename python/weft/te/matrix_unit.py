# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tensorize(axis, "amx")`: which loops become products of the matrix unit's tiles.

A tile of the result is up to 16 rows of 16 elements; a product adds up to 64 bytes of neighbouring
terms of each row: 64 of bytes, of either sign (to int32), or 32 of bfloat16 (to float32).
"""

from __future__ import annotations

from weft.te import expressions as ex
from weft.te.expressions import Axis, Load
from weft.te.microkernels import Factors, RegisterLoops, group_of, step_along
from weft.te.targets import has_matrix_unit

SIDE = 16  # rows of a register, and groups of four bytes in each
REGISTERS = 8
GROUP_BYTES = 4


def parts_of(extent: int) -> list[int]:
    """A loop in pieces that registers hold."""
    return [min(SIDE, extent - first) for first in range(0, extent, SIDE)]


class MatrixLoops(RegisterLoops):
    def _arranged(
        self,
        sums: list[Axis],
        rows: list[Axis],
        column: Axis,
        factors: Factors,
        body: ex.Reduce,
    ) -> list[Axis]:
        group = group_of(body, factors, self.name)
        if not group:
            types = f"{factors.row.dtype} by {factors.column.dtype} to {body.dtype}"
            raise self.refuse(
                None,
                f"there are no products of tiles of {types}",
                "use int8 or uint8 by int8 or uint8 with te.sum(…, dtype='int32'), bfloat16 by "
                "bfloat16 with float32, or the microkernel fma",
            )
        feature = "amx_int8" if group == GROUP_BYTES else "amx_bf16"
        if not has_matrix_unit(feature):
            raise self.refuse(
                None, f"the processor has no {feature}", "use the microkernel vnni or fma"
            )
        self._check_tile(rows, column)
        target = Load(self.stage.tensor, self.stage.op.axis)
        for axis in rows:
            self._check_stride(factors.row, axis)
            self._check_stride(target, axis)
        for axis in sums:
            self._check_stride(factors.column, axis)
        left, dot, groups = self._dotted(sums, factors, group)
        self.stage.state.kinds[dot] = "dot"
        if groups is None:
            groups = self._packed_groups(left, factors.row, group)
        return [*self._tiled(left, groups), dot, *rows, column]

    def _check_tile(self, rows: list[Axis], column: Axis) -> None:
        many = [axis for axis in rows if self.extents[axis] > 1]
        if len(many) > 1:
            raise self.refuse(
                None,
                f"{', '.join(self.labels[axis] for axis in many)} are its rows, which have to be "
                "one loop",
                f"begin at {self.labels[many[-1]]}",
            )
        height = self.extents[many[0]] if many else 1
        down, across = len(parts_of(height)), len(parts_of(self.extents[column]))
        needed = down * across + down + across
        if needed > REGISTERS:
            raise self.refuse(
                None,
                f"its tile of {height} rows of {self.extents[column]} needs {needed} registers of "
                f"{SIDE} rows of {SIDE}, and there are {REGISTERS}",
                "split the loops, so that the tile is smaller: 32 rows of 32 use all",
            )

    def _check_stride(self, load: Load, axis: Axis) -> None:
        if any(step_along(load, self.nest, axis, d) is None for d in range(len(load.indices))):
            raise self.refuse(
                axis,
                f"its iterations move by no constant distance in {load.tensor.name}",
                "choose a loop that moves by as much in each iteration",
            )

    def _packed_groups(self, sums: list[Axis], row: Load, group: int) -> Axis | None:
        """The loop over groups of neighbouring terms, where the formula has it."""
        for axis in reversed(sums):
            steps = [step_along(row, self.nest, axis, d) for d in range(len(row.indices))]
            if steps[-1] == group and not any(steps[:-1]) and None not in steps:
                self._check_whole(axis)
                return axis
        return None

    def _tiled(self, sums: list[Axis], groups: Axis | None) -> list[Axis]:
        """The sums, with the loop over the groups of one product as the last one."""
        if groups is None:
            return sums
        extent, state = self.extents[groups], self.stage.state
        size = max(n for n in range(1, min(SIDE, max(extent, 1)) + 1) if extent % n == 0)
        if size == 1:
            return sums
        if size == extent:
            rest, inner = [axis for axis in sums if axis is not groups], groups
        else:
            outer, inner = self.split(groups, size)
            rest = [outer if axis is groups else axis for axis in sums]
        state.kinds[inner] = "tile"
        return [*rest, inner]
