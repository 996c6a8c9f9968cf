# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.tune.run`: candidates of a te kernel's schedule, measured until they stop paying."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import _core
from weft._build import LLVM_VERSION, WEFT_VERSION
from weft.artifacts import builds
from weft.te.building import Function, module_of
from weft.te.building import build as te_build
from weft.te.defaults import Choice, default_schedule
from weft.te.errors import TEError
from weft.te.schedules import Schedule
from weft.te.targets import vector_bytes, vector_registers
from weft.te.tensors import Tensor
from weft.tune.measuring import Runner
from weft.tune.records import Record, Records


@dataclass(frozen=True)
class Task:
    """A kernel to tune: results, and arguments in the order of the call."""

    name: str
    args: tuple[Tensor, ...]

    @property
    def outputs(self) -> list[Tensor]:
        return [each for each in self.args if each.op.body is not None]

    @property
    def kernel(self) -> str:
        """A digest of the formulas, in which names count as well."""
        text = f"{Schedule.of(self.outputs).formulas}\n{[repr(each) for each in self.args]}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tasks(*kernels: Any) -> list[Task]:
    """Tasks of te functions (`te.build`'s), or of (tensors in order of the call), each kernel once.

    Raises: TEError for anything else.
    """
    found: dict[str, Task] = {}
    for each in kernels:
        if isinstance(each, Task):
            task = each
        elif isinstance(each, Function):
            task = Task(each.name, tuple(each.args))
        elif isinstance(each, (list, tuple)) and all(isinstance(t, Tensor) for t in each):
            task = Task("kernel", tuple(each))
        else:
            raise TEError(f"expected te functions or lists of te tensors, found {each!r}")
        found.setdefault(task.kernel, task)
    return list(found.values())


def target() -> str:
    """A digest of what a measurement depends on besides kernel and compiler."""
    facts = f"{builds.cpu_flags()} {vector_bytes()} {_core.get_num_threads()}"
    return hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()


def compiler() -> str:
    return f"weft {WEFT_VERSION}, llvm {LLVM_VERSION}"


def candidates(task: Task) -> Iterator[Schedule]:
    """Different schedules of a kernel, the one first that the model of the machine likes most;
    the default is not among them."""
    seen = {default_schedule(task.outputs).save()}
    choices = [
        Choice(rows, registers, packs)
        for rows, registers, packs in itertools.product(
            (1, 2, 3, 4, 6, 8, 12), (1, 2, 3, 4), (True, False)
        )
        if rows * registers + registers + 1 <= vector_registers()
    ]
    for choice in sorted(choices, key=_predicted):
        s = default_schedule(task.outputs, choice)
        if s.save() not in seen:
            seen.add(s.save())
            yield s


def _predicted(choice: Choice) -> float:
    """Cycles of a multiply-add in a register tile: two loads and two multiply-adds a cycle, each of
    these ready after four."""
    rows, registers = choice.rows or 1, choice.registers or 1
    sums = rows * registers
    loads = (rows + registers) / 2
    return max(sums / 2, loads, 4.0) / sums + (0.0 if choice.packs else 0.05)


def run(
    *kernels: Any,
    records: str | Path,
    trials: int = 24,
    patience: int = 8,
    timeout: float = 30.0,
    rounds: int = 5,
    progress: Callable[[Task, int, Record], Any] | None = None,
) -> list[Record]:
    """Measures schedules of the kernels and keeps what it finds in the file `records`.

    trials: the most candidates of a kernel. patience: so many in a row that are no faster than the
    best end the search. timeout: seconds for each. rounds: candidate and default in turns.
    progress: called after each candidate. What was measured before is not measured again.
    Returns what was measured now. Every candidate's results are compared with those of the loops as
    the formula has them; one that is wrong, hangs or dies is recorded as that, and never used.
    Raises: TEError, records.RecordsError.
    """
    measured = []
    with Records(records) as opened, Runner(timeout) as runner:
        for task in tasks(*kernels):
            for number, record in enumerate(
                _search(task, opened, runner, trials, patience, rounds)
            ):
                measured.append(record)
                if progress is not None:
                    progress(task, number, record)
    return measured


def _search(
    task: Task, records: Records, runner: Runner, trials: int, patience: int, rounds: int
) -> Iterator[Record]:
    known = {each.steps: each for each in records.of(task.kernel, target(), compiler())}
    default = default_schedule(task.outputs)
    fastest, disappointments, left = float("inf"), 0, trials
    for schedule in itertools.chain([default], candidates(task)):
        steps = schedule.save()
        record = known.get(steps)
        if record is None:
            if left == 0:
                return
            left -= 1
            record = _measured(task, schedule, default, runner, rounds)
            records.add(record)
            yield record
        if record.seconds is not None and record.seconds < fastest:
            fastest, disappointments = record.seconds, 0
            continue
        disappointments += 1
        if disappointments >= patience:
            return


def _measured(
    task: Task, schedule: Schedule, default: Schedule, runner: Runner, rounds: int
) -> Record:
    plain = Schedule.of(task.outputs)
    request = {
        "module": module_of(schedule, task.args),
        "incumbent": module_of(default, task.args),
        "reference": module_of(plain, task.args),
        "inputs": [[t.shape, t.dtype] for t in task.args if t.op.body is None],
        "results": [[t.shape, t.dtype] for t in task.outputs],
        "rounds": rounds,
        "threads": _core.get_num_threads(),
    }
    found = runner.measure(request)
    outcome, note = found["outcome"], found.get("note", "")
    seconds = found.get("seconds")
    return Record(task.kernel, target(), compiler(), schedule.save(), outcome, seconds, note)


def best(kernel: Any, records: str | Path) -> Schedule | None:
    """The fastest right schedule that the records have of a kernel on this machine, or None.

    Raises: TEError, records.RecordsError.
    """
    (task,) = tasks(kernel)
    if not Path(records).exists():
        return None
    with Records(records) as opened:
        for record in opened.of(task.kernel, target(), compiler()):
            if record.outcome == "right":
                return Schedule.of(task.outputs).load(record.steps)
    return None


def build(
    outputs: Any, args: Sequence[Tensor], name: str = "main", *, records: str | Path
) -> Function:
    """`te.build` with the best schedule of the records, or the default one if they have none."""
    schedule = best(list(args), records)
    return te_build(schedule or outputs, args, name)
