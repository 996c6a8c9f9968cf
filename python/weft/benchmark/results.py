# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run has measured: as a table, and as JSON."""

from __future__ import annotations

import datetime
import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass
class SystemResult:
    """One system on one model. seconds: median of a call. prepare_seconds: to the first
    result. error: the largest against float64. failed: why nothing was measured, or None."""

    settings: str = ""
    seconds: float | None = None
    prepare_seconds: float | None = None
    error: float | None = None
    failed: str | None = None


@dataclass
class ModelResult:
    """flops: of one call. systems: in the order of the columns. reference_failed: why there
    are no errors against float64, or None."""

    name: str
    title: str = ""
    flops: int = 0
    systems: dict[str, SystemResult] = field(default_factory=dict)
    reference_failed: str | None = None

    def ratio(self, system: str) -> float | None:
        """The time of PyTorch eager over that of a system."""
        return _over(self._seconds("eager"), self._seconds(system))

    def best_peer_ratio(self) -> float | None:
        """The time of the fastest system besides Weft (in any precision) over Weft's."""
        peers = [self._seconds(name) for name in self.systems if not name.startswith("weft")]
        times = [seconds for seconds in peers if seconds is not None]
        return _over(min(times, default=None), self._seconds("weft"))

    def _seconds(self, system: str) -> float | None:
        return self.systems[system].seconds if system in self.systems else None


@dataclass
class RunResult:
    """Between the rounds, measured again and again: peaks, the machine's float32 operations per
    second, and transfers, the seconds of a cache line from one processor to another (they tell
    whether virtual processors share a cache, which changes under way). date: of the run's start,
    in UTC, as 2026-01-31."""

    machine: str
    threads: int
    rounds: int
    models: list[ModelResult] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    transfers: list[float] = field(default_factory=list)
    date: str = field(default_factory=lambda: f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}")

    def peak(self) -> float | None:
        return statistics.median(self.peaks) if self.peaks else None

    def transfer(self) -> tuple[float, float, float] | None:
        """The least, the median and the most seconds of a cache line between processors."""
        if not self.transfers:
            return None
        return min(self.transfers), statistics.median(self.transfers), max(self.transfers)


def _over(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def print_run(run: RunResult, console: Console) -> None:
    """The tables, the settings and what could not be measured."""
    console.print(times_table(run))
    console.print(errors_table(run))
    peak = run.peak()
    reached = "not measured" if peak is None else f"{peak / 1e9:.0f} GFLOP/s"
    console.print(
        f"{run.date}, {run.machine}; {run.threads} threads, float32, medians of {run.rounds} "
        f"interleaved rounds; peak of multiply-adds, measured in this run: {reached}"
    )
    if (transfer := run.transfer()) is not None:
        least, median, most = (f"{1e9 * seconds:.0f}" for seconds in transfer)
        console.print(
            f"a cache line from one processor to another: {least} to {most} ns, median {median}"
        )
    for line in notes(run):
        console.print(line, markup=False)


def as_json(run: RunResult) -> dict[str, Any]:
    """The run's fields, with what is computed from them."""
    document = asdict(run)
    document["peak"] = run.peak()
    document["transfer"] = run.transfer()
    del document["peaks"], document["transfers"]
    for entry, model in zip(document["models"], run.models, strict=True):
        entry["eager_over_system"] = {name: model.ratio(name) for name in model.systems}
        entry["best_peer_over_weft"] = model.best_peer_ratio()
    return document


def times_table(run: RunResult) -> Table:
    """A row per model: each system's milliseconds with the ratio to eager, and the errors."""
    systems = list(dict.fromkeys(name for model in run.models for name in model.systems))
    table = Table(title="ms per call, and eager ÷ system", title_justify="left")
    table.add_column("model")
    for name in systems:
        table.add_column(name, justify="right")
    for column in ("best peer ÷ weft", "weft % of peak"):
        table.add_column(column, justify="right")
    for model in run.models:
        cells = [_time_cell(model, name) for name in systems]
        ratio = _number(model.best_peer_ratio(), "{:.2f}")
        table.add_row(model.title, *cells, ratio, _share_of_peak(model, run.peak()))
    return table


def errors_table(run: RunResult) -> Table:
    """A row per model: each system's largest error against float64."""
    systems = list(dict.fromkeys(name for model in run.models for name in model.systems))
    table = Table("model", title="largest error against float64", title_justify="left")
    for name in systems:
        table.add_column(name, justify="right")
    for model in run.models:
        errors = [model.systems.get(name, SystemResult()).error for name in systems]
        table.add_row(model.title, *(_number(error, "{:.1e}") for error in errors))
    return table


def notes(run: RunResult) -> list[str]:
    """The settings of the systems, then one line for everything that was not measured."""
    settings = {
        f"{name}: {system.settings}"
        for model in run.models
        for name, system in model.systems.items()
        if system.settings
    }
    failures = [
        f"{model.name}, {name}: not measured: {system.failed}"
        for model in run.models
        for name, system in model.systems.items()
        if system.failed is not None
    ]
    references = [
        f"{model.name}: no errors: not to be had in float64: {model.reference_failed}"
        for model in run.models
        if model.reference_failed is not None
    ]
    return [*sorted(settings), *references, *failures]


def _time_cell(model: ModelResult, system: str) -> str:
    result = model.systems.get(system, SystemResult())
    if result.seconds is None:
        return "–"
    ratio = model.ratio(system)
    return f"{result.seconds * 1e3:.3f}" + ("" if ratio is None else f" ({ratio:.2f})")


def _share_of_peak(model: ModelResult, peak: float | None) -> str:
    weft = model.systems.get("weft", SystemResult())
    if weft.seconds is None or peak is None:
        return "–"
    return f"{100 * model.flops / weft.seconds / peak:.0f}"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
