# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tile of the result in the matrix unit's registers.

Rows are read where they are. The other operand's terms have to be in groups of four bytes, one of
each column beside the next: it is read where it is if the formula has packed it, and else arranged
for each product. What an edge leaves is a smaller tile, or computed element by element if it is not
known by how much the edge cuts.
"""

from __future__ import annotations

from weft.te import dtypes
from weft.te.arithmetic import Value
from weft.te.dots import DotProducts
from weft.te.edges import Edge, known_edge
from weft.te.elements import Point
from weft.te.expressions import Axis, Load
from weft.te.linear import Linear, linear
from weft.te.loops import Loops
from weft.te.matrix_registers import MatrixUnit, Shape
from weft.te.matrix_unit import GROUP_BYTES, SIDE
from weft.te.microkernels import factors_of
from weft.te.nests import Nest
from weft.te.tiles import Tile
from weft.te.values import computed_type, of_lanes, stored_type


class MatrixTile(Tile):
    def __init__(self, writer: Loops, nest: Nest, loops: list[Axis], fresh: bool) -> None:
        super().__init__(writer, nest, loops, fresh)
        microkernel, loads = nest.stage.state.microkernel, factors_of(nest.body)
        assert writer.unit is not None and microkernel is not None and loads is not None
        assert self.dot is not None and self.vector is not None
        self.unit: MatrixUnit = writer.unit
        self.groups = next((a for a in microkernel[1] if nest.kind(a) == "tile"), None)
        self.sums = [axis for axis in self.sums if axis is not self.groups]
        rows = [a for a in microkernel[1] if nest.kind(a) == "unrolled" and writer.extent(a) > 1]
        self.row = rows[0] if rows else None
        self.target = Load(nest.tensor, nest.stage.op.axis)
        # The rows' terms do not depend on the column.
        moves = [self._stride(each, self.vector) != 0 for each in loads]
        self.of_rows, self.of_columns = loads[::-1] if moves[0] else loads

    def _own(self) -> set[Axis]:
        """The loops that are no loops in the code."""
        return {a for a in (self.row, self.vector, self.groups, self.dot) if a is not None}

    def _stride(self, load: Load, axis: Axis | None) -> int:
        """By how many elements of memory an iteration of a loop moves."""
        if axis is None:
            return 0
        total = 0
        for index, stride in zip(load.indices, self.elements.buffers[load.tensor].strides):
            form = linear(index, self.nest.index, self.writer.extent)
            assert form is not None
            step = form.coefficient(axis)
            assert step is not None
            total += step * stride
        return total

    def _edge(self, guard: Linear, point: Point) -> Edge | None:
        free = {axis for axis in (self.row, self.vector) if axis is not None}
        return known_edge(guard, free, set(point.loops), self.writer.extent)

    def _hoist(self, point: Point, guards: list[Linear], spatial: list[Axis]) -> None:
        own = self._own()
        if any(guard.axes() & own for guard in guards):
            self._by_elements(point, guards)
            return
        outside = [axis for axis in spatial if axis not in own]
        if not outside:
            self._multiply(point, guards)
            return

        def body(
            inside: Point, rest: list[Linear], values: list[tuple[str, str]]
        ) -> list[tuple[str, str]]:
            self._hoist(inside, rest, outside[1:])
            return values

        self.writer.loop(self.nest, outside[0], point, guards, [], body)

    def _by_elements(self, point: Point, guards: list[Linear]) -> None:
        tile = Tile(self.writer, self.nest, self.loops, self.fresh)
        assert tile.dot is not None
        tile.sums, tile.dot = [*tile.sums, tile.dot], None
        tile.limits = dict(self.limits)
        tile._hoist(point, guards, list(tile.spatial))

    def _multiply(self, point: Point, guards: list[Linear]) -> None:
        shape = self.unit.shape_of(self.nest, self.limits)
        if not shape.rows or not shape.columns:
            return

        def body(here: Point, values: list[tuple[str, str]]) -> list[tuple[str, str]]:
            self._products(shape, here)
            return values

        with self.unit.shaped(shape):
            self._begin(shape, point)
            self._sums(0, point, guards, [], body)
            self._end(shape, point)

    def _corner(self, point: Point, row: int = 0, column: int = 0) -> Point:
        """The point at a part's first row and column, as a scalar."""
        assert self.vector is not None
        loops = {**point.loops, **dict.fromkeys(self._own(), 0), self.vector: column}
        return Point(loops if self.row is None else {**loops, self.row: row})

    # The sums

    def _begin(self, shape: Shape, point: Point) -> None:
        if not self.fresh and not self._sums_in_place():
            self._pass_sums(shape, point, reads=True)
        for i in range(len(shape.rows)):
            for j in range(len(shape.columns)):
                if self.fresh:
                    self.unit.zero(shape.sums(i, j))
                else:
                    self.unit.load(shape.sums(i, j), *self._place_of_sums(point, i, j))

    def _end(self, shape: Shape, point: Point) -> None:
        for i in range(len(shape.rows)):
            for j in range(len(shape.columns)):
                self.unit.store(shape.sums(i, j), *self._place_of_sums(point, i, j))
        if not self._sums_in_place():
            self._pass_sums(shape, point, reads=False)

    def _sums_in_place(self) -> bool:
        return dtypes.BYTES[self.nest.tensor.dtype] == GROUP_BYTES

    def _place_of_sums(self, point: Point, i: int, j: int) -> tuple[str, str, str, int]:
        """Memory, its type, the position of part i, j, and the distance of two rows."""
        if self._sums_in_place():
            return self._place(self.target, self._corner(point, i * SIDE, j * SIDE), self.row)
        memory, kind = self.unit.sums(computed_type(self.nest.tensor.dtype))
        return memory, kind, self.code.index(i * SIDE * self._width() + j * SIDE), self._width()

    def _width(self) -> int:
        """Of a row of sums that wait in memory."""
        assert self.vector is not None
        return -(-self.writer.extent(self.vector) // SIDE) * SIDE

    def _place(self, load: Load, at: Point, axis: Axis | None) -> tuple[str, str, str, int]:
        buffer = self.elements.buffers[load.tensor]
        position, _, _ = self.elements._address(load, at)
        return buffer.memref, buffer.type, position, self._stride(load, axis)

    def _pass_sums(self, shape: Shape, point: Point, reads: bool) -> None:
        """Rounds the sums to the result's type, or reads them from there."""
        dtype = self.nest.tensor.dtype
        memory, kind = self.unit.sums(computed_type(dtype))
        vector = of_lanes(computed_type(dtype), SIDE)
        height = self.code.index(sum(shape.rows))
        with self.code.loop(self.code.index(0), height, []) as (row, _, _):
            width = self.code.index(self._width())
            start = self.code.op(f"arith.muli {row}, {width} : index")
            for j, columns in enumerate(shape.columns):
                place = self.code.op(f"arith.addi {start}, {self.code.index(j * SIDE)} : index")
                here = self._lanes(point, j, columns)
                if self.row is not None:
                    here = here.at(self.row, row)
                if reads:
                    value = self.elements.load(self.target, here)
                    self.code.store(
                        f"vector.store {value.name}, {memory}[{place}] : {kind}, {vector}"
                    )
                else:
                    text = f"vector.load {memory}[{place}] : {kind}, {vector}"
                    value = Value(self.code.load(text), dtype, SIDE)
                    self.elements.store(self.nest.tensor, self.nest.stage.op.axis, value, here)

    def _lanes(self, point: Point, part: int, columns: int) -> Point:
        """A vector of a part's columns."""
        here = self._corner(point)
        mask = None
        if columns < SIDE:
            bits = ", ".join("true" if lane < columns else "false" for lane in range(SIDE))
            text = f"arith.constant dense<[{bits}]> : {of_lanes('i1', SIDE)}"
            mask = Value(self.code.op(text), "bool", SIDE)
        return Point(here.loops, self.vector, part * SIDE, SIDE, mask)

    # The products

    def _products(self, shape: Shape, point: Point) -> None:
        for j, columns in enumerate(shape.columns):
            place = self._place_of_columns(point, j, columns)
            self.unit.load(shape.column(j), *place)
        for i in range(len(shape.rows)):
            at = self._corner(point, row=i * SIDE)
            self.unit.load(shape.row(i), *self._place(self.of_rows, at, self.row))
        kinds = self.of_rows.dtype, self.of_columns.dtype
        for i in range(len(shape.rows)):
            for j in range(len(shape.columns)):
                self.unit.multiply(shape.sums(i, j), shape.row(i), shape.column(j), kinds)

    def _place_of_columns(self, point: Point, part: int, columns: int) -> tuple[str, str, str, int]:
        load = self.of_columns
        size = GROUP_BYTES // dtypes.BYTES[load.dtype]
        if self._stride(load, self.vector) == size and self._stride(load, self.dot) == 1:
            return self._place(load, self._corner(point, column=part * SIDE), self.groups)
        element = stored_type(load.dtype)
        memory, kind = self.unit.terms(element, dtypes.BYTES[load.dtype])
        assert self.dot is not None
        dots = DotProducts(self.elements, self.nest, self.dot, size)
        line, vector = size * SIDE, of_lanes(element, size * SIDE)
        here = self._lanes(point, part, columns)
        count = self.writer.extent(self.groups) if self.groups is not None else 1
        with self.code.loop(self.code.index(0), self.code.index(count), []) as (number, _, _):
            at = here.at(self.groups, number) if self.groups is not None else here
            terms = dots.column(load, at)
            place = self.code.op(f"arith.muli {number}, {self.code.index(line)} : index")
            self.code.store(f"vector.store {terms}, {memory}[{place}] : {kind}, {vector}")
        return memory, kind, self.code.index(0), line
