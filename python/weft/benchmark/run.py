# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures a program in several systems at once.

Every system has a process of its own, alive as long as its program is measured; rounds
interleave (A B C A B C …), so that what disturbs the machine disturbs all of them.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from weft import _core
from weft.benchmark.case import Subject
from weft.benchmark.measure import PAUSE
from weft.benchmark.results import ModelResult, RunResult, SystemResult
from weft.benchmark.systems import REFERENCE
from weft.benchmark.worker import Failed, Ready, Worker


@dataclass(frozen=True)
class Settings:
    """seconds: of each system in a round. logs: a folder for what the systems print.
    reports: one for Weft's report on each program, or None."""

    systems: Sequence[str]
    rounds: int
    seconds: float
    threads: int
    logs: Path
    reports: Path | None = None


def measure(
    subject: Subject, settings: Settings, run: RunResult, progress: Progress
) -> ModelResult:
    """One program in all systems. Adds to what the run knows of the machine."""
    name = subject.name
    result = ModelResult(name, name)
    log = settings.logs / f"{name}.log"
    log.unlink(missing_ok=True)
    task = progress.add_task(f"{name}: float64", total=len(settings.systems) + settings.rounds)
    reference = _describe(result, subject, settings.threads, log)
    with contextlib.ExitStack() as stack:
        workers = []
        for system in settings.systems:
            progress.update(task, description=f"{name}: preparing {system}")
            worker = stack.enter_context(Worker(system, subject, settings.threads, log))
            result.systems[system] = _prepared(worker, reference)
            if result.systems[system].failed is None:
                workers.append(worker)
            progress.advance(task)
        progress.update(task, description=f"{name}: measuring")
        times: dict[str, list[float]] = {worker.system: [] for worker in workers}
        for _ in range(settings.rounds):
            for worker in workers:
                time.sleep(PAUSE)
                times[worker.system] += worker.ask("times", settings.seconds)
            time.sleep(PAUSE)
            run.peaks.append(_core.measure_peak_flops(settings.threads))
            if settings.threads > 1 and (transfer := _core.measure_line_transfer()):
                run.transfers.append(transfer)
            progress.advance(task)
        for system, each in times.items():
            result.systems[system].seconds = statistics.median(each)
        _write_reports(workers, name, settings.reports)
    progress.update(task, description=name)
    return result


def _describe(result: ModelResult, subject: Subject, threads: int, log: Path) -> list[Any] | None:
    """Fills in the title and the FLOPs; the reference's outputs, or None where there are none."""
    with Worker(REFERENCE, subject, threads, log) as worker:
        if isinstance(worker.state, Ready):
            result.title, result.flops = worker.state.title, worker.ask("flops")
            return worker.ask("outputs")
        result.reference_failed = worker.state.reason
    with Worker("eager", subject, threads, log) as worker:
        if isinstance(worker.state, Ready):
            result.title, result.flops = worker.state.title, worker.ask("flops")
    return None


def _prepared(worker: Worker, reference: list[Any] | None) -> SystemResult:
    if isinstance(worker.state, Failed):
        missing = worker.state.missing
        reason = worker.state.reason if missing is None else f"{missing} is not installed"
        return SystemResult(failed=reason)
    state = worker.state
    try:
        outputs = worker.ask("outputs")
        error = None if reference is None else largest_error(outputs, reference)
    except (RuntimeError, ValueError) as failure:
        return SystemResult(failed=str(failure))
    return SystemResult(state.settings, prepare_seconds=state.seconds, error=error)


def largest_error(outputs: list[Any], reference: list[Any]) -> float | None:
    """The largest absolute difference between two lists of arrays; None for empty lists.

    Raises: ValueError, if they have not the same shapes.
    """
    found, expected = ([array.shape for array in each] for each in (outputs, reference))
    if found != expected:
        raise ValueError(f"expected outputs of shapes {expected}, found {found}")
    pairs = zip(outputs, reference, strict=True)
    return max((float(abs(a - b).max(initial=0.0)) for a, b in pairs), default=None)


def _write_reports(workers: list[Worker], name: str, folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for worker in workers:
        if worker.system == "weft":
            worker.ask("report", str(folder / f"{name}.txt"))


def machine() -> str:
    """The processor and how many there are. Names of virtual ones leave its generation open,
    which family and model tell."""
    facts: dict[str, str] = {}
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            name, _, fact = line.partition(":")
            facts.setdefault(name.strip(), fact.strip())
    kind = ", ".join(f"{name} {facts[name]}" for name in ("cpu family", "model") if name in facts)
    return f"{facts.get('model name', 'unknown CPU')} ({kind}), {os.cpu_count()} processors"
