# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft tune MODEL`: measures schedules of a model's kernels, and prints what it has found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from weft.reporting.tables import table_of
from weft.tune.model_tasks import tasks_of_model
from weft.tune.records import Record, Records
from weft.tune.task import Task
from weft.tune.tuning import compiler, run, target


def tune(options: argparse.Namespace, program: Any, case: Any, console: Console) -> None:
    """program: compiled, for the case's arguments.

    Raises: errors.Error.
    """
    tasks = tasks_of_model(program, case.args, case.kwargs)
    measured = run(
        *tasks,
        records=options.records,
        trials=options.trials,
        patience=options.patience,
        timeout=options.timeout,
        rounds=options.rounds,
        progress="bars" if console.is_terminal else None,
        runner=options.runner,
    )
    print_found(tasks, options.records, console)
    console.print(f"{len(measured)} measurements more in {options.records}", soft_wrap=True)
    console.print(
        f"weft.compile(model, records={str(options.records)!r}) uses them", soft_wrap=True
    )


def print_found(tasks: list[Task], records: Path, console: Console) -> None:
    """A row for each kernel with schedules to choose among."""
    table = table_of(
        "kernel", ">% of time", ">measured", ">default µs", ">best µs", "schedule", title="tuned"
    )
    with Records(records) as opened:
        for task in tasks:
            known = opened.of(task.kernel, target(), compiler())
            fastest = opened.fastest(task.kernel, target(), compiler())
            if task.candidates() and fastest is not None:
                table.add_row(*_row(task, known, fastest))
    console.print(table)


def _row(task: Task, known: list[Record], fastest: Record) -> tuple[str, ...]:
    usual = next((each.seconds for each in known if each.steps == task.default().text), None)
    return (
        task.name,
        f"{task.share:.0%}",
        str(len(known)),
        *(f"{each * 1e6:.1f}" if each is not None else "" for each in (usual, fastest.seconds)),
        fastest.steps or "the default",
    )
