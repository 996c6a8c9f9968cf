# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stage of a schedule: how one tensor is computed. Its methods take steps of the schedule."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.te import absent
from weft.te.errors import ScheduleError
from weft.te.expressions import Axis, Expr, Load, Reduce, walk
from weft.te.relations import Fuse, Split
from weft.te.steps import Step
from weft.te.tensors import Tensor

if TYPE_CHECKING:
    from weft.te.schedules import Schedule


@dataclass
class State:
    """What the steps on a stage have come to. attach: "root", "inline", or (tensor, axis).
    decomposed: the loop ahead of which all sums are begun, if not where the reduction begins.
    microkernel: its name and its loops, which are the innermost ones."""

    body: Expr | None
    leaves: list[Axis]
    relations: list[Split | Fuse] = field(default_factory=list)
    kinds: dict[Axis, str] = field(default_factory=dict)
    attach: Any = "root"
    prefetches: list[tuple[Tensor, Axis, int]] = field(default_factory=list)
    labels: dict[Axis, str] = field(default_factory=dict)
    decomposed: Axis | None = None
    microkernel: tuple[str, tuple[Axis, ...]] | None = None

    def copy(self) -> State:
        return State(
            self.body,
            list(self.leaves),
            list(self.relations),
            dict(self.kinds),
            self.attach,
            list(self.prefetches),
            dict(self.labels),
            self.decomposed,
            self.microkernel,
        )

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.body.axes if isinstance(self.body, Reduce) else ()


class Stage:
    """`s[Z]`. Each method checks first, and raises ScheduleError with nothing changed.

    op: the tensor's, with axes of its own in the place of those that another tensor has, too, as
    results of one te.compute do, and sums over one te.reduce_axis: a loop belongs to one tensor.
    """

    def __init__(
        self, schedule: Schedule, tensor: Tensor, label: str, renamed: dict[Axis, Axis]
    ) -> None:
        self.schedule, self.tensor, self.label, self._renamed = schedule, tensor, label, renamed
        self.op = op = tensor.op.with_axes(renamed) if renamed else tensor.op
        self.state = State(op.body, [*op.axis, *op.reduce_axis] if op.body is not None else [])
        for axis in self.state.leaves:
            self.name_axis(self.state, axis)

    @property
    def leaf_iter_vars(self) -> tuple[Axis, ...]:
        """The loops, outermost first."""
        return tuple(self.state.leaves)

    @property
    def all_iter_vars(self) -> tuple[Axis, ...]:
        """The loops, and those that they were made of."""
        return tuple(self.state.labels)

    @property
    def is_output(self) -> bool:
        return any(self.tensor is each for each in self.schedule.outputs)

    @staticmethod
    def name_axis(state: State, axis: Axis) -> None:
        taken, label, number = set(state.labels.values()), axis.name, 0
        while label in taken:
            number += 1
            label = f"{axis.name}_{number}"
        state.labels[axis] = label

    def label_of(self, axis: Any) -> str:
        """Raises: ScheduleError, if the axis is none of this stage's."""
        axis = self.schedule.own(axis)
        axis = self._renamed.get(axis, axis) if isinstance(axis, Axis) else axis
        if isinstance(axis, Axis) and axis in self.state.labels:
            return self.state.labels[axis]
        name = getattr(axis, "name", None) or repr(axis)
        raise ScheduleError(
            name, f"it is no axis of {self.label}", f"use one of {self._names(self.state.leaves)}"
        )

    def axis_named(self, label: str) -> Axis:
        for axis, each in self.state.labels.items():
            if each == label:
                return axis
        raise ScheduleError(
            label,
            f"{self.label} has no axis of that name",
            f"use one of {self._names(self.state.leaves)}",
        )

    def is_attached_to(self, stage: Stage, axis: Axis | None = None) -> bool:
        """Whether it is computed at that loop of the other stage, or at any."""
        attach = self.state.attach
        if not isinstance(attach, tuple) or attach[0] is not stage.tensor:
            return False
        return axis is None or attach[1] is axis

    def _names(self, axes: Any) -> str:
        return ", ".join(self.state.labels[axis] for axis in axes) or "none: it has no loops"

    def reads(self) -> list[Tensor]:
        found: list[Tensor] = []
        body = self.state.body
        for node in walk(body) if body is not None else ():
            if isinstance(node, Load) and not any(node.tensor is each for each in found):
                found.append(node.tensor)
        return found

    def _take(self, verb: str, *axes: Any, names: tuple[str, ...] = (), **numbers: int) -> Any:
        labels = tuple(self.label_of(axis) for axis in axes)
        return self.schedule.take(Step(verb, self.label, labels + names, tuple(numbers.items())))

    def number(self, axis: Axis, name: str, value: Any, expected: str) -> int:
        """Raises: ScheduleError for what is no integer."""
        if not isinstance(value, bool) and hasattr(value, "__index__"):
            return operator.index(value)
        raise ScheduleError(self.label_of(axis), f"{name} is {value!r}", f"give {expected}")

    def split(self, parent: Axis, factor: int | None = None, nparts: int | None = None) -> Any:
        """Two loops for one: `factor` is the extent of the inner one, `nparts` of the outer one.
        Returns (outer, inner)."""
        if (factor is None) == (nparts is None):
            raise ScheduleError(
                self.label_of(parent), "a split needs its size", "give one of factor and nparts"
            )
        name, value = ("factor", factor) if factor is not None else ("nparts", nparts)
        size = self.number(parent, name, value, "a positive integer")
        return self._take("split", parent, **{name: size})

    def tile(self, x_parent: Axis, y_parent: Axis, x_factor: int, y_factor: int) -> Any:
        """Splits both and moves the outer loops outside. Returns (x_outer, y_outer, x_inner,
        y_inner)."""
        return self.schedule.together(lambda: self._tile(x_parent, y_parent, x_factor, y_factor))

    def _tile(self, x: Axis, y: Axis, x_factor: int, y_factor: int) -> Any:
        xo, xi = self.split(x, factor=x_factor)
        yo, yi = self.split(y, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def reorder(self, *axes: Axis) -> None:
        """The given loops in this order, at the places that they have among the others."""
        self._take("reorder", *axes)

    def fuse(self, *axes: Axis) -> Axis:
        """One loop for several neighbouring ones, outermost first. Of none, as a tensor without
        dims has them, it is a loop of one iteration around the others."""
        if len(axes) == 1 and isinstance(axes[0], (list, tuple)):
            axes = tuple(axes[0])
        if not axes:
            return self._take("fuse")
        if len(axes) == 1:
            return self.axis_named(self.label_of(axes[0]))

        def pairwise() -> Axis:
            fused = axes[0]
            for axis in axes[1:]:
                fused = self._take("fuse", fused, axis)
            return fused

        return self.schedule.together(pairwise)

    def vectorize(self, var: Axis, reassociate: bool = False) -> None:
        """All iterations at once, in vectors. A loop that carries a sum can be vectorised only
        with `reassociate=True`: the terms are then added in another order."""
        self._take("vectorize", var, **({"reassociate": 1} if reassociate else {}))

    def parallel(self, var: Axis) -> None:
        """The threads divide the iterations among them."""
        self._take("parallel", var)

    def unroll(self, var: Axis) -> None:
        self._take("unroll", var)

    def compute_at(self, parent: Stage, scope: Axis) -> None:
        """Computes what an iteration of the parent's loop `scope` needs, inside it."""
        if not isinstance(parent, Stage) or parent.schedule is not self.schedule:
            raise ScheduleError(self.label, f"{parent!r} is no stage of this schedule", "give s[Z]")
        names = (parent.label, parent.label_of(scope))
        self._take("compute_at", names=names)

    def compute_inline(self) -> None:
        """Computes an element again wherever it is read."""
        self._take("compute_inline")

    def compute_root(self) -> None:
        """Computes the whole tensor first, as without a schedule."""
        self._take("compute_root")

    def prefetch(self, tensor: Tensor, var: Axis, offset: int) -> None:
        """Fetches into the cache what of `tensor` the iteration `offset` steps on begins with."""
        label = self.schedule[tensor].label
        steps = self.number(var, "offset", offset, "an integer")
        self._take("prefetch", var, names=(label,), offset=steps)

    def decompose_reduction(self, axis: Axis) -> None:
        """Begins all sums ahead of the loop `axis`, in loops of their own, instead of right
        before the reduction."""
        self._take("decompose_reduction", axis)

    def tensorize(self, axis: Axis, microkernel: str) -> None:
        """Makes one of Weft's microkernels of the loop `axis` and those inside it: "fma", a tile of
        the result in registers; "vnni", dot products of four bytes (uint8 by int8 to int32) or of
        two bfloat16s (to float32)."""
        self._take("tensorize", axis, names=(microkernel,))

    def __getattr__(self, name: str) -> Any:
        return absent.stage_method(self.__dict__.get("label", "a stage"), name)

    def __repr__(self) -> str:
        return f"<stage {self.label}: {self._names(self.state.leaves)}>"
