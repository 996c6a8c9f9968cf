# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that judge entries, and may die of them: what ends one is recorded as CRASH, and
another goes on behind it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from opinfo.samples import Choice, Entry

_MOST_MEMORY = 12 << 30  # bytes of address space: some samples ask for more than there is
_MOST_ENTRIES = 60  # of one process: loaded programs stay
_TICK = 1.0  # seconds
_SECONDS_TO_END = 5.0


@dataclass
class Task:
    """An entry, as far as it is judged. busy: what the worker does now."""

    entry: Entry
    judged: list[Any] = field(default_factory=list)
    alone: bool = False
    busy: Any = None
    begun: float = 0.0

    @property
    def known(self) -> frozenset[int]:
        return frozenset(each.number for each in self.judged)


def judge_all(entries: list[Entry], choice: Choice, jobs: int, timeout: float) -> Iterator[Task]:
    """Each entry's task once it is done. timeout: seconds for a single step."""
    waiting = [Task(entry) for entry in entries][::-1]
    workers = [_Worker(choice) for _ in range(min(jobs, len(entries)))]
    try:
        while waiting or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.give(waiting.pop())
            wait([worker.pipe for worker in workers if worker.task], _TICK)
            for worker in workers:
                yield from worker.heed(timeout)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """One process after another."""

    def __init__(self, choice: Choice) -> None:
        self.task: Task | None = None
        self._choice = choice
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._folder = tempfile.mkdtemp(prefix="weft-opinfo-")
        self._process = context.Process(
            target=_work, args=(theirs, self._folder, self._choice), daemon=True
        )
        self._process.start()
        theirs.close()
        self._left = _MOST_ENTRIES

    def give(self, task: Task) -> None:
        if self._left == 0:
            self.stop()
            self._start()
        self._left -= 1
        self.task, self._heard = task, time.monotonic()
        task.begun = task.begun or self._heard
        self.pipe.send((task.entry, task.known, task.alone))

    def heed(self, timeout: float) -> Iterator[Task]:
        """The task, if the worker has finished it."""
        try:
            while self.task is not None and self.pipe.poll():
                message = self.pipe.recv()
                self._heard = time.monotonic()
                if isinstance(message, Exception):
                    raise RuntimeError(f"{self.task.entry} cannot be judged") from message
                if message is None:
                    done, self.task = self.task, None
                    yield done
                elif hasattr(message, "verdict"):
                    self.task.judged.append(message)
                else:
                    self.task.busy = message
        except (EOFError, OSError):
            self._go_on("dies")
            return
        if self.task is not None and time.monotonic() - self._heard > timeout:
            self._go_on(f"takes longer than {timeout:.0f} s")

    def _go_on(self, how: str) -> None:
        """Judges the call that the process ended at, and the rest of the entry in another one."""
        from opinfo.entry import Judged, Verdict

        task, step = self.task, self.task.busy
        self._process.join(_SECONDS_TO_END if how == "dies" else 0)
        code = self._process.exitcode
        self.stop()
        self._start()
        if step is not None and len(step.numbers) == 1:
            verdict = Verdict.REFUSED if step.by_torch else Verdict.CRASH
            who = "PyTorch" if step.by_torch else "the program"
            what = f"{who} {how}" + (f" (exit {code})" if how == "dies" else "")
            task.judged.append(Judged(step.numbers[0], f"{step.numbers[0]}", verdict, what))
        elif step is None:  # the samples cannot be made
            task.judged.append(Judged(-1, "samples", Verdict.CRASH, f"making samples {how}"))
            task.alone = True
        else:
            task.alone = True
        task.busy = None
        self.give(task)

    def stop(self) -> None:
        """At once, if it is busy."""
        if self.task is None and self._process.is_alive():
            self.pipe.send(None)
            self._process.join(_SECONDS_TO_END)
        self._process.kill()
        self._process.join()
        self.pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _work(pipe: Connection, folder: str, choice: Choice) -> None:
    os.environ["WEFT_CACHE_DIR"] = folder
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import torch

    torch.set_num_threads(1)
    # What PyTorch refuses it tells at length, and warns of.
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from opinfo.entry import judge

    while True:
        given = pipe.recv()
        if given is None:
            return
        entry, known, alone = given
        try:
            for message in judge(entry, choice, known, alone):
                pipe.send(message)
        except Exception as error:  # of the judge: what calls raise is caught where they are made
            pipe.send(error)
            raise
        pipe.send(None)
        _empty(folder)


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
