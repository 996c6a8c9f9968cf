# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A schedule as a script of the transform dialect, and back.

The script is a `transform.named_sequence`. Its arguments are the tensors of the formulas, named by
their attribute `te.tensor`; "te.loops" gives the loops of a tensor, outermost first; every step is
an op with the step's name, which takes and gives handles of loops and tensors. The names of handles
are of no account.
"""

from __future__ import annotations

import re
from typing import Any

from weft.te.errors import ScheduleError
from weft.te.expressions import Axis
from weft.te.schedules import Schedule
from weft.te.stages import Stage
from weft.te.steps import Step
from weft.te.tensors import Tensor
from weft.te.transform_text import Op, parsed, refused

_HANDLE = "!transform.any_op"
_TENSOR = "te.tensor"
# Steps of a tensor; the others are steps of loops.
_OF_TENSORS = ("compute_at", "compute_inline", "compute_root", "cache_read", "cache_write")
# The attribute for the name that a step gives, or chooses.
_TEXTS = {"cache_read": "scope", "cache_write": "scope", "tensorize": "microkernel"}


def written(schedule: Schedule) -> str:
    """The script of a schedule's steps."""
    return _Writer(schedule).text()


class _Writer:
    """Takes the steps again, so as to know which loops there are before each."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps = schedule.steps
        self.made = Schedule(schedule.outputs, schedule.family)
        self.lines: list[str] = []
        self.taken: set[str] = set()
        self.tensors = {stage.label: self.name(stage.label) for stage in self.made.stages}
        self.loops: dict[str, dict[str, str]] = {}

    def text(self) -> str:
        arguments = ", ".join(
            f'{name}: {_HANDLE} {{{_TENSOR} = "{label}"}}' for label, name in self.tensors.items()
        )
        for step in self.steps:
            self.step(step)
        body = "".join(f"    {line}\n" for line in self.lines)
        return (
            "module attributes {transform.with_named_sequence} {\n"
            f"  transform.named_sequence @schedule({arguments}) {{\n{body}"
            "    transform.yield\n  }\n}\n"
        )

    def name(self, wanted: str) -> str:
        plain, number = re.sub(r"[^A-Za-z0-9_.]", "_", wanted), 0
        name = f"%{plain}"
        while name in self.taken:
            number += 1
            name = f"%{plain}_{number}"
        self.taken.add(name)
        return name

    def loop(self, stage: Stage, label: str) -> str:
        """The handle of a loop. The first one that is needed asks for all of them."""
        known = self.loops.setdefault(stage.label, {})
        if label not in known:
            labels = [stage.state.labels[axis] for axis in stage.state.leaves]
            known.update({each: self.name(f"{stage.label}.{each}") for each in labels})
            operand = [self.tensors[stage.label]]
            self.op("loops", operand, {}, [known[each] for each in labels])
        return known[label]

    def step(self, step: Step) -> None:
        stage = self.made.named(step.stage)
        names, attributes = list(step.names), dict[str, Any](step.numbers)
        if step.verb in _TEXTS:
            place = 0 if step.verb in _OF_TENSORS else -1
            attributes[_TEXTS[step.verb]] = names.pop(place)
        if step.verb == "compute_at":
            parent, label = names
            operands = [self.tensors[stage.label], self.loop(self.made.named(parent), label)]
        elif step.verb in _OF_TENSORS or not names:
            operands = [self.tensors[each] for each in (stage.label, *names)]
        elif step.verb == "prefetch":
            operands = [self.loop(stage, names[0]), self.tensors[names[1]]]
        else:
            operands = [self.loop(stage, each) for each in names]
        made = self.made.take(step)
        if step.verb in ("cache_write", "rfactor"):
            self.loops.pop(stage.label, None)  # its loops are others now
        results = made if isinstance(made, tuple) else (made,)
        named = [self.result(stage, each) for each in results if each is not None]
        self.op(step.verb, operands, attributes, named)

    def result(self, stage: Stage, made: Axis | Tensor) -> str:
        if isinstance(made, Tensor):
            label = self.made[made].label
            self.tensors[label] = self.name(label)
            return self.tensors[label]
        label = stage.label_of(made)
        known = self.loops.setdefault(stage.label, {})
        known[label] = self.name(f"{stage.label}.{label}")
        return known[label]

    def op(
        self, verb: str, operands: list[str], attributes: dict[str, Any], results: list[str]
    ) -> None:
        given = ", ".join(f"{name} = {_attribute(name, each)}" for name, each in attributes.items())
        inputs, outputs = (", ".join([_HANDLE] * len(each)) for each in (operands, results))
        self.lines.append(
            f"{', '.join(results)}{' = ' if results else ''}"
            f'"te.{verb}"({", ".join(operands)}){f" {{{given}}}" if given else ""}'
            f" : ({inputs}) -> {outputs if len(results) == 1 else f'({outputs})'}"
        )


def _attribute(name: str, value: int | str) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return ("true" if value else "false") if name == "reassociate" else f"{value} : i64"


def load_script(text: str, ops: Any) -> Schedule:
    """The schedule that a script makes. ops: the tensors, as for `create_schedule`.

    Raises: ScheduleError, with the line, for a text that is no script, and for an illegal step;
    TEError for other tensors.
    """
    sequence = parsed(text, "te")
    reader = _Reader(Schedule.of(ops))
    for name, attributes in sequence.arguments:
        label = attributes.get(_TENSOR)
        if not isinstance(label, str):
            raise refused(sequence.line, f"{name} is no tensor", f'write {{{_TENSOR} = "…"}}')
        reader.define(name, reader.schedule.named(label), sequence.line)
    for op in sequence.ops:
        reader.step(op)
    return reader.schedule


class _Reader:
    """handles: the stage, or the stage and the loop's label, for which a name stands."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.handles: dict[str, Stage | tuple[Stage, str]] = {}

    def define(self, name: str, value: Stage | tuple[Stage, str], line: int) -> None:
        if name in self.handles:
            raise refused(line, f"{name} is defined twice", "choose another name")
        self.handles[name] = value

    def step(self, op: Op) -> None:
        if op.name == "loops":
            self.loops(op)
            return
        operands = [self.operand(each, op) for each in op.operands]
        if not operands:
            raise refused(op.line, f"te.{op.name} has no operand", "give loops or a tensor")
        first = operands[0]
        stage = first if isinstance(first, Stage) else first[0]
        names = self.names(op, stage, operands)
        numbers = dict(op.attributes)
        if op.name in _TEXTS:
            text = numbers.pop(_TEXTS[op.name], None)
            if not isinstance(text, str):
                raise refused(op.line, f"te.{op.name} has no {_TEXTS[op.name]}", "give a string")
            names.insert(0 if op.name in _OF_TENSORS else len(names), text)
        for name, value in numbers.items():
            if isinstance(value, str):
                raise refused(op.line, f"{name} is {value!r}", "give an integer")
        step = Step(op.name, stage.label, tuple(names), tuple(numbers.items()))
        try:
            made = self.schedule.take(step)
        except ScheduleError as error:
            raise ScheduleError(
                f"line {op.line}: {error.axis}", error.reason, error.remedy
            ) from None
        handles = made if isinstance(made, tuple) else () if made is None else (made,)
        if len(op.results) not in (0, len(handles)):
            raise refused(
                op.line,
                f"te.{op.name} gives {len(handles)} handles, and {len(op.results)} are named",
                f"name {len(handles)}",
            )
        for name, each in zip(op.results, handles):
            is_loop = isinstance(each, Axis)
            value = (stage, stage.label_of(each)) if is_loop else self.schedule[each]
            self.define(name, value, op.line)

    def loops(self, op: Op) -> None:
        stages = [self.operand(each, op) for each in op.operands]
        if len(stages) != 1 or not isinstance(stages[0], Stage):
            raise refused(op.line, "te.loops has no tensor", "give one")
        (stage,) = stages
        labels = [stage.state.labels[axis] for axis in stage.state.leaves]
        if len(labels) != len(op.results):
            raise refused(
                op.line,
                f"{stage.label} has the loops {', '.join(labels) or 'none'}, "
                f"and {len(op.results)} are named",
                f"name {len(labels)}",
            )
        for name, label in zip(op.results, labels):
            self.define(name, (stage, label), op.line)

    def names(self, op: Op, stage: Stage, operands: list[Stage | tuple[Stage, str]]) -> list[str]:
        """The names of the step's loops and tensors, in the order that Step has them."""
        of_tensor = op.name in _OF_TENSORS
        if op.name in ("fuse", "reorder") and len(operands) == 1:
            of_tensor = isinstance(operands[0], Stage)  # of no loops
        if of_tensor != isinstance(operands[0], Stage):
            wanted = "a tensor" if of_tensor else "a loop"
            raise refused(op.line, f"{op.operands[0]} is not {wanted}", f"give {wanted}")
        found: list[str] = []
        for name, each in zip(op.operands[of_tensor:], operands[of_tensor:]):
            if isinstance(each, Stage):
                found.append(each.label)
            elif op.name == "compute_at":
                found += [each[0].label, each[1]]
            elif each[0] is not stage:
                raise refused(
                    op.line, f"{name} is a loop of {each[0].label}", f"give one of {stage.label}"
                )
            else:
                found.append(each[1])
        return found

    def operand(self, name: str, op: Op) -> Stage | tuple[Stage, str]:
        if name not in self.handles:
            raise refused(op.line, f"{name} is not defined", "use what an earlier line gives")
        return self.handles[name]
