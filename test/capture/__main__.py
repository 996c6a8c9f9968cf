# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`make capture-fuzz CAPTURE_ARGS="--minutes 60"`: see --help."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from capture.corpus import Name, names
from capture.records import Records, names_of, print_reasons, print_summary, record_of
from capture.subjects import SUBJECTS
from capture.workers import Plan, judge_all


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")
    console = Console()
    records = Records(options.output / "records.jsonl")
    if options.fresh:
        records.clear()
    programs = [each for each in names() if _is_wanted(each, options.program)]
    if not programs:
        console.print(f"no program of the corpus is named {' or '.join(options.program)}")
        return 2
    end, found = time.monotonic() + 60 * options.minutes, []
    for seed in itertools.count(options.seed):
        most = None if options.most == 0 or options.only else options.most
        plan = Plan(options.subject, seed, most, options.captures, options.only, options.timeout)
        found += _run(programs, plan, options.jobs, records, console)
        if time.monotonic() >= end:
            break
    print_summary(found, console)
    if options.reasons:
        print_reasons(found, console)
    return 1 if any(record["wrong"] for record in found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="capture", description="Fuzzes the corpus of programs.")
    parser.add_argument("--program", nargs="+", default=[], help="groups, or groups with names")
    parser.add_argument("--subject", default="weft", choices=list(SUBJECTS))
    parser.add_argument("--seed", type=int, default=0, help="the first; a run goes on with others")
    parser.add_argument("--most", type=int, default=60, help="changes of a program; 0 for all")
    parser.add_argument(
        "--captures", type=float, default=0.1, help="share after which programs are captured anew"
    )
    parser.add_argument("--only", help="one change, as a report names it")
    parser.add_argument("--minutes", type=float, default=0, help="new seeds are begun so long")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a change")
    parser.add_argument("--output", type=Path, default=Path("build/capture"))
    parser.add_argument("--fresh", action="store_true", help="forget what was judged before")
    parser.add_argument("--reasons", action="store_true", help="say why programs are not whole")
    return parser


def _is_wanted(program: Name, wanted: list[str]) -> bool:
    return not wanted or program.group in wanted or str(program) in wanted


def _run(
    programs: list[Name], plan: Plan, jobs: int, records: Records, console: Console
) -> list[dict]:
    known = [] if plan.only else list(records.of(plan).values())
    found = [each for each in known if names_of([each]) <= set(programs)]
    rest = [each for each in programs if each not in names_of(found)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TextColumn("{task.fields[wrong]} wrong"))  # fmt: skip
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"seed {plan.seed}", total=len(programs), wrong=0)
        progress.update(bar, advance=len(found))
        for judged in judge_all(rest, plan, jobs):
            record = record_of(judged, plan)
            records.add(record)
            found.append(record)
            for wrong in judged.wrong:
                console.print(f"WRONG {wrong}", markup=False, highlight=False)
            wrong = sum(len(each["wrong"]) for each in found)
            progress.update(bar, advance=1, wrong=wrong)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
