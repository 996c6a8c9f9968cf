# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`PYTHONPATH=test python -m onnx_nodes`: a table of ONNX's node tests; see --help."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from onnx_nodes.cases import DATA, Case, cases

_SUITES = ("node", "pytorch-converted", "pytorch-operator", "simple")


def main(arguments: list[str]) -> int:
    """0, or 1 if a value is wrong, or 2 if there is nothing to judge."""
    options = _parser().parse_args(arguments)
    chosen = [
        case
        for case in cases(options.suite, options.data)
        if not options.only or any(part in case.name for part in options.only)
    ][:: options.every]
    if not chosen:
        print(f"onnx_nodes: no tests in {options.data}: install libonnx-testdata", file=sys.stderr)
        return 2
    return _judge(chosen, options)


def _judge(chosen: list[Case], options: argparse.Namespace) -> int:
    os.environ["WEFT_VERIFY_PROGRAMS"] = "off"  # it is the programs that are judged
    console = Console()
    with tempfile.TemporaryDirectory(prefix="weft-onnx-") as cache:
        os.environ["WEFT_CACHE_DIR"] = cache
        from onnx_nodes.judge import Verdict, judge

        found = []
        with Progress(console=console, disable=not sys.stdout.isatty()) as progress:
            task = progress.add_task("judging", total=len(chosen))
            for case in chosen:
                progress.update(task, description=case.name)
                found.append(judge(case))
                progress.advance(task)
    counts = Counter((each.case.partition("/")[0], each.verdict) for each in found)
    table = Table(title="ONNX's tests")
    for column in ("suite", *Verdict, "native"):
        table.add_column(str(column), justify="left" if column == "suite" else "right")
    for suite in options.suite:
        of_suite = [counts[suite, verdict] for verdict in Verdict]
        if total := sum(of_suite):
            share = f"{of_suite[0] / total:.1%}"
            table.add_row(suite, *map(str, of_suite), share)
    console.print(table)
    wanted = list(Verdict) if options.verbose else [Verdict.WRONG]
    for each in found:
        if each.verdict in wanted:
            text = f"{each.case}: {each.verdict}: {each.why}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return 1 if any(each.verdict == Verdict.WRONG for each in found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("onnx_nodes", description=__doc__)
    parser.add_argument("--suite", nargs="+", default=["node"], choices=_SUITES)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there, too")
    parser.add_argument("--verbose", action="store_true", help="name every test")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
