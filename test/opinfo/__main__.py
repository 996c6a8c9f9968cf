# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`make opinfo OPINFO_ARGS="--op softmax --dtype f32"`: see --help."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from opinfo.records import Record, Records, record_of
from opinfo.report import print_summary, summary_of, write_summary
from opinfo.samples import DTYPES, KINDS, Choice, Entry, entries
from opinfo.workers import judge_all

_PLAIN_KINDS = [kind for kind in KINDS if kind != "varied"]


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    console = Console()
    chosen = _chosen(options)
    choice = Choice(options.seed, options.variations_share, options.most)
    records = Records(options.output / "records.jsonl")
    if options.fresh:
        records.clear()
    known = records.read(choice)
    found = [known[entry] for entry in chosen if entry in known]
    rest = [entry for entry in chosen if entry not in known]
    if found:
        console.print(f"{len(found)} of {len(chosen)} entries were judged before")
    found += _judge(rest, options, choice, records, console)
    summary = summary_of(found)
    write_summary(summary, options.output)
    print_summary(summary, console)
    console.print(f"written to {options.output}")
    return 1 if summary["wrong"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="opinfo", description="Judges ops by PyTorch's OpInfo.")
    parser.add_argument("--op", nargs="+", help="names as in op_db, with their variants")
    parser.add_argument("--dtype", nargs="+", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--kind", nargs="+", default=_PLAIN_KINDS, choices=list(KINDS))
    parser.add_argument("--variations", action="store_true", help="judge varied samples, too")
    parser.add_argument(
        "--variations-share", type=float, default=0.1, help="of the varied samples, chosen by seed"
    )
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of the entries")
    parser.add_argument("--share", type=float, default=1.0, help="of the entries, chosen by seed")
    parser.add_argument("--most", type=int, help="samples of an entry, spread evenly over them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a single step")
    parser.add_argument("--output", type=Path, default=Path("build/opinfo"))
    parser.add_argument("--fresh", action="store_true", help="forget what was judged before")
    return parser


def _chosen(options: argparse.Namespace) -> list[Entry]:
    kinds = [*options.kind, *(["varied"] if options.variations else [])]
    found = entries(options.dtype, list(dict.fromkeys(kinds)))
    if options.op:
        found = [entry for entry in found if entry.op in options.op]
    part, parts = map(int, options.part.split("/"))
    return shared(found, options.share, options.seed)[part - 1 :: parts]


def shared(found: list[Entry], share: float, seed: int) -> list[Entry]:
    """A part of the entries, the same for every run with this seed."""
    if share >= 1:
        return found
    return [each for each in found if random.Random(f"{seed} {each}").random() < share]


def _judge(
    rest: list[Entry],
    options: argparse.Namespace,
    choice: Choice,
    records: Records,
    console: Console,
) -> list[Record]:
    found = []
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[wrong]} wrong"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("judging", total=len(rest), wrong=0)
        for task in judge_all(rest, choice, options.jobs, options.timeout):
            seconds = time.monotonic() - task.begun
            record = record_of(task.entry, task.judged, seconds, choice)
            records.add(record)
            found.append(record)
            wrong = sum(bool(each.wrong) for each in found)
            progress.update(bar, advance=1, description=f"{task.entry}", wrong=wrong)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
