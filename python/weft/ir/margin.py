# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs beside the text of a module."""

from __future__ import annotations

import re

from weft import _core
from weft.ir.costs import Cost, sum_of
from weft.ir.measuring import seconds_of
from weft.ir.module import Module

# An op of a function's body, not one inside of it.
_OP = re.compile(r"^    [^ ^}]")
_FUNCTION = re.compile(r"^  (?:func|llvm)\.func ")


def with_costs(module: Module, text: str, *, measured: bool) -> str:
    """The lines of a module's text, each op's with its cost in the margin, and a function's with
    the sum."""
    threads = _core.get_num_threads()
    times = seconds_of(module) if measured else {}
    functions = iter(module.functions)
    ops = iter(())
    head = _columns("FLOP", "bytes", "least", "time" if measured else "")
    lines = [f"{head} |"]
    for line in text.splitlines():
        margin = _columns("", "", "", "")
        if _FUNCTION.match(line):
            function = next(functions)
            ops = iter(function.body) if function.blocks else iter(())
            total = sum_of(function.body) if function.blocks else Cost()
            spent = sum(times[op][0] for op in function.blocks and function.body if op in times)
            margin = _of(total, threads, spent or None)
        elif _OP.match(line) and (op := next(ops, None)) is not None:
            margin = _of(op.cost, threads, times[op][0] if op in times else None)
        lines.append(f"{margin} | {line}")
    return "\n".join(lines)


def _of(cost: Cost, threads: int, spent: float | None) -> str:
    if not cost.known:
        return _columns("?", scaled(cost.bytes), "", _micro(spent))
    if not cost.flops and not cost.bytes:
        return _columns("", "", "", _micro(spent))
    least = cost.seconds(threads)
    return _columns(scaled(cost.flops), scaled(cost.bytes), _micro(least), _micro(spent))


def _columns(*cells: str) -> str:
    return " ".join(cell.rjust(9) for cell in cells)


def _micro(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.2f} us"


def scaled(number: float) -> str:
    """1234567 as "1.23 M"."""
    for unit in ("", " k", " M", " G"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g} T"
