# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of one root nest, and of those attached to it, as MLIR.

Outer loops are generated one by one. The innermost ones, from the first loop after which there are
only vectorised and unrolled loops and those of a reduction, are generated together (`tiles.py`):
they compute one tile of the result in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.te.code import Code
from weft.te.elements import Buffer, Elements, Point
from weft.te.expressions import Axis
from weft.te.linear import AxisAtom, Linear, atom_range
from weft.te.matrix_registers import MatrixUnit, uses_matrix_unit
from weft.te.nests import Lowered, Nest, reduction
from weft.te.tensors import Tensor

Body = Callable[[Point, list[Linear], list[tuple[str, str]]], list[tuple[str, str]]]


class Loops:
    """Generates loops, whose bounds follow from guards."""

    def __init__(
        self,
        lowered: Lowered,
        code: Code,
        buffers: dict[Tensor, Buffer],
        unit: MatrixUnit | None = None,
    ) -> None:
        self.lowered, self.code, self.buffers, self.unit = lowered, code, buffers, unit
        self.extent = lowered.extent

    def elements(self, nest: Nest) -> Elements:
        return Elements(self.code, self.buffers, nest.index, self.extent)

    def loop(
        self,
        nest: Nest,
        axis: Axis,
        point: Point,
        guards: list[Linear],
        values: list[tuple[str, str]],
        body: Body,
    ) -> list[tuple[str, str]]:
        """The loop of `axis` over the iterations that the guards allow. `body` is called with the
        guards that are still to be checked and the carried values, and returns their new values."""
        extent, kind = self.extent(axis), nest.kind(axis)
        if extent == 1 and kind != "parallel":
            return self.conditional(nest, point.at(axis, 0), guards, values, body)
        owned, rest = self._owned(axis, point, guards)
        if kind == "unrolled" and not owned:
            for number in range(extent):
                values = self.conditional(nest, point.at(axis, number), rest, values, body)
            return values
        low, high = self._bounds(nest, axis, point, owned)
        if kind == "parallel":
            low, high = self._part(low, high)
        with self.code.loop(low, high, values) as (variable, inner, after):
            carried = [(name, kind) for name, (_, kind) in zip(inner, values)]
            given = self.conditional(nest, point.at(axis, variable), rest, carried, body)
            self.code.give(given)
        return [(name, kind) for name, (_, kind) in zip(after, values)]

    def _is_bound(self, axes: set[Axis], point: Point) -> bool:
        return all(axis in point.loops for axis in axes)

    def _owned(
        self, axis: Axis, point: Point, guards: list[Linear]
    ) -> tuple[list[Linear], list[Linear]]:
        """Splits the guards into those that bound this loop, given the loops around it, and the
        others."""
        owned: list[Linear] = []
        rest: list[Linear] = []
        for guard in guards:
            bounds = guard.coefficient(axis) and self._is_bound(guard.axes() - {axis}, point)
            (owned if bounds else rest).append(guard)
        return owned, rest

    def _bounds(
        self, nest: Nest, axis: Axis, point: Point, guards: list[Linear]
    ) -> tuple[str, str]:
        low, high = self.code.index(0), self.code.index(self.extent(axis))
        elements = self.elements(nest)
        for guard in guards:
            factor = guard.coefficient(axis)
            assert factor
            rest = Linear({a: c for a, c in guard.terms.items() if a != AxisAtom(axis)})
            rest = rest + guard.constant
            if factor < 0:  # axis <= rest / -factor, rounded down
                bound = self._floordiv(elements.position(rest, point), -factor, 1)
                high = self.code.op(f"arith.minsi {high}, {bound} : index")
            else:  # axis >= -rest / factor, rounded up
                bound = self._floordiv(elements.position(rest * -1, point), factor, 0, factor - 1)
                low = self.code.op(f"arith.maxsi {low}, {bound} : index")
        return low, high

    def _floordiv(self, name: str, divisor: int, plus: int, before: int = 0) -> str:
        inner = f"d0 + {before}" if before else "d0"
        text = f"({inner}) floordiv {divisor}" if divisor > 1 else inner
        text = f"{text} + {plus}" if plus else text
        return self.code.op(f"affine.apply affine_map<(d0) -> ({text})>({name})")

    def _part(self, low: str, high: str) -> tuple[str, str]:
        """The part of a range that this thread computes."""
        count = self.code.op(f"arith.subi {high}, {low} : index")
        count = self.code.op(f"arith.maxsi {count}, {self.code.index(0)} : index")
        one = self.code.index(1)
        after = self.code.op(f"arith.addi %thread, {one} : index")
        ends = []
        for number in ("%thread", after):
            product = self.code.op(f"arith.muli {number}, {count} : index")
            share = self.code.op(f"arith.divui {product}, %threads : index")
            ends.append(self.code.op(f"arith.addi {low}, {share} : index"))
        return ends[0], ends[1]

    def conditional(
        self,
        nest: Nest,
        point: Point,
        guards: list[Linear],
        values: list[tuple[str, str]],
        body: Body,
    ) -> list[tuple[str, str]]:
        """The body, inside an if for guards that no loop's bounds express."""
        ready = [each for each in guards if self._is_bound(each.axes(), point)]
        open_guards = [each for each in guards if not self._is_bound(each.axes(), point)]
        if not ready:
            return body(point, open_guards, values)
        condition = self.holds(nest, ready, point)
        with self.code.branch(condition, [kind for _, kind in values]) as names:
            self.code.give(body(point, open_guards, values))
        if values:
            with self.code.otherwise():
                self.code.give(values)
        return [(name, kind) for name, (_, kind) in zip(names, values)]

    def holds(self, nest: Nest, guards: Sequence[Linear], point: Point) -> str:
        """A condition that none of the forms is negative."""
        elements, zero, result = self.elements(nest), self.code.index(0), ""
        for guard in guards:
            value = elements.position(guard, point)
            test = self.code.op(f"arith.cmpi sge, {value}, {zero} : index")
            result = self.code.op(f"arith.andi {result}, {test} : i1") if result else test
        return result

    def least(self, guard: Linear, free: set[Axis]) -> Linear | None:
        """A lower bound of the guard in terms of the loops other than `free`; None if none is
        known."""
        result = Linear(None, guard.constant)
        for atom, factor in guard.terms.items():
            axes = {atom.axis} if isinstance(atom, AxisAtom) else atom.form.axes()
            if not axes & free:
                result = result + Linear({atom: factor})
            elif axes <= free:
                low, high = atom_range(atom, self.extent)
                result = result + factor * (low if factor > 0 else high)
            else:
                return None
        return result


class NestWriter(Loops):
    """Generates a nest and, inside its loops, those attached to it."""

    def write(self, nest: Nest, point: Point | None = None) -> None:
        point = point or Point()
        guards = [each for each in nest.guards]
        ready = [each for each in guards if self._is_bound(each.axes(), point)]
        rest = [each for each in guards if not self._is_bound(each.axes(), point)]
        if not ready:
            self._level(nest, 0, point, rest, nest.loops)
            return
        with self.code.branch(self.holds(nest, ready, point)):
            self._level(nest, 0, point, rest, nest.loops)

    def _level(
        self, nest: Nest, depth: int, point: Point, guards: list[Linear], loops: list[Axis]
    ) -> None:
        from weft.te.matrix_tiles import MatrixTile
        from weft.te.tiles import Tile

        begin, start = sums_begin(nest, loops), tile_start(nest, loops)
        fresh = start <= begin and nest.stage.state.decomposed is None
        if reduction(nest) is not None and depth == begin and not fresh:
            self._initialise(nest, loops[depth:], point, guards)
        if depth >= start:
            tile = MatrixTile if uses_matrix_unit(nest) else Tile
            tile(self, nest, loops[depth:], fresh=fresh).write(point, guards)
            return
        axis = loops[depth]

        def body(
            inside: Point, open_guards: list[Linear], values: list[tuple[str, str]]
        ) -> list[tuple[str, str]]:
            self.prefetch(nest, axis, inside)
            for producer in nest.attached.get(axis, []):
                self.write(producer, inside)
            self._level(nest, depth + 1, inside, open_guards, loops)
            return values

        self.loop(nest, axis, point, guards, [], body)

    def _initialise(
        self, nest: Nest, loops: list[Axis], point: Point, guards: list[Linear]
    ) -> None:
        """Stores the neutral value in all elements that the reduction loops outside add to."""
        from weft.te.tiles import Tile

        spatial = [axis for axis in loops if axis.kind != "reduce"]
        known = set(point.loops) | set(spatial)
        kept = [guard for guard in guards if guard.axes() <= known]
        Tile(self, nest, spatial, fresh=True, initial=True).write(point, kept)

    def prefetch(self, nest: Nest, axis: Axis, point: Point) -> None:
        for tensor, at, offset in nest.stage.state.prefetches:
            if at is not axis:
                continue
            value = point.loops[axis]
            if isinstance(value, str):
                value = self.code.op(f"arith.addi {value}, {self.code.index(offset)} : index")
            else:
                value += offset
            origin = Point({**dict.fromkeys(nest.loops, 0), **point.loops, axis: value})
            self.elements(nest).prefetch(nest.body, tensor, origin)


def sums_begin(nest: Nest, loops: list[Axis]) -> int:
    """The position in `loops` before which the sums' first values are stored."""
    for place, axis in enumerate(loops):
        if axis is nest.stage.state.decomposed or axis.kind == "reduce":
            return place
    return len(loops)


def tile_start(nest: Nest, loops: list[Axis]) -> int:
    """The position of the first loop that is generated together with all that follow."""
    start = len(loops)
    decomposed = nest.stage.state.decomposed
    while start:
        axis = loops[start - 1]
        is_simple = axis.kind == "reduce" or nest.kind(axis) in ("vectorized", "unrolled")
        if not is_simple or nest.attached.get(axis) or nest.kind(axis) == "parallel":
            break
        start -= 1
        if axis is decomposed:
            break  # the loops inside are a tile that adds to sums in memory
    return start
