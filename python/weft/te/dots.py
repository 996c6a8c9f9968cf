# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dot products of neighbouring terms by the processor's own instructions: vpdpbusd for bytes, and
vdpbf16ps for bfloat16. One operand has the terms of one row in all lanes, the other has the terms
of each column in that column's lane."""

from __future__ import annotations

from weft.te.arithmetic import Value
from weft.te.elements import Elements, Point
from weft.te.expressions import Axis, Load
from weft.te.microkernels import factors_of
from weft.te.nests import Nest
from weft.te.values import of_lanes, stored_type

_DOTS = {4: "llvm.x86.avx512.vpdpbusd.512", 2: "llvm.x86.avx512bf16.dpbf16ps.512"}


class DotProducts:
    """Writes dot products. axis: the loop over the terms of one dot product."""

    def __init__(self, elements: Elements, nest: Nest, axis: Axis, group: int) -> None:
        self.elements, self.code, self.nest = elements, elements.code, nest
        self.axis, self.group = axis, group

    def added(self, total: Value, point: Point) -> Value:
        """The sums in all lanes, each with one more dot product added."""
        loads = factors_of(self.nest.body)
        assert loads is not None and point.vector is not None
        moving = [each for each in loads if self._step(each, point)]
        (column,) = moving[:1]
        (row,) = [each for each in loads if each is not column]
        operands = {id(row): self._row(row, point), id(column): self.column(column, point)}
        # The first operand of the byte instruction is unsigned.
        order = sorted(loads, key=lambda each: each.dtype != "uint8")
        kinds = [of_lanes(stored_type(each.dtype), self.group * point.lanes) for each in order]
        names = ", ".join([total.name, *(operands[id(each)] for each in order)])
        types = f"({', '.join([total.type, *kinds])}) -> {total.type}"
        name = self.code.op(f'llvm.call_intrinsic "{_DOTS[self.group]}"({names}) : {types}')
        return Value(name, total.dtype, total.lanes)

    def _at(self, point: Point, term: int) -> Point:
        return point.at(self.axis, term)

    def _step(self, load: Load, point: Point) -> bool:
        """Whether the lanes read different elements."""
        _, distances, step = self.elements._address(load, self._at(point, 0))
        return distances is not None or step != 0

    def _row(self, load: Load, point: Point) -> str:
        buffer = self.elements.buffers[load.tensor]
        position, _, _ = self.elements._address(load, self._at(point, 0))
        element, bits = stored_type(load.dtype), 32
        terms, whole = of_lanes(element, self.group), f"vector<1xi{bits}>"
        name = self.code.load(f"vector.load {buffer.memref}[{position}] : {buffer.type}, {terms}")
        name = self.code.op(f"vector.bitcast {name} : {terms} to {whole}")
        name = self.code.op(f"vector.extract {name}[0] : i{bits} from {whole}")
        lanes = of_lanes(f"i{bits}", point.lanes)
        name = self.code.op(f"vector.broadcast {name} : i{bits} to {lanes}")
        all_terms = of_lanes(element, self.group * point.lanes)
        return self.code.op(f"vector.bitcast {name} : {lanes} to {all_terms}")

    def column(self, load: Load, point: Point) -> str:
        """The terms of each column side by side: as they are in memory, or arranged by shuffles."""
        element, count = stored_type(load.dtype), self.group * point.lanes
        position, _, step = self.elements._address(load, self._at(point, 0))
        if step == self.group:
            buffer = self.elements.buffers[load.tensor]
            kind = of_lanes(element, count)
            if point.mask is None:
                text = f"vector.load {buffer.memref}[{position}] : {buffer.type}, {kind}"
                return self.code.load(text)
            return self._masked(load, position, self._widened(point), kind)
        rows = [self._terms(load, self._at(point, term)) for term in range(self.group)]
        width, lanes = 1, point.lanes
        while len(rows) > 1:  # interleaves pairs of rows, then pairs of pairs
            rows = [
                self._interleaved(rows[n], rows[n + 1], element, lanes * width, width)
                for n in range(0, len(rows), 2)
            ]
            width *= 2
        return rows[0]

    def _terms(self, load: Load, point: Point) -> str:
        """One term of each column, one column in each lane."""
        buffer = self.elements.buffers[load.tensor]
        position, _, step = self.elements._address(load, point)
        assert step == 1
        kind = of_lanes(stored_type(load.dtype), point.lanes)
        if point.mask is None:
            return self.code.load(
                f"vector.load {buffer.memref}[{position}] : {buffer.type}, {kind}"
            )
        mask = self.elements.math.splat(point.mask, point.lanes)
        return self._masked(load, position, mask.name, kind)

    def _masked(self, load: Load, position: str, mask: str, kind: str) -> str:
        buffer = self.elements.buffers[load.tensor]
        zero = "0.0" if load.dtype == "bfloat16" else "0"
        fill = self.code.op(f"arith.constant dense<{zero}> : {kind}")
        count = kind[len("vector<") :].split("x")[0]
        return self.code.load(
            f"vector.maskedload {buffer.memref}[{position}], {mask}, {fill} : {buffer.type}, "
            f"vector<{count}xi1>, {kind} into {kind}"
        )

    def _widened(self, point: Point) -> str:
        """The mask of columns as a mask of all their terms."""
        assert point.mask is not None
        mask, lanes = self.elements.math.splat(point.mask, point.lanes), point.lanes
        places = ", ".join(str(lane) for lane in range(lanes) for _ in range(self.group))
        kind = of_lanes("i1", lanes)
        text = f"vector.shuffle {mask.name}, {mask.name} [{places}] : {kind}, {kind}"
        return self.code.op(text)

    def _interleaved(self, a: str, b: str, element: str, count: int, width: int) -> str:
        """Pieces of `width` elements, alternately from a and b."""
        places = []
        for start in range(0, count, width):
            places += range(start, start + width)
            places += range(count + start, count + start + width)
        kind = of_lanes(element, count)
        names = ", ".join(map(str, places))
        return self.code.op(f"vector.shuffle {a}, {b} [{names}] : {kind}, {kind}")


def dot_axis(nest: Nest, loops: list[Axis]) -> Axis | None:
    return next((axis for axis in loops if nest.kind(axis) == "dot"), None)
