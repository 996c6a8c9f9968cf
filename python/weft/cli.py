# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `weft`, and `python -m weft`.

argparse, as a richer library would be one more package for everyone who installs Weft.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from weft import errors, get_num_threads


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 1 with one line on standard error that says what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (errors.Error, OSError) as error:
        print(f"weft: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("weft", description="Compiles PyTorch programs for CPUs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser("bench", help="measure an exported program in several systems")
    bench.add_argument("model", type=Path, metavar="MODEL.pt2", help="of torch.export.save")
    bench.add_argument(
        "--inputs",
        type=Path,
        metavar="FILE.pt",
        help="of torch.save: a tuple of positional or a dict of keyword arguments; by default "
        "those that the program was exported with",
    )
    bench.add_argument("--systems", nargs="+", default=["eager", "inductor", "weft"])
    bench.add_argument("--threads", type=int, default=get_num_threads())
    bench.add_argument("--rounds", type=int, default=15)
    bench.add_argument("--seconds", type=float, default=0.2, help="of each system in a round")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    bench.set_defaults(command=_bench)
    inspect = commands.add_parser("inspect", help="print what is inside a compiled artifact")
    inspect.add_argument("artifact", type=Path, metavar="ARTIFACT.so")
    inspect.set_defaults(command=_inspect)
    return parser


def _bench(options: argparse.Namespace) -> None:
    from rich.progress import Progress

    from weft.benchmark.exported import ExportedFile
    from weft.benchmark.results import RunResult, as_json, print_run
    from weft.benchmark.run import Settings, machine, measure
    from weft.benchmark.systems import SYSTEMS

    for system in options.systems:
        if system not in SYSTEMS:
            raise errors.ConfigError(f"expected systems among {list(SYSTEMS)}, found {system!r}")
    for name in ("threads", "rounds"):
        if getattr(options, name) < 1:
            found = getattr(options, name)
            raise errors.ConfigError(f"expected {name} of at least 1, found {found}")
    subject = ExportedFile(options.model, options.inputs)
    subject.load()  # what is wrong with the files is said here
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    console = _console()
    run = RunResult(machine(), options.threads, options.rounds)
    with tempfile.TemporaryDirectory() as logs:
        settings = Settings(
            options.systems, options.rounds, options.seconds, options.threads, Path(logs)
        )
        with Progress(console=console) as progress:
            run.models.append(measure(subject, settings, run, progress))
    print_run(run, console)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(run), indent=1) + "\n", "utf-8")


def _inspect(options: argparse.Namespace) -> None:
    from weft.inspection import print_artifact

    print_artifact(options.artifact, _console())


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=160)
