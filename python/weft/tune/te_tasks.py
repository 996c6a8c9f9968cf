# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of tensor expressions as tasks, which vary the numbers of the analytical schedule."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from weft.te.building import module_of
from weft.te.defaults import Choice, default_schedule
from weft.te.errors import ScheduleError
from weft.te.schedules import Schedule
from weft.te.targets import vector_registers
from weft.te.tensors import Tensor
from weft.tune.access import of_schedule
from weft.tune.task import Candidate, Task

_ROWS, _REGISTERS = (1, 2, 3, 4, 5, 6, 8, 10, 13), (1, 2, 3, 4, 6, 8)
_NAMES = ("rows", "registers", "packs", "inlines", "attaches")


class TETask(Task):
    """A kernel of a tensor expression. args: placeholders and results in the order of the call."""

    def __init__(self, name: str, args: tuple[Tensor, ...]) -> None:
        self.name, self.args = name, args
        # The digest depends on names as well, since the steps of a schedule use them.
        text = f"{Schedule.of(self.outputs).formulas}\n{[repr(each) for each in self.args]}"
        self.kernel = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        self._candidates: list[Candidate] | None = None

    @property
    def outputs(self) -> list[Tensor]:
        return [each for each in self.args if each.op.body is not None]

    def default(self) -> Candidate:
        schedule = default_schedule(self.outputs)
        return Candidate(schedule.save(), {}, schedule.predicted_seconds())

    def candidates(self) -> list[Candidate]:
        if self._candidates is None:
            self._candidates = self._made()
        return self._candidates

    def _made(self) -> list[Candidate]:
        seen, made = {self.default().text}, []
        for numbers in itertools.product(_ROWS, _REGISTERS, *((True, False),) * 3):
            choice = Choice(*numbers)
            rows, registers = numbers[:2]
            if rows * registers + registers + 1 > vector_registers():
                continue
            try:
                schedule = default_schedule(self.outputs, choice)
            except ScheduleError:
                continue  # a tile that is too large for one of the tensors
            text = schedule.save()
            if text not in seen:
                seen.add(text)
                named = dict(zip(_NAMES, map(int, numbers)))
                seconds, access = schedule.predicted_seconds(), of_schedule(schedule, self.args)
                made.append(Candidate(text, named, seconds, access))
        return sorted(made, key=lambda each: each.predicted)

    def schedule(self, text: str) -> Schedule:
        return Schedule.of(self.outputs).load(text)

    def request(self, candidate: Candidate) -> dict[str, Any]:
        args = list(self.args)
        return {
            "module": module_of(self.schedule(candidate.text), args),
            "incumbent": module_of(default_schedule(self.outputs), args),
            "reference": module_of(Schedule.of(self.outputs), args),
            "inputs": [[e.shape, e.dtype] for e in args if e.op.body is None],
            "results": [[e.shape, e.dtype] for e in args if e.op.body is not None],
        }
