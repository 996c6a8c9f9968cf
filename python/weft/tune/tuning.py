# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.tune.run`: measures schedules of kernels until no more gain is expected."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from weft import _core, errors
from weft._build import LLVM_VERSION, WEFT_VERSION
from weft.artifacts import builds
from weft.te.building import Function
from weft.te.building import build as te_build
from weft.te.errors import TEError
from weft.te.schedules import Schedule
from weft.te.sized import SizedFunction
from weft.te.targets import vector_bytes
from weft.te.tensors import Tensor
from weft.tune.measuring import Runner
from weft.tune.model_tasks import tasks_of_model
from weft.tune.records import Record, Records
from weft.tune.search import Measures, Search
from weft.tune.task import Task
from weft.tune.te_tasks import TETask

Progress = Callable[[Task, int, Record], Any]


def tasks(*kernels: Any) -> list[Task]:
    """The tasks for kernels, each kernel once.

    kernels: te functions (the results of `te.build`) and lists of te tensors in the order of the
    call; or a model followed by its inputs, as in `tasks(model, *inputs)`, for the distinct kernels
    of its program, each with its share of the program's time.

    Raises: TEError for anything else; errors.NotCompiledError for a model that PyTorch runs.
    """
    of_te = (Function, SizedFunction, Tensor)
    if kernels and callable(kernels[0]) and not isinstance(kernels[0], of_te):
        return tasks_of_model(kernels[0], kernels[1:])
    found: dict[str, Task] = {}
    for each in kernels:
        if isinstance(each, Task):
            task: Task = each
        elif isinstance(each, Function):
            task = TETask(each.name, tuple(each.args))
        elif isinstance(each, (list, tuple)) and all(isinstance(t, Tensor) for t in each):
            task = TETask("kernel", tuple(each))
        elif isinstance(each, SizedFunction):
            raise TEError(f"{each.name}: schedules are tuned for given sizes: give its at(…)")
        else:
            raise TEError(f"expected a model, te functions or lists of te tensors, found {each!r}")
        found.setdefault(task.kernel, task)
    return list(found.values())


def target() -> str:
    """A digest of the machine: everything that a measurement depends on besides kernel and
    compiler."""
    facts = f"{builds.cpu_flags()} {vector_bytes()} {_core.get_num_threads()}"
    return hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()


def compiler() -> str:
    return f"weft {WEFT_VERSION}, llvm {LLVM_VERSION}"


def run(
    *kernels: Any,
    records: str | Path,
    trials: int = 24,
    patience: int = 8,
    timeout: float = 30.0,
    rounds: int = 5,
    progress: Progress | str | None = None,
    runner: str = "local",
) -> list[Record]:
    """Measures schedules of kernels and keeps the results in the file `records`.

    kernels: as for `tasks`, or tasks. trials: the most candidates of a kernel, with those of
    earlier runs; a kernel of a model gets fewer if it takes less of the model's time, but its
    default schedule is always measured.
    patience: a search ends after so many candidates in a row that are not faster than the best one.
    timeout: seconds for each candidate. rounds: how often a candidate and the default are timed in
    turns. progress: a function that is called after each candidate, or "bars". runner: "local", one
    child process of this one, or "ray", workers of a Ray cluster.

    Candidates that the records already have are not measured again. Returns the new measurements.
    Every candidate's results are compared with those of a reference; one that is wrong, hangs or
    dies is recorded as such, and never used.

    Raises: TEError, records.RecordsError; errors.ConfigError for an unknown runner.
    """
    found = tasks(*kernels)
    if progress == "bars":
        from weft.tune.progress import Bars

        bars: AbstractContextManager[Progress] = Bars(found, trials)
        with bars as shown:
            return run(
                *found,
                records=records,
                trials=trials,
                patience=patience,
                timeout=timeout,
                rounds=rounds,
                progress=shown,
                runner=runner,
            )
    measured: list[Record] = []
    turn = threading.Lock()

    def note(task: Task, number: int, record: Record) -> None:
        with turn:
            measured.append(record)
            if callable(progress):
                progress(task, number, record)

    def search(task: Task, opened: Records, lane: Measures) -> Search:
        most = trials_of(task, found, trials)
        identity = target(), compiler()
        return Search(task, opened, lane, identity, most, patience, rounds, _core.get_num_threads())

    with _runner(runner, timeout) as measuring:
        Records(records).close()  # An unusable file is reported before anything runs.
        _searched(found, measuring.lanes, records, search, note)
    return measured


def _searched(
    found: Sequence[Task],
    lanes: Sequence[Measures],
    records: str | Path,
    search: Callable[[Task, Records, Measures], Search],
    note: Callable[[Task, int, Record], None],
) -> None:
    """Searches all tasks. Every lane takes the next task that is left."""
    left, turn = iter(found), threading.Lock()

    def taken() -> Task | None:
        with turn:
            return next(left, None)

    def work(lane: Measures) -> None:
        with Records(records) as opened:
            while (task := taken()) is not None:
                for number, record in enumerate(search(task, opened, lane).run()):
                    note(task, number, record)

    if len(lanes) == 1:
        work(lanes[0])
        return
    with ThreadPoolExecutor(len(lanes)) as pool:
        for each in [pool.submit(work, lane) for lane in lanes]:
            each.result()


def trials_of(task: Task, found: Sequence[Task], trials: int) -> int:
    """The number of candidates of a task: in proportion to its share of the time, where the task
    with the greatest share gets all `trials`."""
    if trials < 1 or not task.candidates():
        return min(trials, 1)
    greatest = max(each.share for each in found)
    return max(1, math.ceil(trials * (task.share / greatest if greatest else 1.0)))


def _runner(name: str, timeout: float) -> AbstractContextManager[Any]:
    if name == "local":
        return Runner(timeout)
    if name == "ray":
        from weft.tune.fleet import RayRunner

        return RayRunner(timeout)
    raise errors.ConfigError(f"expected the runner 'local' or 'ray', found {name!r}")


def best(kernel: Any, records: str | Path) -> Any:
    """The fastest correct schedule that the records have of a kernel on this machine, or None. For
    a te kernel it is a Schedule; for a model's task the schedule's text, "" if the default was the
    fastest.

    Raises: TEError, records.RecordsError.
    """
    (task,) = tasks(kernel)
    if not Path(records).exists():
        return None
    with Records(records) as opened:
        record = opened.fastest(task.kernel, target(), compiler())
    if record is None:
        return None
    return task.schedule(record.steps) if isinstance(task, TETask) else record.steps


def build(
    outputs: Any, args: Sequence[Tensor], name: str = "main", *, records: str | Path
) -> Function:
    """As `te.build`, with the best schedule of the records, or the default one if they have
    none."""
    schedule: Schedule | None = best(list(args), records)
    return te_build(schedule or outputs, args, name)
