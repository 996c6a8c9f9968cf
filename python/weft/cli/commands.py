# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the commands of `weft` do; main.py reads the command line."""

from __future__ import annotations

import argparse
import copy
import functools
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from rich.console import Console

from weft import compile, errors, from_exported_program, ir, report, schedules, stats, visualize
from weft.benchmark.case import Case
from weft.cli.sources import Source, said
from weft.compiled.api import options_of
from weft.reporting.tables import table_of

# One that sets what later ones find, and one that is compared with PyTorch's.
_MOST_CALLS = 3


@dataclass
class _Ran:
    """program: as weft.compile returns it. result: of a call that a program has answered, if one
    has. seconds: until then."""

    program: Any
    case: Case
    result: Any
    seconds: float

    @property
    def why_not(self) -> str | None:
        """Why PyTorch ran the calls, if it did."""
        found = stats(self.program)
        return None if found["graphs"] else "; ".join(found["breaks"])


def _ran(options: argparse.Namespace) -> _Ran:
    source = Source(options.model, options.inputs, tuple(options.shape))
    with _progress(f"loading {source.name}"):
        case = source.load()
    start = time.perf_counter()
    settings = dict(
        target=options.target,
        threads=options.threads,
        precision=options.precision,
        level=options.level,
    )
    if case.program is not None:
        program = from_exported_program(case.program, **settings)
    else:
        program = compile(case.module, **settings)
    with (
        _progress(f"compiling {source.name}"),
        torch.no_grad(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", errors.WeftWarning)  # each command says it in its way
        for _ in range(_MOST_CALLS):
            result = _called(program, case)
            counted = stats(program)
            if counted["hits"] or counted["breaks"]:
                break
    return _Ran(program, case, result, time.perf_counter() - start)


def _called(program: Callable[..., Any], case: Case) -> Any:
    """With arguments of its own, which it may write to.

    Raises: errors.Error, saying how the user's program fails.
    """
    args, kwargs = copy.deepcopy((case.args, case.kwargs))
    try:
        return program(*args, **kwargs)
    except errors.Error:
        raise
    except Exception as error:
        raise errors.Error(f"the call fails: {said(error)}") from error


def _compile(options: argparse.Namespace) -> None:
    ran = _ran(options)
    if ran.why_not is not None:
        raise errors.NotCompiledError(f"{ran.case.title} is not compiled: {ran.why_not}")
    path = ran.program.artifact_path
    if options.output is not None:
        path = Path(shutil.copyfile(path, options.output))
    print(f"compiled {ran.case.title} in {ran.seconds:.1f} s: {path}")
    fallbacks = sorted({each["target"] for each in _manifest(path)["fallbacks"]})
    if fallbacks:
        print(f"PyTorch runs within it: {', '.join(fallbacks)}")


def _manifest(path: Path) -> dict[str, Any]:
    from weft import _core

    return json.loads(_core.Artifact.load(path).manifest)


def _run(options: argparse.Namespace) -> None:
    ran = _ran(options)
    if ran.why_not is not None:
        print(f"weft: PyTorch runs this call: {ran.why_not}", file=sys.stderr)
    table = table_of(
        "output", "dtype", "shape", ">least", ">mean", ">largest", title=ran.case.title
    )
    for path, leaf in pytree.tree_flatten_with_path(ran.result)[0]:
        table.add_row(pytree.keystr(path) or "0", *_described(leaf))
    _console().print(table)
    if options.output is not None:
        torch.save(ran.result, options.output)
    if options.compare:
        _compare(ran)


def _described(leaf: Any) -> tuple[str, ...]:
    if not isinstance(leaf, torch.Tensor):
        return (type(leaf).__name__, "", repr(leaf), "", "")
    kind = str(leaf.dtype).removeprefix("torch.")
    if leaf.numel() == 0 or leaf.is_complex():
        return (kind, str([*leaf.shape]), "", "", "")
    wide = leaf.to(torch.float64)
    numbers = (f"{each.item():.6g}" for each in (wide.min(), wide.mean(), wide.max()))
    return (kind, str([*leaf.shape]), *numbers)


def _compare(ran: _Ran) -> None:
    with torch.no_grad():
        expected = _called(ran.case.module, ran.case)
    pairs = zip(pytree.tree_leaves(ran.result), pytree.tree_leaves(expected), strict=True)
    largest = 0.0
    for found, wanted in pairs:
        if isinstance(wanted, torch.Tensor) and wanted.numel():
            difference = (found.to(torch.complex128) - wanted.to(torch.complex128)).abs()
            difference = difference[~((found != found) & (wanted != wanted))]
            largest = max(largest, float(difference.max()) if difference.numel() else 0.0)
    print(f"largest difference from PyTorch: {largest:.3g}")


def _show(options: argparse.Namespace) -> None:
    ran = _ran(options)
    if ran.why_not is not None:
        raise errors.NotCompiledError(f"{ran.case.title} is not compiled: {ran.why_not}")
    sys.stdout.write(ir(ran.program, options.stage))


def _visualize(options: argparse.Namespace) -> None:
    ran = _ran(options)
    if ran.why_not is not None:
        raise errors.NotCompiledError(f"{ran.case.title} is not compiled: {ran.why_not}")
    with _progress("drawing"):
        fold = False if options.no_fold else None
        visualize(ran.program, options.output, options.stage, fold=fold)
    print(f"drew {ran.case.title} at {options.stage}: {options.output}")


def _bisect(options: argparse.Namespace) -> int:
    source = Source(options.model, options.inputs, tuple(options.shape))
    with _progress(f"loading {source.name}"):
        case = source.load()
    settings = options_of(None, options.target, options.threads, "", options.precision)
    with _progress("comparing what each pass leaves"):
        found = ir.bisect(
            functools.partial(case.module, **case.kwargs) if case.kwargs else case.module,
            *case.args,
            tolerance=options.tolerance,
            slowdown=options.slowdown,
            isa=settings.isa,
            threads=settings.threads,
            precision=settings.precision,
            level=options.level,
        )
    print("no pass differs" if found is None else found)
    return 0 if found is None else 1


def _explain(options: argparse.Namespace) -> None:
    ran = _ran(options)
    report(ran.program, sys.stdout)
    if ran.why_not is None:
        for each in schedules(ran.program):
            print(each)


def _tune(options: argparse.Namespace) -> None:
    from weft.cli.tuning import tune

    for name in ("trials", "patience", "rounds"):
        if getattr(options, name) < 1:
            raise errors.ConfigError(
                f"expected {name} of at least 1, found {getattr(options, name)}"
            )
    ran = _ran(options)
    if ran.why_not is not None:
        raise errors.NotCompiledError(f"{ran.case.title} is not compiled: {ran.why_not}")
    tune(options, ran.program, ran.case, _console())


def _bench(options: argparse.Namespace) -> None:
    from rich.progress import Progress

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
    subject = Source(options.model, options.inputs, tuple(options.shape))
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
    from weft.reporting.inspection import print_artifact

    print_artifact(options.artifact, _console())


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=160)


def _progress(text: str) -> Any:
    """On a terminal, that something goes on; results alone go to standard output."""
    return Console(stderr=True).status(f"{text} …")


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "bench": _bench,
    "bisect": _bisect,
    "compile": _compile,
    "explain": _explain,
    "inspect": _inspect,
    "run": _run,
    "show": _show,
    "tune": _tune,
    "visualize": _visualize,
}
