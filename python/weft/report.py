# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of `compiled.report()`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from weft import _core
from weft.dispatcher import way_of
from weft.specialize import Specialized

_FILE_WIDTH = 120


def render(programs: list[Specialized], eager_reasons: Counter[str], file: Any = None) -> None:
    """Prints every program with its kernels and fallbacks, then what PyTorch ran and why."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    compiled = [program for program in programs if program.build is not None]
    for number, program in enumerate(compiled):
        _print_program(console, number, program)
    if eager_reasons:
        table = _table(">noted", "reason", title="run by PyTorch")
        for reason, calls in eager_reasons.most_common():
            table.add_row(str(calls), reason)
        console.print(table)
    if not compiled and not eager_reasons:
        console.print("not called yet")


def _print_program(console: Console, number: int, program: Specialized) -> None:
    calls = program.manifest["entries"]["main"]["calls"]
    seconds = program.core.seconds() or [0.0] * len(calls)
    rows = _merged([_Row.of(call, time) for call, time in zip(calls, seconds)])
    table = _table(
        "kind", "kernel", ">×", "lines", ">GFLOP", ">MB", ">µs", ">% time", ">% peak",
        title=f"program {number}: {program.shapes}",
    )  # fmt: skip
    total = sum(seconds)
    for row in rows:
        table.add_row(*row.cells(total))
    flops = sum(row.flops for row in rows)
    rate = flops / total if total else 0.0
    table.add_section()
    table.add_row(
        "total", "", str(len(calls)), "", f"{flops / 1e9:.3f}", "", _micro(total), "",
        _share_of_peak(rate),
    )  # fmt: skip
    console.print(table)
    if program.lowered.fallbacks:
        console.print(_fallback_table(program))
    threads = _core.get_num_threads()
    console.print(
        f"  Times are the best of the first calls; the peak is {_peak(threads) / 1e9:.0f} GFLOP/s, "
        f"measured on {threads} {'thread' if threads == 1 else 'threads'}."
    )
    console.print(f"  {_compile_times(program)}")
    console.print(f"  artifact: {program.build.artifact.path}", soft_wrap=True)


def _table(*columns: str, title: str) -> Table:
    """columns: a leading `>` aligns one to the right; only reasons and lines wrap."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        name = column.removeprefix(">")
        wraps = name in ("lines", "reason")
        justify = "right" if name != column else "left"
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
    return table


@dataclass
class _Row:
    """Calls of one kernel from the same lines. flops, moved (bytes), seconds: of all of them."""

    kind: str
    kernel: str
    lines: str
    count: int
    flops: int
    moved: int
    seconds: float

    @staticmethod
    def of(call: dict[str, Any], seconds: float) -> _Row:
        lines = _lines(call["locs"])
        if "fallback" in call:
            return _Row("torch", call["target"], lines, 1, 0, 0, seconds)
        return _Row(call["kind"], call["kernel"], lines, 1, call["flops"], call["bytes"], seconds)

    def cells(self, total: float) -> tuple[str, ...]:
        rate = self.flops / self.seconds if self.seconds else 0.0
        share = f"{100 * self.seconds / total:.0f}" if total else ""
        work = (f"{self.flops / 1e9:.3f}", f"{self.moved / 1e6:.2f}")
        known = work if self.kind != "torch" else ("", "")
        return (
            self.kind, self.kernel, str(self.count), self.lines, *known, _micro(self.seconds),
            share, _share_of_peak(rate),
        )  # fmt: skip


def _merged(rows: list[_Row]) -> list[_Row]:
    """Equal kernels of equal lines (a loop over layers) in one row, where the first was."""
    merged: dict[tuple[str, str], _Row] = {}
    for row in rows:
        first = merged.setdefault((row.kernel, row.lines), row)
        if first is not row:
            first.count += 1
            first.flops += row.flops
            first.moved += row.moved
            first.seconds += row.seconds
    return list(merged.values())


def _lines(locations: list[list[Any]]) -> str:
    """`model.py:12, 14–16 act.py:3`: each file once, its lines in runs."""
    files: dict[str, set[int]] = {}
    for file, line, *_ in locations:
        files.setdefault(os.path.basename(file), set()).add(line)
    return " ".join(f"{file}:{_runs(sorted(lines))}" for file, lines in files.items())


def _runs(lines: list[int]) -> str:
    runs = []
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1] - pair[0]):
        run = [line for _, line in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(runs)


def _fallback_table(program: Specialized) -> Table:
    table = _table("op", "line", "by", "reason", title="ops that PyTorch runs inside the program")
    for fallback in program.lowered.fallbacks:
        where = fallback.location
        line = f"{os.path.basename(where.file)}:{where.line}" if where else ""
        table.add_row(
            fallback.target, line, way_of(fallback.target, fallback.arguments), fallback.reason
        )
    return table


def _compile_times(program: Specialized) -> str:
    stages = {**program.seconds, **program.build.seconds}
    parts = ", ".join(f"{name} {value:.2f}" for name, value in stages.items())
    return f"{'from the cache' if program.build.cached else 'compiled'}, seconds: {parts}"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if seconds > 0 else ""


def _share_of_peak(flops_per_second: float) -> str:
    if not flops_per_second:
        return ""
    return f"{100 * flops_per_second / _peak(_core.get_num_threads()):.0f}"


@lru_cache
def _peak(threads: int) -> float:
    """The most float32 multiply-adds a second (two operations each), measured once."""
    return _core.measure_peak_flops(threads)
