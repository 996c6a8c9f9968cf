# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.run [MODEL...]`: measures models in several systems at once.

Every system has a process of its own, alive as long as its model is measured; rounds
interleave (A B C A B C …), so that what disturbs the machine disturbs all of them. Prints
tables, the settings and what could not be measured; writes the same as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.results import (
    ModelResult,
    RunResult,
    SystemResult,
    errors_table,
    notes,
    times_table,
)
from benchmarks.worker import Failed, Worker

_SYSTEMS = (
    "eager",
    "inductor",
    "inductor-freezing",
    "inductor-autotune",
    "onnxruntime",
    "openvino",
    "weft",
)
_RESULTS = Path(__file__).parent / "results" / "local"
# PyTorch's OpenMP workers spin for some milliseconds after a call, others' too.
_PAUSE = 0.03


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("models", nargs="*", help="names from benchmarks/models.py; by default all")
    parser.add_argument("--systems", nargs="+", choices=_SYSTEMS, default=_SYSTEMS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each system in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="the JSON file")
    parser.add_argument("--report", type=Path, help="a folder for Weft's report on each model")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    names = options.models or _all_models()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    _RESULTS.mkdir(parents=True, exist_ok=True)
    run = RunResult(_machine(), options.threads, options.rounds)
    with Progress(console=console) as progress:
        for name in names:
            run.models.append(measure(name, options, run, progress))
    _print(run, console)
    path = options.output or _RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.json"
    path.write_text(json.dumps(as_json(run), indent=1) + "\n", "utf-8")
    console.print(f"written: {path}; what the systems printed: {_RESULTS}/*.log", markup=False)
    return 0


def measure(
    name: str, options: argparse.Namespace, run: RunResult, progress: Progress
) -> ModelResult:
    """One model in all systems. Adds to the peaks of the run."""
    result = ModelResult(name)
    log = _RESULTS / f"{name}.log"
    log.unlink(missing_ok=True)
    task = progress.add_task(f"{name}: float64", total=len(options.systems) + options.rounds)
    with Worker("float64", name, options.threads, log) as worker:
        if isinstance(worker.state, Failed):
            result.systems["float64"] = SystemResult(failed=worker.state.reason)
            return result
        result.title, result.flops = worker.state.title, worker.ask("flops")
        reference = worker.ask("outputs")
    with contextlib.ExitStack() as stack:
        workers = []
        for system in options.systems:
            progress.update(task, description=f"{name}: preparing {system}")
            worker = stack.enter_context(Worker(system, name, options.threads, log))
            result.systems[system] = _prepared(worker, reference)
            if result.systems[system].failed is None:
                workers.append(worker)
            progress.advance(task)
        progress.update(task, description=f"{name}: measuring")
        times: dict[str, list[float]] = {worker.system: [] for worker in workers}
        for _ in range(options.rounds):
            for worker in workers:
                time.sleep(_PAUSE)
                times[worker.system] += worker.ask("times", options.seconds)
            time.sleep(_PAUSE)
            run.peaks += _peak(options.threads)
            progress.advance(task)
        for system, each in times.items():
            result.systems[system].seconds = statistics.median(each)
        _write_reports(workers, name, options.report)
    progress.update(task, description=name)
    return result


def _prepared(worker: Worker, reference: list[Any]) -> SystemResult:
    if isinstance(worker.state, Failed):
        missing = worker.state.missing
        reason = worker.state.reason if missing is None else f"{missing} is not installed"
        return SystemResult(failed=reason)
    state = worker.state
    try:
        error = largest_error(worker.ask("outputs"), reference)
    except (RuntimeError, ValueError) as failure:
        return SystemResult(failed=str(failure))
    return SystemResult(state.settings, prepare_seconds=state.seconds, error=error)


def largest_error(outputs: list[Any], reference: list[Any]) -> float:
    """The largest absolute difference between two lists of arrays.

    Raises: ValueError, if they have not the same shapes.
    """
    found, expected = ([array.shape for array in each] for each in (outputs, reference))
    if found != expected:
        raise ValueError(f"expected outputs of shapes {expected}, found {found}")
    return max(float(abs(a - b).max()) for a, b in zip(outputs, reference, strict=True))


def _write_reports(workers: list[Worker], name: str, folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for worker in workers:
        if worker.system == "weft":
            worker.ask("report", str(folder / f"{name}.txt"))


def _peak(threads: int) -> list[float]:
    try:
        from weft import _core
    except ModuleNotFoundError:
        return []  # the systems can be compared without Weft
    return [_core.measure_peak_flops(threads)]


def _all_models() -> list[str]:
    from benchmarks.models import MODELS

    return list(MODELS)


def _machine() -> str:
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        model = next((line for line in lines if line.startswith("model name")), ": unknown CPU")
    return f"{model.partition(': ')[2].strip()}, {os.cpu_count()} processors"


def _print(run: RunResult, console: Console) -> None:
    console.print(times_table(run))
    console.print(errors_table(run))
    peak = run.peak()
    reached = "not measured" if peak is None else f"{peak / 1e9:.0f} GFLOP/s"
    console.print(
        f"{run.machine}; {run.threads} threads, float32, medians of {run.rounds} interleaved "
        f"rounds; peak of multiply-adds, measured in this run: {reached}"
    )
    for line in notes(run):
        console.print(line, markup=False)


def as_json(run: RunResult) -> dict[str, Any]:
    """The run's fields, with what is computed from them."""
    document = dataclasses.asdict(run)
    document["peak"] = run.peak()
    del document["peaks"]
    for entry, model in zip(document["models"], run.models, strict=True):
        entry["eager_over_system"] = {name: model.ratio(name) for name in model.systems}
        entry["best_peer_over_weft"] = model.best_peer_ratio()
    return document


if __name__ == "__main__":
    sys.exit(main())
