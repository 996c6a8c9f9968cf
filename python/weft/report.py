# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of `compiled.report()`."""

from __future__ import annotations

import os
from collections import Counter
from functools import lru_cache
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import _core
from weft.specialize import Specialized


def render(programs: list[Specialized], eager_reasons: Counter[str], file: Any = None) -> None:
    """Prints every program with its kernels and fallbacks, then what PyTorch ran and why."""
    console = Console(file=file)
    for number, program in enumerate(programs):
        if program.build is None:
            continue
        _print_program(console, f"program {number}: {program.shapes}", program)
    if eager_reasons:
        table = Table("noted", "reason", title="run by PyTorch")
        for reason, calls in eager_reasons.most_common():
            table.add_row(str(calls), reason)
        console.print(table)
    if not programs and not eager_reasons:
        console.print("not called yet")


def _print_program(console: Console, title: str, program: Specialized) -> None:
    calls = program.manifest["entries"]["main"]["calls"]
    seconds = program.core.seconds() or [0.0] * len(calls)
    table = Table(title=title, title_justify="left")
    table.add_column("call")
    table.add_column("lines")
    for column in ("GFLOP", "MB", "µs", "% of peak"):
        table.add_column(column, justify="right")
    for call, time in zip(calls, seconds, strict=False):
        table.add_row(*_row(call, time))
    console.print(table)
    total = sum(seconds)
    where = program.build.artifact.path
    console.print(f"  {total * 1e6:.0f} µs in {len(calls)} calls (best of the first); {where}")
    for fallback in program.lowered.fallbacks:
        at = f" at {fallback.location}" if fallback.location else ""
        console.print(f"  {fallback.target} runs by torch.ops{at}: {fallback.reason}")
    console.print("  " + _compile_times(program))


def _row(call: dict[str, Any], time: float) -> tuple[str, ...]:
    lines = ", ".join(f"{os.path.basename(file)}:{line}" for file, line, *_ in call["locs"])
    if "fallback" in call:
        return (f"torch {call['target']}", lines, "", "", _micro(time), "")
    flops, moved = call.get("flops", 0), call.get("bytes", 0)
    share = f"{100 * flops / time / _peak():.0f}" if flops and time > 0 else ""
    return (
        f"{call['kind']} {call['kernel']}",
        lines,
        f"{flops / 1e9:.3f}",
        f"{moved / 1e6:.2f}",
        _micro(time),
        share,
    )


def _compile_times(program: Specialized) -> str:
    stages = {**program.seconds, **program.build.seconds}
    parts = ", ".join(f"{name} {value:.2f}" for name, value in stages.items())
    return f"{'from the cache' if program.build.cached else 'compiled'}: seconds {parts}"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if seconds > 0 else ""


@lru_cache
def _peak() -> float:
    return _core.measure_peak_flops(_core.get_num_threads())
