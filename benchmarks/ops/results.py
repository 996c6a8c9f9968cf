# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run has measured: as a table with its summary, and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from benchmarks.ops.measure import HANDED_ON_SECONDS, LEAST_RATIO, Row


def print_rows(rows: Sequence[Row], settings: str, console: Console) -> None:
    """The table, then the summary and what it was measured with."""
    right = {"justify": "right"}
    table = Table("op", Column("eager µs", **right), Column("weft µs", **right),
                  Column("eager ÷ weft", **right), Column("parts ÷ weft", **right), "")  # fmt: skip
    for row in rows:
        table.add_row(escape(f"{row.group}: {row.name}"), *_figures(row), escape(_remark(row)))
    console.print(table)
    for line in summary(rows):
        console.print(line, markup=False)
    console.print(settings, markup=False)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The geometric mean, and each row that is not as it should be."""
    if not rows:
        return
    mean = statistics.geometric_mean(row.ratio for row in rows)
    slow = sorted((row for row in rows if row.slow), key=lambda row: row.ratio)
    yield (
        f"geometric mean of eager ÷ weft over {len(rows)} rows: {mean:.2f}; "
        f"{len(slow)} under {LEAST_RATIO} (where PyTorch runs something: above eager + "
        f"{HANDED_ON_SECONDS * 1e6:.0f} µs)"
    )
    yield from (f"  {row.ratio:.2f}  {row.group}: {row.name}" for row in slow)
    worse = [row for row in rows if row.slower_than_parts]
    yield f"{len(worse)} slower than the parts compiled one by one"
    yield from (f"  {row.parts / row.weft:.2f}  {row.name}" for row in worse)
    wrong = [row for row in rows if row.wrong is not None]
    yield f"{len(wrong)} with other values than PyTorch's"
    yield from (f"  {row.group}: {row.name}: {row.wrong}" for row in wrong)


def as_json(rows: Sequence[Row], settings: str) -> dict[str, Any]:
    """Times in seconds."""
    return {
        "settings": settings,
        "geometric_mean": statistics.geometric_mean(row.ratio for row in rows) if rows else None,
        "rows": [
            asdict(row)
            | {"ratio": row.ratio, "slow": row.slow, "slower_than_parts": row.slower_than_parts}
            for row in rows
        ],
    }


def _figures(row: Row) -> tuple[str, str, str, str]:
    parts = "" if row.parts is None else f"{row.parts / row.weft:.2f}"
    return f"{row.eager * 1e6:.1f}", f"{row.weft * 1e6:.1f}", f"{row.ratio:.2f}", parts


def _remark(row: Row) -> str:
    remarks = []
    if row.wrong is not None:
        remarks.append("WRONG")
    if row.slow:
        remarks.append("slow")
    if row.slower_than_parts:
        remarks.append("slower than its parts")
    if row.handed_on is not None:
        remarks.append(f"PyTorch: {row.handed_on}")
    return "; ".join(remarks)
