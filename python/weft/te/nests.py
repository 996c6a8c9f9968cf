# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A schedule's loops, with their extents, indices in terms of the loops, bounds, and buffers.

Every tensor that is neither given nor inlined has a nest. A nest at the root fills its whole
tensor; a nest attached to a loop of another fills a buffer with what one iteration of that loop
reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Expr, Load, Reduce, substituted, transformed, walk
from weft.te.linear import AxisAtom, Linear, linear, quotient, remainder
from weft.te.relations import Split
from weft.te.scans import check_loops
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.tensors import Tensor

MOST_BYTES = 1 << 28  # of the buffers of one thread


@dataclass
class Nest:
    """The loops of one tensor.

    loops: outermost first, a vectorised one last. index: the tensor's axes and reduce axes in terms
    of loops. guards: forms that are not negative where there is something to compute. offset,
    sizes: where in the tensor the buffer begins, and its shape.
    """

    stage: Stage
    body: Expr
    loops: list[Axis]
    index: dict[Axis, Linear]
    guards: list[Linear]
    offset: list[Linear]
    sizes: list[int]
    attached: dict[Axis, list[Nest]] = field(default_factory=dict)
    enclosing: list[Axis] = field(default_factory=list)

    @property
    def tensor(self) -> Tensor:
        return self.stage.tensor

    def kind(self, axis: Axis) -> str:
        return self.stage.state.kinds.get(axis, "serial")

    def all(self) -> Iterator[Nest]:
        """The attached nests, producers first, and the nest itself."""
        for nests in self.attached.values():
            for nest in nests:
                yield from nest.all()
        yield self


@dataclass
class Lowered:
    """The nests of a schedule. roots: in order of computation. extents: of every loop. inputs:
    placeholders."""

    schedule: Schedule
    roots: list[Nest]
    extents: dict[Axis, int]
    inputs: list[Tensor]

    def extent(self, axis: Axis) -> int:
        return self.extents[axis]


def inlined(schedule: Schedule, body: Expr) -> Expr:
    """The body with elements of inlined tensors replaced by their expressions."""

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Load):
            return None
        stage = schedule[node.tensor]
        indices = tuple(inlined(schedule, each) for each in node.indices)
        if stage.state.attach != "inline":
            return Load(node.tensor, indices)
        values = dict(zip(stage.op.axis, indices))
        return inlined(schedule, substituted(stage.state.body, values))

    return transformed(body, change)


def lowered(schedule: Schedule) -> Lowered:
    """The nests of a schedule. Raises: ScheduleError for a tensor that is read before it is
    computed."""
    return _Lowering(schedule).run()


class _Lowering:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.stages = schedule.stages
        self.extents: dict[Axis, int] = {}
        self.nests: dict[Tensor, Nest] = {}
        self.bodies = {
            stage.tensor: inlined(schedule, stage.state.body)
            for stage in self.stages
            if stage.state.body is not None and stage.state.attach != "inline"
        }

    def extent(self, axis: Axis) -> int:
        return self.extents[axis] if axis in self.extents else axis.extent

    def run(self) -> Lowered:
        live = self._live()
        roots = []
        for stage in reversed(self.stages):
            if stage.tensor not in self.bodies or stage.tensor not in live:
                continue
            if stage.state.attach == "root":
                roots.append(self._nest(stage, None))
            else:
                self._attach(stage, live)
        inputs = [
            stage.tensor
            for stage in self.stages
            if stage.op.body is None and self.schedule.state_of(stage.tensor) is None
        ]
        return Lowered(self.schedule, roots[::-1], self.extents, inputs)

    def _live(self) -> set[Tensor]:
        """The tensors that the outputs still need after some have been inlined."""
        live: set[Tensor] = set()

        def visit(tensor: Tensor) -> None:
            if tensor in live or tensor not in self.bodies:
                return
            live.add(tensor)
            for each in tensor.op.results:
                visit(each)
            for node in walk(self.bodies[tensor]):
                if isinstance(node, Load):
                    visit(node.tensor)

        for output in self.schedule.outputs:
            visit(output)
        return live

    def _attach(self, stage: Stage, live: set[Tensor]) -> None:
        parent_tensor, axis = stage.state.attach
        label = stage.label
        parent = self.nests.get(parent_tensor)
        parent_stage = self.schedule[parent_tensor]
        if parent is None:
            raise ScheduleError(
                label,
                f"{parent_stage.label} does not read it",
                "compute it at a tensor that does, directly or through others inside its loops",
            )
        if not any(axis is each for each in parent.loops):
            raise ScheduleError(
                label, f"{axis.name} is no loop of {parent_stage.label} any more", "choose another"
            )
        if parent.kind(axis) == "vectorized":
            raise ScheduleError(
                label,
                f"{parent_stage.state.labels[axis]} is vectorised: its iterations are one",
                "compute it at a loop outside of it",
            )
        inside = self._readers_inside(parent, axis)
        for tensor in live:
            reads = any(
                isinstance(node, Load) and node.tensor is stage.tensor
                for node in walk(self.bodies[tensor])
            )
            read_there = any(nest.tensor is tensor for nest in inside)
            if reads and not read_there and stage.op.scan is None:
                raise ScheduleError(
                    label,
                    f"{self.schedule[tensor].label} reads it outside of "
                    f"{parent_stage.state.labels[axis]}",
                    f"compute {self.schedule[tensor].label} inside that loop first, or this one "
                    "at a loop around all its readers",
                )
        place = next(i for i, each in enumerate(parent.loops) if each is axis)
        outer = [*parent.enclosing, *parent.loops[: place + 1]]
        made = self.schedule.scan_around(stage.tensor)
        if made is not None and not any(made.axis is each for each in outer):
            raise ScheduleError(
                label,
                f"it reads earlier steps of a scan, and {parent_stage.state.labels[axis]} runs "
                "outside of the loop over them",
                f"compute it at {made.axis.name} of {made.results[0].name}, or further inside",
            )
        if stage.op.scan is not None:
            step = [(Linear.of(axis), 1)]
            region = step + [(Linear(), size) for size in stage.tensor.shape[1:]]
        else:
            region = self._region(stage, inside, outer)
        nest = self._nest(stage, region)
        nest.enclosing = outer
        parent.attached.setdefault(axis, []).insert(0, nest)

    def _readers_inside(self, parent: Nest, axis: Axis) -> list[Nest]:
        """The nests at or inside the parent's loop `axis` that may read the tensor: the parent, and
        what is computed there."""
        place = next(i for i, each in enumerate(parent.loops) if each is axis)
        found = [parent]
        for loop in parent.loops[place:]:
            for nest in parent.attached.get(loop, []):
                found.extend(nest.all())
        return found

    def _region(
        self, stage: Stage, readers: list[Nest], outer: list[Axis]
    ) -> list[tuple[Linear, int]]:
        """For each dimension, where the part that the readers read begins, and its length."""
        outside = set(outer)
        region = []
        for dim, size in enumerate(stage.tensor.shape):
            found: list[tuple[Linear, int, int]] = []
            for nest in readers:
                for node in walk(self.bodies[nest.tensor]):
                    if isinstance(node, Load) and node.tensor is stage.tensor:
                        part = self._parted(node.indices[dim], nest, outside)
                        found.append(part or (Linear(), 0, size - 1))
            base = found[0][0] if found else Linear()
            low, high = min(f[1] for f in found), max(f[2] for f in found)
            whole = any(f[0] != base for f in found) or high - low + 1 >= size
            region.append((Linear(), size) if whole else (base + low, high - low + 1))
        return region

    def _parted(
        self, index: Expr, nest: Nest, outside: set[Axis]
    ) -> tuple[Linear, int, int] | None:
        """An index as a form of outer loops, with the least and the greatest value that is added to
        it; None if the index is not of that kind."""
        form = linear(index, nest.index, self.extent)
        if form is None:
            return None
        fixed, moving = {}, {}
        for atom, factor in form.terms.items():
            axes = {atom.axis} if isinstance(atom, AxisAtom) else atom.form.axes()
            if axes <= outside:
                fixed[atom] = factor
            elif axes & outside:
                return None
            else:
                moving[atom] = factor
        low, high = Linear(moving, form.constant).range(self.extent)
        return Linear(fixed), low, high

    def _nest(self, stage: Stage, region: list[tuple[Linear, int]] | None) -> Nest:
        state, shape = stage.state, stage.tensor.shape
        region = region or [(Linear(), size) for size in shape]
        for axis, (_, size) in zip(stage.op.axis, region):
            self.extents[axis] = size
        for axis in state.reduce_axes:
            self.extents[axis] = axis.extent
        guards: list[Linear] = []
        local = self._local_indices(stage, guards)
        index = {axis: local[axis] for axis in state.reduce_axes}
        for axis, (offset, size), whole in zip(stage.op.axis, region, shape):
            index[axis] = offset + local[axis]
            if size < whole:
                guards += [index[axis], Linear(None, whole - 1) - index[axis]]
        guards += self._first_steps(stage, index)
        open_guards = [each for each in guards if each.range(self.extent)[0] < 0]
        vector = [axis for axis in state.leaves if state.kinds.get(axis) == "vectorized"]
        loops = [axis for axis in state.leaves if not any(axis is each for each in vector)]
        halves = stage.tensor.dtype in ("bfloat16", "float16")
        if isinstance(state.body, Reduce) and (halves or len(state.body.values) > 1):
            loops = self._in_registers(stage, loops)
        nest = Nest(
            stage,
            self.bodies[stage.tensor],
            loops + vector,
            index,
            list(dict.fromkeys(open_guards)),
            [offset for offset, _ in region],
            [size for _, size in region],
        )
        self.nests[stage.tensor] = nest
        if stage.op.scan is not None and stage.tensor is stage.op.results[0]:
            check_loops(stage.op.scan, stage.label, index, nest.loops)
        return nest

    def _first_steps(self, stage: Stage, index: dict[Axis, Linear]) -> list[Linear]:
        """Guards that leave out the first steps of a scan, which its update does not compute."""
        made = self.schedule.scan_around(stage.tensor)
        if made is not None:
            return [Linear.of(made.axis) - made.begin]
        begin = self.schedule.first_steps.get(stage.tensor, 0)
        return [index[stage.op.axis[0]] - begin] if begin else []

    def _in_registers(self, stage: Stage, loops: list[Axis]) -> list[Axis]:
        """Moves the result's serial loops outside of a reduction that has to stay in registers:
        sums of half-precision types, which are added in float32, and reductions of several
        values."""
        kinds = stage.state.kinds
        first = next((n for n, axis in enumerate(loops) if axis.kind == "reduce"), len(loops))
        moved = [
            axis
            for axis in loops[first:]
            if axis.kind != "reduce" and kinds.get(axis) not in ("unrolled", "vectorized")
        ]
        inside = any(
            other.is_attached_to(stage, axis) for axis in loops[first:] for other in self.stages
        )
        if not inside:
            rest = [axis for axis in loops[first:] if not any(axis is each for each in moved)]
            return [*loops[:first], *moved, *rest]
        if stage.state.body.kind in ("max", "min"):
            return loops  # integers are not rounded
        label = stage.state.labels[loops[first]]
        if len(stage.state.body.values) > 1:
            raise ScheduleError(
                label,
                f"it carries {len(stage.state.body.values)} values in registers, and another "
                "tensor is computed inside",
                f"compute that outside of {label}",
            )
        raise ScheduleError(
            label,
            f"a {stage.tensor.dtype} would be rounded after each of its iterations, as "
            "another tensor is computed inside",
            f"compute that outside of {label}, or sum in float32",
        )

    def _local_indices(self, stage: Stage, guards: list[Linear]) -> dict[Axis, Linear]:
        """The tensor's axes as forms of the loops. Splits that do not divide the extent are
        guarded."""
        extents, relations = self.extents, stage.state.relations
        factors: dict[Split, int] = {}
        for axis in stage.state.labels:
            # The axis of a singleton loop follows from no other loop.
            extents.setdefault(axis, axis.extent)
        for relation in relations:
            if isinstance(relation, Split):
                extent = extents[relation.parent]
                factor = min(relation.factor, max(extent, 1)) if not relation.parts else 0
                factor = factor or -(-max(extent, 1) // min(relation.parts, max(extent, 1)))
                factors[relation] = extents[relation.inner] = factor
                extents[relation.outer] = -(-extent // factor)
            else:
                extents[relation.fused] = extents[relation.outer] * extents[relation.inner]
        value = {
            leaf: Linear() if extents[leaf] == 1 else Linear.of(leaf) for leaf in stage.state.leaves
        }
        for relation in reversed(relations):
            if isinstance(relation, Split):
                factor = factors[relation]
                form = value[relation.outer] * factor + value[relation.inner]
                value[relation.parent] = form
                if extents[relation.outer] * factor > extents[relation.parent]:
                    guards.append(Linear(None, extents[relation.parent] - 1) - form)
            else:
                inner = max(extents[relation.inner], 1)
                fused = value[relation.fused]
                value[relation.outer] = quotient(fused, inner, self.extent)
                value[relation.inner] = remainder(fused, inner, self.extent)
        return value


def reduction(nest: Nest) -> Reduce | None:
    return nest.body if isinstance(nest.body, Reduce) else None
