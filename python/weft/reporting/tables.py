# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of `compiled.report()` and `compiled.profile()`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from weft import _core
from weft.artifacts.dispatcher import way_of
from weft.artifacts.kernels import KernelCall, kernel_calls
from weft.reporting import roofline

if TYPE_CHECKING:
    from weft.artifacts.builds import Build
    from weft.compiled.specialize import Specialized
    from weft.compiled.training import Training
    from weft.frontend import Fallback
    from weft.reporting.profile import Profile

_FILE_WIDTH = 120


def render(programs: list[Specialized], eager_reasons: Counter[str], file: Any = None) -> None:
    """Prints every program with its kernels and fallbacks, then the calls that PyTorch ran, and
    why."""
    console = _console(file)
    compiled = [(program, program.build) for program in programs if program.build is not None]
    for number, (program, build) in enumerate(compiled):
        _print_program(console, number, program, build)
    if eager_reasons:
        table = table_of(">noted", "reason", title="run by PyTorch")
        for reason, calls in eager_reasons.most_common():
            table.add_row(str(calls), reason)
        console.print(table)
    if not compiled and not eager_reasons:
        console.print("not called yet")


def print_profile(profile: Profile, file: Any = None) -> None:
    """Prints the kernels of a profile; equal kernels of the same source lines share one row."""
    table = table_of(
        "kind", "kernel", ">×", "lines", ">µs", ">least", ">% time", ">GFLOP/s", ">GB/s",
        ">% limit", title=f"profile: {profile.title}",
    )  # fmt: skip
    rows = merged(profile.kernels)
    total = sum(row.seconds for row in rows)
    for row in rows:
        shares = [profile.limit_share(kernel) for kernel in row.calls]
        limit = sum(s * k.seconds for s, k in zip(shares, row.calls) if s is not None)
        table.add_row(
            *row.names(), _micro(row.seconds), _micro(row.least), _percent(row.seconds, total),
            _giga(row.flops, row.seconds), _giga(row.moved, row.seconds),
            _percent(limit, row.seconds) if limit else "",
        )  # fmt: skip
    table.add_section()
    count, flops, moved = (
        len(profile.kernels), sum(r.flops for r in rows), sum(r.moved for r in rows),
    )  # fmt: skip
    table.add_row(
        "total", "", str(count), "", _micro(profile.seconds), _micro(profile.least), "",
        _giga(flops, profile.seconds), _giga(moved, profile.seconds), "",
    )  # fmt: skip
    console = _console(file)
    console.print(table)
    peak = roofline.peak_flops(profile.threads) / 1e9
    bandwidth = roofline.peak_bandwidth(profile.threads) / 1e9
    console.print(
        f"  Medians of {profile.repeats} calls; the limit is {peak:.0f} GFLOP/s or "
        f"{bandwidth:.1f} GB/s from memory, whichever binds, measured on "
        f"{_threads(profile.threads)}; tensors that lie in a cache may pass it."
    )


def _console(file: Any) -> Console:
    console = Console(file=file, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    return console


def _print_program(console: Console, number: int, program: Specialized, build: Build) -> None:
    calls = program.manifest["entries"]["main"]["calls"]
    best = program.core.seconds() or [0.0] * len(calls)
    rows = merged(kernel_calls(program.manifest, [best]))
    table = table_of(
        "kind", "kernel", ">×", "lines", ">GFLOP", ">MB", ">µs", ">% time", ">% peak",
        title=f"program {number}: {program.shapes}",
    )  # fmt: skip
    total = sum(row.seconds for row in rows)
    for row in rows:
        table.add_row(
            *row.names(), *row.work(), _micro(row.seconds),
            _percent(row.seconds, total), _share_of_peak(row.flops, row.seconds),
        )  # fmt: skip
    flops = sum(row.flops for row in rows)
    table.add_section()
    table.add_row(
        "total", "", str(len(calls)), "", f"{flops / 1e9:.3f}", "", _micro(total), "",
        _share_of_peak(flops, total),
    )  # fmt: skip
    console.print(table)
    if program.lowered is not None and program.lowered.fallbacks:
        console.print(_fallback_table(program.lowered.fallbacks))
    threads = _core.get_num_threads()
    console.print(
        f"  Times are the best of the calls that were timed; the peak is "
        f"{roofline.peak_flops(threads) / 1e9:.0f} GFLOP/s, measured on {_threads(threads)}."
    )
    if build.options.precision == "bf16":
        console.print("  Matmuls and convolutions of float32 read bfloat16 and sum in float32.")
    if build.note:
        console.print(f"  {build.note}")
    if program.training is not None and program.training.backward is None:
        console.print("  Its backward is compiled when somebody asks for gradients.")
    elif program.training is not None:
        console.print(f"  {_training(program.training)}")
        _print_saved(console, program)
    console.print(f"  {_compile_times(program, build)}")
    console.print(f"  artifact: {build.artifact.path}", soft_wrap=True)


def table_of(*columns: str, title: str) -> Table:
    """A table. columns: a leading `>` aligns a column to the right. Long texts wrap, numbers do
    not."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        name = column.removeprefix(">")
        wraps = name in ("lines", "reason", "schedule", "name", "shape", "strides")
        justify: Literal["right", "left"] = "right" if name != column else "left"
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
    return table


@dataclass
class _Row:
    """The calls of one kernel from the same source lines."""

    lines: str
    calls: list[KernelCall]

    def names(self) -> tuple[str, ...]:
        return (self.kind, self.calls[0].kernel, str(len(self.calls)), self.lines)

    def work(self) -> tuple[str, str]:
        """GFLOP and MB as text, empty where they are not known."""
        known = self.kind != "torch"
        return (f"{self.flops / 1e9:.3f}", f"{self.moved / 1e6:.2f}") if known else ("", "")

    @property
    def kind(self) -> str:
        return self.calls[0].kind

    @property
    def flops(self) -> int:
        return sum(call.flops for call in self.calls)

    @property
    def moved(self) -> int:
        return sum(call.moved for call in self.calls)

    @property
    def seconds(self) -> float:
        return sum(call.seconds for call in self.calls)

    @property
    def least(self) -> float:
        return sum(call.least for call in self.calls)


def merged(calls: Iterable[KernelCall]) -> list[_Row]:
    """Merges equal kernels of the same source lines, as of a loop over layers, into the row of the
    first."""
    rows: dict[tuple[str, str], _Row] = {}
    for call in calls:
        lines = lines_text(call.lines)
        rows.setdefault((call.kernel, lines), _Row(lines, [])).calls.append(call)
    return list(rows.values())


def lines_text(lines: Iterable[tuple[str, int]]) -> str:
    """Source lines as `model.py:12, 14–16 act.py:3`: each file once, consecutive lines as
    ranges."""
    files: dict[str, set[int]] = {}
    for file, line in lines:
        files.setdefault(os.path.basename(file), set()).add(line)
    return " ".join(f"{file}:{_runs(sorted(lines))}" for file, lines in files.items())


def _runs(lines: list[int]) -> str:
    runs = []
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1] - pair[0]):
        run = [line for _, line in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(runs)


def _fallback_table(fallbacks: Iterable[Fallback]) -> Table:
    table = table_of("op", "line", "by", "reason", title="ops that PyTorch runs inside the program")
    for fallback in fallbacks:
        where = fallback.location
        line = f"{os.path.basename(where.file)}:{where.line}" if where else ""
        table.add_row(
            fallback.target, line, way_of(fallback.target, fallback.arguments), fallback.reason
        )
    return table


def _training(training: Training) -> str:
    """Tells what is saved for the backward, tensors of equal types together."""
    counted = Counter(training.saved_bytes)
    total = sum(size * count for (_, size), count in counted.items())
    parts = ", ".join(
        f"{count} × {name}" if count > 1 else name for (name, _), count in counted.items()
    )
    assert training.backward is not None
    calls = len(training.backward.manifest["entries"]["main"]["calls"])
    text = (
        f"Trains: the backward, of {calls} calls, reads {total} bytes of the forward's values"
        f"{f' ({parts})' if parts else ''}."
    )
    if (segments := training.segments) is not None and segments.reason:
        text += f" All gradients come at once, though somebody waits for some: {segments.reason}."
    elif segments is not None:
        text += f" Gradients that somebody waits for come in {len(segments.halves)} segments."
    for order, program in training.graph.higher():
        by = f"PyTorch ({program.reason})" if program.reason else "programs"
        text += f" Derivatives of order {order}: by {by}."
    return text


def _print_saved(console: Console, program: Specialized) -> None:
    """Prints the saved tensors, equal ones of one line in one row; then what the backward
    recomputes."""
    from weft.training.training_report import summary_of

    summary = summary_of(program)
    if summary.saved:
        table = table_of(
            "tensor", ">×", ">MB", "op", "lines", "reason", title="saved for the backward"
        )
        for tensor, count in Counter(summary.saved).items():
            table.add_row(
                tensor.type, str(count), f"{count * tensor.bytes / 1e6:.3f}", tensor.op,
                _line_text(tensor.line), tensor.reason,
            )  # fmt: skip
        console.print(table)
    if summary.recomputed:
        table = table_of("op", ">×", "lines", title="computed again")
        for (op, line), count in summary.recomputed.items():
            table.add_row(op, str(count), _line_text(line))
        console.print(table)


def _line_text(line: tuple[str, int] | None) -> str:
    return lines_text([line] if line else [])


def _compile_times(program: Specialized, build: Build) -> str:
    stages = {**program.seconds, **build.seconds}
    parts = ", ".join(f"{name} {value:.2f}" for name, value in stages.items())
    return f"{'from the cache' if build.cached else 'compiled'}, seconds: {parts}"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if seconds > 0 else ""


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}" if whole else ""


def _giga(work: int, seconds: float) -> str:
    return f"{work / seconds / 1e9:.1f}" if work and seconds else ""


def _share_of_peak(flops: int, seconds: float) -> str:
    if not flops or not seconds:
        return ""
    return _percent(flops / seconds, roofline.peak_flops(_core.get_num_threads()))


def _threads(threads: int) -> str:
    return f"{threads} {'thread' if threads == 1 else 'threads'}"
