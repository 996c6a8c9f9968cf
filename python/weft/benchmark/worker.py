# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One system in a process of its own, that does what it is told over a pipe.

The parent sends a command and gets one answer: ("times", seconds) a list of seconds,
("outputs",) a list of arrays, ("flops",) their number, ("report", path) and ("stop",) nothing
of interest. The first message of all comes from here: `Ready` or `Failed`. What libraries
print goes to a log.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from weft.benchmark.case import Subject


@dataclass
class Ready:
    """seconds: from the model in memory to the first result."""

    title: str
    settings: str
    seconds: float


@dataclass
class Failed:
    """missing: the package that would have to be installed, if that is all."""

    reason: str
    missing: str | None = None


class Worker:
    """The parent's side. Closing it ends the process."""

    def __init__(self, system: str, subject: Subject, threads: int, log: Path) -> None:
        # Not forked: libraries start threads of their own.
        context = multiprocessing.get_context("spawn")
        self.system = system
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, system, subject, threads, log)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.state: Ready | Failed = self._receive()

    def ask(self, *command: Any) -> Any:
        """Raises: RuntimeError, if the process has died or the command failed there."""
        self.pipe.send(command)
        answer = self._receive()
        if isinstance(answer, Failed):
            raise RuntimeError(f"{self.system}: {answer.reason}")
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.send(("stop",))
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _receive(self) -> Any:
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            return Failed(f"the process ended with status {self.process.exitcode}")


def _serve(pipe: Connection, system: str, subject: Subject, threads: int, log: Path) -> None:
    with log.open("a") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    try:
        with _Session(system, subject, threads) as session:
            pipe.send(session.state)
            while (command := pipe.recv())[0] != "stop":
                pipe.send(getattr(session, command[0])(*command[1:]))
    except ModuleNotFoundError as error:
        pipe.send(Failed(str(error), error.name))
    except Exception as error:  # whatever a system raises is its row in the table
        traceback.print_exc()
        line = str(error).strip().partition("\n")[0]
        pipe.send(Failed(f"{type(error).__name__}: {line}"))


class _Session:
    """The system's side: the methods are the commands."""

    def __init__(self, system: str, subject: Subject, threads: int) -> None:
        import torch

        from weft.benchmark.systems import IN_INFERENCE_MODE

        torch.set_num_threads(threads)
        prepare = subject.system(system)
        case = subject.load()
        self.mode = torch.inference_mode() if system in IN_INFERENCE_MODE else torch.no_grad()
        start = time.perf_counter()
        with self.mode:
            self.prepared = prepare(case, threads)
            self.prepared.call()
        seconds = time.perf_counter() - start
        self.state = Ready(case.title, self.prepared.settings, seconds)

    def __enter__(self) -> _Session:
        self.mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.mode.__exit__(*exception)

    def times(self, seconds: float) -> list[float]:
        from weft.benchmark.measure import timed_calls

        return timed_calls(self.prepared.call, seconds)

    def outputs(self) -> list[Any]:
        return self.prepared.arrays(self.prepared.call())

    def flops(self) -> int:
        from weft.benchmark.flops import count

        return count(self.prepared.call)

    def report(self, path: str) -> None:
        if self.prepared.report is not None:
            with open(path, "w", encoding="utf-8") as file:
                self.prepared.report(file)
