# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.run [MODEL...]`: measures models in several systems at once.

Prints tables, the settings and what could not be measured; writes the same as JSON and,
beside that, as text.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.systems import SYSTEMS
from weft.benchmark.case import Case
from weft.benchmark.results import RunResult, as_json, print_run
from weft.benchmark.run import Settings, machine, measure
from weft.benchmark.systems import REFERENCE, Prepared, float64

_RESULTS = Path(__file__).parent / "results" / "local"


@dataclass(frozen=True)
class Model:
    """A `Subject`: a model of benchmarks/models.py."""

    name: str

    def load(self) -> Case:
        from examples.models import build

        from benchmarks.models import MODELS

        return build(self.name, MODELS)

    def system(self, name: str) -> Callable[[Case, int], Prepared]:
        return {**SYSTEMS, REFERENCE: float64}[name]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("models", nargs="*", help="names from benchmarks/models.py; by default all")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=tuple(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each system in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="the JSON file")
    parser.add_argument("--report", type=Path, help="a folder for Weft's report on each model")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    names = options.models or _all_models()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    _RESULTS.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        options.systems, options.rounds, options.seconds, options.threads, _RESULTS, options.report
    )
    run = RunResult(machine(), options.threads, options.rounds)
    path = options.output or _RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.json"
    with Progress(console=console) as progress:
        for name in names:
            run.models.append(measure(Model(name), settings, run, progress))
            # What a long run has measured outlives its being stopped.
            _write(run, path)
    print_run(run, console)
    console.print(
        f"written: {path} and .txt; what the systems printed: {_RESULTS}/*.log", markup=False
    )
    return 0


def _write(run: RunResult, path: Path) -> None:
    path.write_text(json.dumps(as_json(run), indent=1) + "\n", "utf-8")
    with path.with_suffix(".txt").open("w", encoding="utf-8") as file:
        print_run(run, Console(file=file, width=160))


def _all_models() -> list[str]:
    from benchmarks.models import MODELS

    return list(MODELS)


if __name__ == "__main__":
    sys.exit(main())
