# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.ops [--only WORD...]`: single ops and small compositions, beside PyTorch.

Each row is measured in many short rounds in which PyTorch and Weft take turns, and the best round
of each counts. Values are compared too. An op that PyTorch runs inside Weft's program is marked,
and may take 5 µs more than PyTorch's own call.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

import weft
from benchmarks.ops import (
    compositions,
    contractions,
    elementwise,
    indexing,
    layouts,
    reductions,
    windows,
)
from benchmarks.ops.case import Op
from benchmarks.ops.measure import Row, measure
from benchmarks.ops.results import as_json, print_rows
from weft.benchmark.run import machine

_FAMILIES = (
    elementwise, reductions, contractions, windows, indexing, layouts, compositions
)  # fmt: skip


def all_ops() -> list[Op]:
    return [op for family in _FAMILIES for op in family.ops()]


def selected(words: list[str]) -> list[Op]:
    """The ops whose `group: name` holds one of the words; all where there are none."""
    ops = {f"{op.group}: {op.name}": op for op in all_ops()}
    return [op for name, op in ops.items() if not words or any(word in name for word in words)]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="of rows' names")
    parser.add_argument("--seconds", type=float, default=0.3, help="of the rounds of each row")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="the file to write")
    parser.add_argument("--list", action="store_true", help="print the names and measure nothing")
    return parser.parse_args(arguments)


@torch.inference_mode()
def main() -> int:
    options = parse()
    ops = selected(options.only)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if options.list:
        for op in ops:
            console.print(f"{op.group}: {op.name}", markup=False)
        return 0
    torch.set_num_threads(options.threads)
    weft.set_num_threads(options.threads)
    rows: list[Row] = []
    gc.disable()
    for op in track(ops, console=console):
        rows.append(measure(op, options.seconds))
        gc.collect()
    settings = (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {machine()}; {options.threads} threads; "
        f"torch {torch.__version__}, inference_mode; weft {weft.__version__}; best of the rounds "
        f"of {options.seconds:g} s a row, in turns"
    )
    print_rows(rows, settings, console)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(rows, settings), indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
