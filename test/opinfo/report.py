# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of what was judged: on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from opinfo.entry import Verdict
from opinfo.records import Record

_VERDICTS = (Verdict.PASS, Verdict.EAGER, Verdict.WRONG, Verdict.CRASH)
_MOST_REASONS = 40


def summary_of(records: Sequence[Record]) -> dict[str, Any]:
    """by_kind: entries of each kind and dtype by verdict. native: of the entries of plain calls
    by dtype, those that PyTorch runs no call of, and calls that it does not run, as shares."""
    plain = [record for record in records if record.kind == "call"]
    dtypes = list(dict.fromkeys(record.dtype for record in records))
    return {
        "by_kind": {
            kind: {
                dtype: dict(
                    Counter(r.verdict for r in records if (r.kind, r.dtype) == (kind, dtype))
                )
                for dtype in dtypes
            }
            for kind in dict.fromkeys(record.kind for record in records)
        },
        "native": {
            dtype: _native([record for record in plain if record.dtype == dtype])
            for dtype in dtypes
        },
        "reasons": dict(_reasons(plain).most_common()),
        "wrong": [
            {"op": r.op, "dtype": r.dtype, "kind": r.kind, "sample": sample, "what": what}
            for r in records
            for sample, what in r.wrong
        ],
        "seconds": round(sum(record.seconds for record in records), 1),
    }


def _native(records: Sequence[Record]) -> dict[str, float]:
    calls: Counter[str] = Counter()
    for record in records:
        calls.update(record.counts)
    native = sum(record.verdict == Verdict.PASS for record in records)
    judged = calls["PASS"] + calls["EAGER"] + calls["WRONG"] + calls["CRASH"]
    return {
        "entries": round(native / max(len(records), 1), 4),
        "calls": round(calls["PASS"] / max(judged, 1), 4),
    }


def _reasons(records: Iterable[Record]) -> Counter[str]:
    """By how many entries name them."""
    return Counter(reason for record in records for reason in record.reasons)


def print_summary(summary: dict[str, Any], console: Console) -> None:
    table = Table(title="ops of PyTorch's op_db, by the worst of their samples")
    for column in ("kind", "dtype", *_VERDICTS, "native entries", "native calls"):
        table.add_column(str(column), justify="left" if column in ("kind", "dtype") else "right")
    for kind, by_dtype in summary["by_kind"].items():
        for dtype, counts in by_dtype.items():
            if counts:
                native = summary["native"][dtype] if kind == "call" else None
                shares = [f"{native[s]:.1%}" for s in ("entries", "calls")] if native else ["", ""]
                table.add_row(kind, dtype, *(str(counts.get(v, 0)) for v in _VERDICTS), *shares)
    console.print(table)
    for wrong in summary["wrong"]:
        console.print(
            f"{wrong['op']} {wrong['dtype']} {wrong['kind']}, sample {wrong['sample']}: "
            f"{wrong['what']}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def write_summary(summary: dict[str, Any], folder: Path) -> None:
    """summary.json and summary.md."""
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    (folder / "summary.md").write_text(_markdown(summary), encoding="utf-8")


def _markdown(summary: dict[str, Any]) -> str:
    lines = ["# Ops against PyTorch's own samples", ""]
    lines += [f"| kind | dtype | {' | '.join(_VERDICTS)} | native entries | native calls |"]
    lines += [f"|{' --- |' * (4 + len(_VERDICTS))}"]
    for kind, by_dtype in summary["by_kind"].items():
        for dtype, counts in by_dtype.items():
            if counts:
                cells = [str(counts.get(v, 0)) for v in _VERDICTS]
                native = summary["native"][dtype] if kind == "call" else None
                cells += [f"{native[s]:.1%}" for s in ("entries", "calls")] if native else ["", ""]
                lines.append(f"| {kind} | {dtype} | {' | '.join(cells)} |")
    lines += ["", "## Wrong", ""]
    for wrong in summary["wrong"]:
        what = f"{wrong['op']} {wrong['dtype']} {wrong['kind']}"
        lines.append(f"- **{what}** `{wrong['sample']}`: {wrong['what']}")
    lines += ["", "## Why PyTorch runs calls, by entries", ""]
    lines += [f"- {count}: {reason}" for reason, count in
              list(summary["reasons"].items())[:_MOST_REASONS]]  # fmt: skip
    return "\n".join(lines) + "\n"
