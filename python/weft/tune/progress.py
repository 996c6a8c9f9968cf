# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two progress bars: one for the current task, and one for all tasks with the time left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from weft.tune.records import Record
from weft.tune.task import Task


class Bars:
    """Shows progress bars. It is called after each candidate, as the `progress` of `tune.run`."""

    def __init__(self, tasks: Sequence[Task], trials: int) -> None:
        from weft.tune.tuning import trials_of

        self._trials = {each.kernel: trials_of(each, tasks, trials) for each in tasks}
        self._shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._all = self._shown.add_task("model", total=sum(self._trials.values()))
        self._task = self._shown.add_task("", total=1, visible=False)
        self._current: Task | None = None
        self._done = 0

    def __call__(self, task: Task, number: int, record: Record) -> None:
        total = self._trials[task.kernel]
        if task is not self._current:
            # the candidates that the task's search left out count as done
            if self._current is not None:
                skipped = self._trials[self._current.kernel] - self._done
                self._shown.advance(self._all, skipped)
            self._current, self._done = task, 0
            self._shown.reset(
                self._task, total=total, description=task.name, visible=True, completed=0
            )
        self._done += 1
        time = f"{record.seconds * 1e6:.1f} µs" if record.seconds is not None else record.outcome
        self._shown.update(self._task, completed=number + 1, description=f"{task.name} {time}")
        self._shown.advance(self._all)

    def __enter__(self) -> Bars:
        self._shown.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._shown.stop()
