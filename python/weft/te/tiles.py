# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The innermost loops of a nest: a tile of the result, with its sums in registers.

Unrolled and vectorised loops become instances, which are registers that a reduction's loops carry.
A tile that crosses the tensor's edge becomes a smaller tile if it is known by how much it is cut
(`edges.py`); otherwise unrolled loops get bounds, and vectors get masks.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.arithmetic import Value
from weft.te.dots import DotProducts, dot_axis
from weft.te.edges import Edge, known_edge
from weft.te.elements import Point
from weft.te.expressions import Axis
from weft.te.linear import Linear
from weft.te.loops import Loops
from weft.te.nests import Nest, reduction
from weft.te.targets import lanes_of, masks_elements_of

_MOST_EDGES = 2  # edges with code for either side: more than four tiles would be a page of code


@dataclass
class Instance:
    """The values of the unrolled loops, and the lanes of the vectorised loop from `base` on."""

    loops: dict[Axis, int]
    base: int
    lanes: int


class Tile:
    """A tile. fresh: whether sums begin here, instead of with the values in memory. initial:
    whether only the neutral value is stored."""

    def __init__(
        self, writer: Loops, nest: Nest, loops: list[Axis], fresh: bool, initial: bool = False
    ) -> None:
        self.writer, self.nest, self.fresh = writer, nest, fresh
        self.code, self.elements = writer.code, writer.elements(nest)
        self.math = self.elements.math
        self.reduce = reduction(nest)
        self.initial = initial
        self.vector = next((a for a in loops if nest.kind(a) == "vectorized"), None)
        self.dot = dot_axis(nest, loops)
        others = [axis for axis in loops if axis is not self.vector and axis is not self.dot]
        self.sums = [axis for axis in others if axis.kind == "reduce"]
        self.spatial = [axis for axis in others if axis.kind != "reduce"]
        self.loops = loops
        self.limits: dict[Axis, int] = {}  # extents of loops that an edge has cut
        self.rests: dict[Axis, Edge] = {}

    def write(self, point: Point, guards: list[Linear]) -> None:
        """The tile, without masks and bounds where it is inside of the tensor, and with them
        elsewhere."""
        free = {axis for axis in self.loops if axis.kind != "reduce"}
        if self.vector is not None:
            free.add(self.vector)
        crossed = [guard for guard in guards if guard.axes() & free]
        if self.initial_is_cheap():
            crossed = []
        edges = {guard: self._edge(guard, point) for guard in crossed}
        known = [edge for edge in edges.values() if edge is not None]
        self._parted(
            point,
            known[:_MOST_EDGES],
            [guard for guard in crossed if edges[guard] not in known[:_MOST_EDGES]],
            guards,
        )

    def _edge(self, guard: Linear, point: Point) -> Edge | None:
        if self.dot is not None:  # dot products compute whole vectors
            return None
        copied = {a for a in self.loops if self.nest.kind(a) in ("unrolled", "vectorized")}
        return known_edge(guard, copied, set(point.loops), self.writer.extent)

    def _parted(
        self, point: Point, edges: list[Edge], crossed: list[Linear], guards: list[Linear]
    ) -> None:
        """A tile for each side of the edges. crossed: guards whose edge is not known."""
        if not edges:
            self._masked(point, crossed, guards)
            return
        edge, *left = edges
        guards = [each for each in guards if each is not edge.guard]
        with self.code.branch(self.writer.holds(self.nest, [edge.whole], point)):
            self._parted(point, left, crossed, guards)
        with self.code.otherwise():
            whole = self._extent(edge.axis)
            self.limits[edge.axis] = min(edge.count, whole)
            if edge.begins is None:
                self._parted(point, left, crossed, guards)
            else:
                with self.code.branch(self.writer.holds(self.nest, [edge.begins], point)):
                    self._parted(point, left, crossed, guards)
            self.limits[edge.axis] = whole

    def _extent(self, axis: Axis) -> int:
        return self.limits.get(axis, self.writer.extent(axis))

    def _masked(self, point: Point, crossed: list[Linear], guards: list[Linear]) -> None:
        rest = [guard for guard in guards if not any(guard is each for each in crossed)]
        if not crossed:
            self._hoist(point, guards, list(self.spatial))
            return
        inside = [self.writer.least(guard, set(self.loops)) for guard in crossed]
        if any(form is None for form in inside):
            self._hoist(point, guards, list(self.spatial))
            return
        forms = [form for form in inside if form is not None]
        # No loop decides, so that the edge is the same everywhere.
        if all(not form.axes() for form in forms):
            self._hoist(point, guards, list(self.spatial))
            return
        with self.code.branch(self.writer.holds(self.nest, forms, point)):
            self._hoist(point, rest, list(self.spatial))
        with self.code.otherwise():
            self._hoist(point, guards, list(self.spatial))

    def initial_is_cheap(self) -> bool:
        return self.initial and self.vector is None

    def _hoist(self, point: Point, guards: list[Linear], spatial: list[Axis]) -> None:
        """Puts loops that a guard bounds, or that are not unrolled, around the others."""
        for axis in spatial:
            guarded = any(axis in guard.axes() for guard in guards)
            if guarded or self.nest.kind(axis) != "unrolled":
                left = [each for each in spatial if each is not axis]

                def body(
                    inside: Point, rest: list[Linear], values: list[tuple[str, str]], left=left
                ) -> list[tuple[str, str]]:
                    self._hoist(inside, rest, left)
                    return values

                self.writer.loop(self.nest, axis, point, guards, [], body)
                return
        self._instances(point, guards, spatial)

    def _instances(self, point: Point, guards: list[Linear], unrolled: list[Axis]) -> None:
        ranges = [range(self._extent(axis)) for axis in unrolled]
        chunks = self._chunks()
        instances = [
            Instance(dict(zip(unrolled, values)), base, lanes)
            for values in itertools.product(*ranges)
            for base, lanes in chunks
        ]
        self.rests = self._rests(guards)
        peeled = [edge.guard for edge in self.rests.values()]
        guards = [guard for guard in guards if guard not in peeled]
        masks = [guard for guard in guards if self._is_lane_guard(guard)]
        others = [guard for guard in guards if not self._is_lane_guard(guard)]
        if self.reduce is None or self.initial:
            for instance in instances:
                here = self._at(point, instance, masks)
                self._store(self._simple(here), here)
            return
        self._reduce(point, instances, masks, others)

    def _is_lane_guard(self, guard: Linear) -> bool:
        return self.vector is not None and self.vector in guard.axes()

    def _rests(self, guards: list[Linear]) -> dict[Axis, Edge]:
        """For each loop of the reduction that vectors run along, where its last iteration has fewer
        terms than the vectors have lanes. That iteration is generated separately, after the
        loop."""
        found: dict[Axis, Edge] = {}
        if self.vector is None or self.vector.kind != "reduce" or self.dot is not None:
            return found
        for guard in guards:
            edge = known_edge(guard, {self.vector}, set(self.sums), self.writer.extent)
            if edge is not None and edge.begins is None and len(edge.whole.axes()) == 1:
                found[next(iter(edge.whole.axes()))] = edge
        return found

    def _chunks(self) -> list[tuple[int, int]]:
        """The vectorised loop in pieces that fit registers: powers of two, where the last piece is
        masked if it reaches past the end and the processor can mask such elements. Sums that need
        several registers use whole ones: if a value is broadcast to two widths, LLVM copies each,
        and spills."""
        if self.vector is None:
            return [(0, 0)]
        widest, extent = self._lanes(), self._extent(self.vector)
        chunks, base = [], 0
        while base < extent:
            left = extent - base
            lanes = min(widest, 1 << (left - 1).bit_length())
            if base and self._sums_in_lanes() and masks_elements_of(self._least_bytes()):
                lanes = widest
            if self.dot is not None:
                lanes = widest  # its instructions have no other width
            if lanes > left and not masks_elements_of(self._least_bytes()):
                lanes //= 2
            chunks.append((base, lanes))
            base += lanes
        if not chunks and self.vector.kind == "reduce":
            return [(0, 1)]  # a reduction without terms, for the neutral value
        return chunks

    def _sums_in_lanes(self) -> bool:
        return self.reduce is not None and self.vector is not None and self.vector.kind != "reduce"

    def _widths(self) -> list[int]:
        """The bytes of the elements that are in memory, since indices do not count."""
        loads = [node for node in ex.walk(self.nest.body) if isinstance(node, ex.Load)]
        return [dtypes.BYTES[each.dtype] for each in (self.nest.tensor, *loads)]

    def _lanes(self) -> int:
        return lanes_of(max(4, *self._widths()))

    def _least_bytes(self) -> int:
        return min(self._widths())

    def _at(self, point: Point, instance: Instance, masks: list[Linear]) -> Point:
        here = Point({**point.loops, **instance.loops}, self.vector, instance.base, instance.lanes)
        mask: Value | None = None
        if self.vector is not None:
            extent = self._extent(self.vector)
            if instance.base + instance.lanes > extent:
                masks = [*masks, Linear(None, extent - 1) - Linear.of(self.vector)]
        for guard in masks:
            if not all(axis in here.loops or axis is self.vector for axis in guard.axes()):
                continue
            value = self.elements.form_value(guard, here)
            test = self.math.compare("ge", value, self.math.constant(0, "int64"))
            mask = self.math.binary("and", mask, test) if mask else test
        here.mask = self.math.splat(mask, instance.lanes) if mask else None
        return here

    def _simple(self, here: Point) -> Value:
        if self.initial:
            assert self.reduce is not None
            return self._neutral(0)[self.reduce.component]
        return self.math.splat(self.elements.value(self.nest.body, here), here.lanes)

    def _store(self, value: Value, here: Point) -> None:
        self.elements.store(self.nest.tensor, self.nest.stage.op.axis, value, here)

    # Reductions

    def _neutral(self, lanes: int) -> list[Value]:
        assert self.reduce is not None
        return [
            self.math.constant(each.value, each.dtype, lanes) for each in self.reduce.identities
        ]

    def _reduce(
        self,
        point: Point,
        instances: list[Instance],
        masks: list[Linear],
        guards: list[Linear],
    ) -> None:
        assert self.reduce is not None
        across = self.vector is not None and self.vector.kind == "reduce"
        starts = [v for each in instances for v in self._start(point, each, masks, across)]
        body = self._body(instances, masks)
        ends = self._sums(0, point, guards, [(each.name, each.type) for each in starts], body)
        finished = [Value(name, v.dtype, v.lanes) for (name, _), v in zip(ends, starts)]
        width = len(self.reduce.values)
        values = [finished[first : first + width] for first in range(0, len(finished), width)]
        component = self.reduce.component
        if not across:
            for instance, value in zip(instances, values):
                self._store(value[component], self._at(point, instance, masks))
            return
        count = len(self._chunks())
        for first in range(0, len(values), count):
            total = self._across(values[first : first + count])
            here = Point({**point.loops, **instances[first].loops})
            if not self.fresh:
                total = self._combined([self._loaded(here)], total)
            self._store(total[component], here)

    def _start(
        self, point: Point, instance: Instance, masks: list[Linear], across: bool
    ) -> list[Value]:
        if self.fresh or across:
            return self._neutral(instance.lanes)
        # The location in memory of a single value; several values stay in registers.
        here = self._at(point, instance, masks)
        return [self.math.splat(self._loaded(here), instance.lanes)]

    def _loaded(self, here: Point) -> Value:
        return self.elements.load(ex.Load(self.nest.tensor, self.nest.stage.op.axis), here)

    def _across(self, values: list[list[Value]]) -> list[Value]:
        """Combines the lanes of several registers to one value, beginning with registers of one
        width."""
        while len(values) > 1 and values[0][0].lanes == values[1][0].lanes:
            pairs = [
                self._combined(a, b) if b is not None and a[0].lanes == b[0].lanes else a
                for a, b in itertools.zip_longest(values[::2], values[1::2])
            ]
            odd = [
                b
                for a, b in itertools.zip_longest(values[::2], values[1::2])
                if b is not None and a[0].lanes != b[0].lanes
            ]
            values = pairs + odd
        total: list[Value] | None = None
        for value in values:
            lane = self._one_lane(value)
            total = self._combined(total, lane) if total else lane
        assert total is not None
        return total

    def _one_lane(self, values: list[Value]) -> list[Value]:
        assert self.reduce is not None
        if self.reduce.reducer is None:
            return [self.math.reduced(self.reduce.kind, values[0])]
        while values[0].lanes > 1:
            half = values[0].lanes // 2
            low, high = ([self.math.part(v, at, half) for v in values] for at in (0, half))
            values = self._combined(low, high)
        return [self.math.lane(each, 0) for each in values]

    def _combined(self, total: list[Value], value: list[Value]) -> list[Value]:
        assert self.reduce is not None
        if self.reduce.reducer is not None:
            return self.elements.combined(self.reduce.reducer, total, value)
        op = {"sum": "add", "prod": "mul"}.get(self.reduce.kind, self.reduce.kind)
        a, b = self.math.alike(total[0], value[0])
        if dtypes.is_float(a.dtype) and op in ("add", "mul"):
            return [self.math.unrounded(op, a, b)]
        return [self.math.binary(op, a, b)]

    def _sums(
        self,
        depth: int,
        point: Point,
        guards: list[Linear],
        values: list[tuple[str, str]],
        body,
    ) -> list[tuple[str, str]]:
        if depth == len(self.sums):
            return body(point, values)
        axis = self.sums[depth]

        def inside(
            here: Point, rest: list[Linear], carried: list[tuple[str, str]]
        ) -> list[tuple[str, str]]:
            self.writer.prefetch(self.nest, axis, here)
            return self._sums(depth + 1, here, rest, carried, body)

        rest = self.rests.get(axis)
        if rest is None:
            return self.writer.loop(self.nest, axis, point, guards, values, inside)
        last = self.writer.extent(axis) - 1
        if self.nest.kind(axis) == "unrolled":
            for number in range(last):
                here = point.at(axis, number)
                values = self.writer.conditional(self.nest, here, guards, values, inside)
        else:
            whole = [*guards, rest.whole]
            values = self.writer.loop(self.nest, axis, point, whole, values, inside)
        self.limits[rest.axis] = rest.count
        here = point.at(axis, last)
        values = self.writer.conditional(self.nest, here, guards, values, inside)
        del self.limits[rest.axis]
        return values

    def _body(self, instances: list[Instance], masks: list[Linear]):
        reduce = self.reduce
        assert reduce is not None
        kinds = [each.dtype for each in reduce.identities]

        def body(point: Point, carried: list[tuple[str, str]]) -> list[tuple[str, str]]:
            after = []
            for number, instance in enumerate(instances):
                own = carried[number * len(kinds) : (number + 1) * len(kinds)]
                if self.vector is not None and instance.base >= self._extent(self.vector):
                    after += own  # the last terms need no more registers
                    continue
                here = self._at(point, instance, masks)
                total = [Value(name, dtype, instance.lanes) for (name, _), dtype in zip(own, kinds)]
                added = self._added(total, here)
                after += [(each.name, kind) for each, (_, kind) in zip(added, own)]
            return after

        return body

    def _added(self, total: list[Value], here: Point) -> list[Value]:
        reduce = self.reduce
        assert reduce is not None
        if self.dot is not None:
            group = self.writer.extent(self.dot)
            dots = DotProducts(self.elements, self.nest, self.dot, group)
            return [dots.added(total[0], here)]
        value = reduce.value
        is_product = isinstance(value, ex.Binary) and value.op == "mul"
        across = self.vector is not None and self.vector.kind == "reduce"
        if reduce.kind == "sum" and is_product and dtypes.is_float(reduce.dtype):
            factors = [self.elements.value(each, here) for each in value.operands()]
            if not (across and here.mask):
                return [self.math.fma(*factors, total[0])]
            product = self.math.fma(*self.math.alike(*factors, total[0]))
            return [self.math.select(here.mask, product, total[0])]
        terms = [
            self.math.splat(self.elements.value(each, here), here.lanes) for each in reduce.values
        ]
        added = self._combined(total, terms)
        if across and here.mask is not None:
            return [self.math.select(here.mask, a, t) for a, t in zip(added, total)]
        return added
