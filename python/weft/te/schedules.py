# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`create_schedule`: schedules, which say in what order tensors and their elements are computed.

A schedule consists of its outputs' formulas and a list of steps. Everything else that stages know
follows from the steps, which can be taken again on the same formulas. So schedules can be hashed,
compared, saved as text and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.te import absent, formulas, legality, moves, scans, steps
from weft.te.errors import ScheduleError, TEError
from weft.te.expressions import Axis, Load, walk
from weft.te.families import Family, is_family
from weft.te.scans import Scan
from weft.te.stages import Stage
from weft.te.steps import Step
from weft.te.tensors import Operation, Tensor, in_order


def _tensors(ops: Any) -> list[Tensor]:
    given = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    outputs: list[Any] = []
    for each in given:
        for tensor in _made_by(each):
            if not any(tensor is other for other in outputs):
                outputs.append(tensor)
    for each in outputs:
        if not isinstance(each, Tensor):
            raise TEError(f"expected tensors made by te.compute, found {each!r}")
        if each.op.body is None:
            raise TEError(f"expected a computed tensor, found the placeholder {each.name}")
    if not outputs:
        raise TEError("expected at least one tensor, found none")
    return outputs


def _made_by(given: Any) -> tuple[Any, ...]:
    """The tensors that an `op` stands for; a tensor stands for itself."""
    if not isinstance(given, Operation):
        return (given,)
    return given.made_together or (given.tensor,)


def create_schedule(ops: Any) -> Schedule:
    """The schedule of one or several tensors, without any step. ops: tensors, or their `op`, which
    stands for all tensors that one te.compute has made.

    Raises: TEError.
    """
    return Schedule.of(ops)


class Schedule:
    """A schedule. `s[Z]` is the stage of the tensor Z. steps: the steps that were taken, as
    data."""

    def __init__(self, outputs: Sequence[Tensor], family: Family | None = None) -> None:
        self.family = family
        if family is None and is_family(outputs):
            self.family = Family(outputs)
        self.outputs = self.family.model.outputs if self.family is not None else list(outputs)
        self.steps: list[Step] = []
        self._stages: dict[Tensor, Stage] = {}
        self._taken: dict[Axis, None] = {}
        self.first_steps = scans.check_bodies(self.outputs)
        self._scans: dict[Tensor, Scan] = {}
        for each in scans.scans_of(in_order(self.outputs)):
            self._scans.update(dict.fromkeys(each.state, each))
        for tensor in in_order(self.outputs):
            self.add(tensor)
        written = in_order(self.family.outputs) if self.family is not None else [*self._stages]
        self.formulas = formulas.program(written) + self._readings()

    @classmethod
    def of(cls, ops: Any) -> Schedule:
        return cls(_tensors(ops))

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers before consumers, placeholders first."""
        order: list[Stage] = []

        def visit(stage: Stage) -> None:
            if stage not in order:
                together = [self._stages[each] for each in reversed(stage.op.results)]
                for each in together:
                    for tensor in each.reads():
                        visit(self._stages[tensor])
                order.extend(together)

        for output in self.outputs:
            visit(self._stages[output])
        return order

    def add(self, tensor: Tensor) -> Stage:
        taken, label, number = {each.label for each in self._stages.values()}, tensor.name, 0
        while label in taken:
            number += 1
            label = f"{tensor.name}_{number}"
        axes = (*tensor.op.axis, *tensor.op.reduce_axis)
        renamed = {
            each: Axis(each.extent, each.name, each.kind) for each in axes if each in self._taken
        }
        self._taken.update(dict.fromkeys(axes))
        self._stages[tensor] = stage = Stage(self, tensor, label, renamed)
        for each in tensor.op.input_tensors if tensor.op.scan is None else ():
            if each in self._scans:
                self._scans[tensor] = self._scans[each]
        stage.state.attach = self.home(tensor)
        return stage

    def scan_around(self, tensor: Tensor) -> Scan | None:
        """The scan that computes the tensor inside its loop over steps; None for other tensors."""
        return self._scans.get(tensor)

    def state_of(self, tensor: Tensor) -> Tensor | None:
        """The result of a scan whose earlier steps the placeholder reads."""
        made = self._scans.get(tensor)
        if made is None or tensor not in made.state:
            return None
        return made.results[made.state.index(tensor)]

    def home(self, tensor: Tensor) -> Any:
        """Where the tensor is computed before a step changes that: at the root, or in a scan's loop
        over steps, as in State.attach."""
        made = self._scans.get(tensor)
        if tensor.op.scan is not None and tensor is not tensor.op.results[0]:
            made = tensor.op.scan
        if made is None or tensor.op.body is None:
            return "root"
        return made.results[0], made.axis

    def own(self, tensor: Any) -> Any:
        """The tensor or axis in the member of the family at which the schedule is made, for
        formulas with variables."""
        if self.family is None:
            return tensor
        model = self.family.model
        known: Any = model.axes if isinstance(tensor, Axis) else model.tensors
        return known.get(tensor, tensor) if isinstance(tensor, (Axis, Tensor)) else tensor

    def __getitem__(self, tensor: Any) -> Stage:
        key = self.own(tensor.tensor if isinstance(tensor, Operation) else tensor)
        if isinstance(key, Tensor) and key in self._stages:
            return self._stages[key]
        raise ScheduleError(
            getattr(key, "name", repr(key)),
            "it is no tensor of this schedule",
            f"use one of {', '.join(each.label for each in self._stages.values())}",
        )

    def named(self, label: str) -> Stage:
        for stage in self._stages.values():
            if stage.label == label:
                return stage
        raise ScheduleError(
            label,
            "the schedule has no tensor of that name",
            f"use one of {', '.join(each.label for each in self._stages.values())}",
        )

    def _readings(self) -> str:
        """Which tensor is read where. It is needed if tensors share a name, since formulas do not
        tell then."""
        stages = list(self._stages.values())
        if all(stage.label == stage.tensor.name for stage in stages):
            return ""
        lines = []
        for stage in stages:
            nodes = walk(stage.op.body) if stage.op.body is not None else ()
            labels = [self[node.tensor].label for node in nodes if isinstance(node, Load)]
            lines.append(f"\n{stage.label} reads {' '.join(labels)}")
        return "".join(lines)

    def take(self, step: Step) -> Any:
        """Takes one step. Raises: ScheduleError; the schedule is then unchanged."""

        def once() -> Any:
            result = moves.take(self, step)
            self.steps.append(step)
            legality.check(self)
            return result

        return self.together(once)

    def together(self, change: Callable[[], Any]) -> Any:
        """Takes all the steps of `change`, or none of them if it raises."""
        before = {tensor: stage.state.copy() for tensor, stage in self._stages.items()}
        count = len(self.steps)
        try:
            return change()
        except BaseException:
            self._stages = {tensor: self._stages[tensor] for tensor in before}
            for tensor, state in before.items():
                self._stages[tensor].state = state
            del self.steps[count:]
            raise

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of `tensor` that the readers read instead; with `compute_at` it becomes a packed
        tile. scope: a part of its name. Returns the copy."""
        given = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        labels = tuple(self[each].label for each in given)
        return self.take(Step("cache_read", self[tensor].label, (scope, *labels)))

    def cache_write(self, tensor: Any, scope: str) -> Any:
        """A buffer in which the tensor is computed before it is copied to its own memory. The step
        has to be taken before the tensor's loops are changed. Returns the buffer; for several
        tensors, their buffers."""
        if isinstance(tensor, (list, tuple)):
            return self.together(lambda: [self.cache_write(each, scope) for each in tensor])
        return self.take(Step("cache_write", self[tensor].label, (scope,)))

    def rfactor(self, tensor: Tensor, axis: Any, factor_axis: int = 0) -> Tensor:
        """Computes partial results, one for each value of the reduction loop `axis`, as a new
        tensor with that axis as its dimension `factor_axis`. The old tensor reduces them. Returns
        the new tensor."""
        stage = self[tensor]
        label = stage.label_of(axis)
        numbers = (("factor_axis", stage.number(axis, "factor_axis", factor_axis, "an integer")),)
        return self.take(Step("rfactor", stage.label, (label,), numbers))

    def save(self) -> str:
        """The steps as text, one step on each line."""
        return steps.written(self.steps)

    def load(self, text: str) -> Schedule:
        """Takes the steps of a text on this schedule. Returns the schedule.

        Raises: ScheduleError; the schedule is then unchanged.
        """

        def replay() -> Schedule:
            for step in steps.read(text):
                self.take(step)
            return self

        return self.together(replay)

    def script(self) -> str:
        """The steps as a script of MLIR's transform dialect, which `te.load_script` reads."""
        from weft.te.scripts import written

        return written(self)

    def copy(self) -> Schedule:
        """Another schedule of the same outputs with the same steps."""
        return Schedule(self.outputs, self.family).load(self.save())

    def normalize(self) -> Schedule:
        """Returns the schedule unchanged, since reductions begin at 0 anyway. For code written for
        TVM."""
        return self

    def key(self) -> str:
        """The formulas and the steps as text, on which the generated code depends."""
        return f"{self.formulas}\n{self.save()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __str__(self) -> str:
        from weft.te.nests import lowered
        from weft.te.showing import as_loops

        at = ""
        if self.family is not None and self.family.sizes:
            sizes = ", ".join(f"{each.name} = {self.family.example}" for each in self.family.sizes)
            at = f"# as it is for {sizes}\n"
        return at + as_loops(lowered(self))

    def history(self) -> list[tuple[str, str, float]]:
        """The schedule without steps and after each step: the step, the loops, and the predicted
        seconds of a call."""
        from weft.te.costs import predicted_seconds

        replayed = Schedule(self.outputs, self.family)
        states = [("", str(replayed), predicted_seconds(replayed))]
        for step in self.steps:
            replayed.take(step)
            states.append((str(step), str(replayed), predicted_seconds(replayed)))
        return states

    def predicted_seconds(self) -> float:
        """The predicted seconds of a call, by the cost model that ranks schedules
        (`te/costs.py`)."""
        from weft.te.costs import predicted_seconds

        return predicted_seconds(self)

    def show(self, steps: bool = False) -> None:
        """Prints the loops; with `steps`, the loops and the predicted time after each step."""
        if not steps:
            print(self)
            return
        for step, loops, seconds in self.history():
            print(f"# {step or 'as the formula is'}: {seconds * 1e6:.4g} µs\n{loops}\n")

    def __getattr__(self, name: str) -> Any:
        return absent.schedule_method("the schedule", name)

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.outputs)
        return f"<te.Schedule of {names}: {len(self.steps)} steps>"
