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
    """The result of the steps on a stage.

    attach: "root", "inline", or (tensor, axis). decomposed: the loop before which all sums are
    given their first values, if that is not where the reduction begins. microkernel: its name and
    its loops, which are the innermost ones.
    """

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
    """The stage `s[Z]`. Each method checks first, and raises ScheduleError with nothing changed.

    op: the tensor's operation. Axes that belong to another tensor as well are replaced by new ones,
    since a loop belongs to one tensor; results of one te.compute, and sums over one te.reduce_axis,
    share axes.
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
        """The loops, and the loops that they were made from."""
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
        """The name of an axis. Raises: ScheduleError, if the axis does not belong to this stage."""
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
        """Whether the stage is computed at that loop of the other stage, or at any of its loops."""
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
        """The value of an option. Raises: ScheduleError if it is not an integer."""
        if not isinstance(value, bool) and hasattr(value, "__index__"):
            return operator.index(value)
        raise ScheduleError(self.label_of(axis), f"{name} is {value!r}", f"give {expected}")

    def split(self, parent: Axis, factor: int | None = None, nparts: int | None = None) -> Any:
        """Splits a loop into two: `factor` is the extent of the inner one, or `nparts` that of the
        outer one. Returns (outer, inner)."""
        if (factor is None) == (nparts is None):
            raise ScheduleError(
                self.label_of(parent), "a split needs its size", "give one of factor and nparts"
            )
        name, value = ("factor", factor) if factor is not None else ("nparts", nparts)
        size = self.number(parent, name, value, "a positive integer")
        return self._take("split", parent, **{name: size})

    def tile(self, x_parent: Axis, y_parent: Axis, x_factor: int, y_factor: int) -> Any:
        """Splits both loops and moves the outer ones outside. Returns (x_outer, y_outer, x_inner,
        y_inner)."""
        return self.schedule.together(lambda: self._tile(x_parent, y_parent, x_factor, y_factor))

    def _tile(self, x: Axis, y: Axis, x_factor: int, y_factor: int) -> Any:
        xo, xi = self.split(x, factor=x_factor)
        yo, yi = self.split(y, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def reorder(self, *axes: Axis) -> None:
        """Reorders the given loops, at the places that they have among the others."""
        self._take("reorder", *axes)

    def fuse(self, *axes: Axis) -> Axis:
        """Fuses several neighbouring loops, given outermost first, into one. Without axes, as for a
        tensor without dimensions, it makes a loop with one iteration around the others."""
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
        """Computes all iterations at once, in vectors. A loop that carries a sum can be vectorised
        only with `reassociate=True`: the terms are then added in another order."""
        self._take("vectorize", var, **({"reassociate": 1} if reassociate else {}))

    def parallel(self, var: Axis) -> None:
        """Divides the iterations among the threads."""
        self._take("parallel", var)

    def unroll(self, var: Axis) -> None:
        self._take("unroll", var)

    def compute_at(self, parent: Stage, scope: Axis) -> None:
        """Computes what one iteration of the parent's loop `scope` needs inside of that loop."""
        if not isinstance(parent, Stage) or parent.schedule is not self.schedule:
            raise ScheduleError(self.label, f"{parent!r} is no stage of this schedule", "give s[Z]")
        names = (parent.label, parent.label_of(scope))
        self._take("compute_at", names=names)

    def compute_inline(self) -> None:
        """Computes an element again wherever it is read."""
        self._take("compute_inline")

    def compute_root(self) -> None:
        """Computes the whole tensor before its readers, as without a schedule."""
        self._take("compute_root")

    def prefetch(self, tensor: Tensor, var: Axis, offset: int) -> None:
        """Prefetches the elements of `tensor` with which the iteration `offset` steps later
        begins."""
        label = self.schedule[tensor].label
        steps = self.number(var, "offset", offset, "an integer")
        self._take("prefetch", var, names=(label,), offset=steps)

    def decompose_reduction(self, axis: Axis) -> None:
        """Stores the first values of all sums before the loop `axis`, in loops of their own,
        instead of right before the reduction."""
        self._take("decompose_reduction", axis)

    def tensorize(self, axis: Axis, microkernel: str) -> None:
        """Makes the loop `axis` and those inside it one of Weft's microkernels: "fma", a tile of
        the result in registers; "vnni", dot products of four bytes (uint8 times int8 to int32) or
        of two bfloat16s (to float32); "amx", the matrix unit's products of tiles of bytes (to
        int32) or bfloat16 (to float32)."""
        self._take("tensorize", axis, names=(microkernel,))

    def __getattr__(self, name: str) -> Any:
        return absent.stage_method(self.__dict__.get("label", "a stage"), name)

    def __repr__(self) -> str:
        return f"<stage {self.label}: {self._names(self.state.leaves)}>"
