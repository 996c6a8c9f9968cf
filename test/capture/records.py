# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What has been judged, a line a program and plan, so that a run goes on where another ended."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from capture.corpus import Name
from capture.fuzzer import Judged
from capture.workers import Plan


def record_of(judged: Judged, plan: Plan) -> dict[str, Any]:
    return {
        "program": str(judged.program),
        "plan": asdict(plan),
        "whole": judged.whole,
        "reason": judged.reason,
        "tried": judged.tried,
        "captured": judged.captured,
        "answered": judged.answered,
        "wrong": [{"mutation": str(each.mutation), "text": str(each)} for each in judged.wrong],
        "unclear": judged.unclear,
    }


class Records:
    def __init__(self, path: Path) -> None:
        self._path = path

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def add(self, record: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def of(self, plan: Plan) -> dict[str, dict[str, Any]]:
        """Of programs that were judged by this plan, the last for each."""
        if not self._path.exists():
            return {}
        found = map(json.loads, self._path.read_text().splitlines())
        return {each["program"]: each for each in found if each["plan"] == asdict(plan)}


def reproducer(program: str, mutation: str) -> str:
    """The command that judges one change alone."""
    only = "" if mutation == "None" else f' --only "{mutation}"'
    return f"python -m capture --program {program}{only} --captures 1"


def print_summary(records: list[dict[str, Any]], console: Console) -> None:
    """By group: how many programs run whole, what was tried, what was wrong."""
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["program"].partition(".")[0]].append(record)
    groups["all"] = records
    table = Table("group", "programs", "whole", "mutations", "captured", "answered", "wrong")
    for group, each in groups.items():
        sums = [sum(record[key] for record in each) for key in ("tried", "captured", "answered")]
        whole = sum(record["whole"] for record in each)
        share = f"{whole} ({100 * whole / max(len(each), 1):.0f} %)"
        wrong = sum(len(record["wrong"]) for record in each)
        table.add_row(group, str(len(each)), share, *map(str, sums), str(wrong))
    console.print(table)
    for record in records:
        for wrong in record["wrong"]:
            console.print(f"WRONG {wrong['text']}", markup=False)
            console.print(f"      {reproducer(record['program'], wrong['mutation'])}", markup=False)


def print_reasons(records: list[dict[str, Any]], console: Console) -> None:
    """Why programs do not run whole."""
    for record in records:
        if not record["whole"]:
            console.print(f"{record['program']}: {record['reason']}", markup=False, highlight=False)


def names_of(records: list[dict[str, Any]]) -> set[Name]:
    return {Name(*record["program"].split(".", 1)) for record in records}
