# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model compiled and measured: the rows of the demo's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import weft
from weft.benchmark.case import Case
from weft.benchmark.measure import in_float64, interleaved, largest_error


@dataclass
class Trial:
    """name: of the case. first, cached: seconds by step. The others: seconds per call and
    largest errors against float64, of PyTorch and of Weft."""

    name: str
    title: str
    compiled: Callable[..., Any]
    artifact: Path
    first: dict[str, float]
    eager_seconds: float
    weft_seconds: float
    eager_error: float
    weft_error: float
    cached: dict[str, float] | None = None


class NotCompiled(Exception):
    """PyTorch ran the call; the message tells why."""


def run_trial(name: str, case: Case, console: Console, rounds: int) -> Trial:
    """Compiles a case, shows that it does, and measures it beside PyTorch.

    Raises: NotCompiled.
    """
    compiled = weft.compile(case.module)
    with waiting(console, f"compiling {case.title}"):
        compiled(*case.args)  # PyTorch's result, with which the program is compared
        result = compiled(*case.args)
        if compiled.eager_reasons:
            raise NotCompiled(f"{case.title}: run by PyTorch: {', '.join(compiled.eager_reasons)}")
        first, artifact = compiled.compile_seconds, compiled.artifact_path
    with waiting(console, f"measuring {case.title}"):
        reference = in_float64(case.module, case.args)
        calls = {"eager": lambda: case.module(*case.args), "weft": lambda: compiled(*case.args)}
        seconds = interleaved(calls, rounds)
        eager_error = largest_error(case.module(*case.args), reference)
    return Trial(
        name,
        case.title,
        compiled,
        artifact,
        first,
        seconds["eager"],
        seconds["weft"],
        eager_error,
        largest_error(result, reference),
    )


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """Shows a spinner and the time that has passed; the line stays."""
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=1)
        yield
        progress.advance(task)


def table(trials: list[Trial]) -> Table:
    result = Table(title="PyTorch and Weft", title_justify="left")
    result.add_column("model")
    for column in ("capture s", "compile s", "cached s", "PyTorch ms", "Weft ms", "ratio"):
        result.add_column(column, justify="right")
    result.add_column("error PyTorch", justify="right")
    result.add_column("error Weft", justify="right")
    for trial in trials:
        result.add_row(*_row(trial))
    return result


def capture_seconds(steps: dict[str, float]) -> float:
    """From the call to the graph that the compiler takes."""
    return steps["capture"] + steps["lower"]


def _row(trial: Trial) -> tuple[str, ...]:
    return (
        trial.title,
        f"{capture_seconds(trial.first):.2f}",
        f"{trial.first['build']:.2f}",
        "" if trial.cached is None else f"{trial.cached['build']:.3f}",
        f"{trial.eager_seconds * 1e3:.3f}",
        f"{trial.weft_seconds * 1e3:.3f}",
        f"{trial.eager_seconds / trial.weft_seconds:.2f}",
        f"{trial.eager_error:.1e}",
        f"{trial.weft_error:.1e}",
    )
