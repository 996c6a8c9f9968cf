# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.schedules [MxNxK...]`: contractions' schedules as chosen, and the best.

Every schedule of the space (rows, groups, chunk, panels) that the compiler takes is compiled and
timed once; the fastest few and the chosen one are then timed against each other in interleaved
rounds. Times are the least of many calls, with what surrounds a kernel. Minutes for each shape.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from weft import _core, errors, frontend, set_num_threads
from weft.artifacts.builds import Options, build
from weft.frontend.dtypes import DTYPES

_NAMES = ("rows", "groups", "chunk", "panels")
_FINALISTS = 4
SHAPES = [
    *itertools.product((1, 5, 16, 64, 128, 1024), (256, 768, 3072), (768,)),
    *itertools.product((7, 128, 500), (768,), (256, 3072)),
    *itertools.product((64, 384), (257, 1000), (256, 511, 1027)),
    (197, 2304, 768), (49, 1000, 2048), (1024, 256, 1536), (33, 3072, 3072),
]  # fmt: skip


@dataclass
class Found:
    """chosen, best: schedules as the option is written. seconds: of a call with each."""

    chosen: str
    chosen_seconds: float
    best: str
    best_seconds: float
    tried: int

    @property
    def ratio(self) -> float:
        """The time of the chosen schedule over the best one's."""
        return self.chosen_seconds / self.best_seconds


class Linear:
    """x @ w.T + b in float32, to be compiled with many schedules."""

    def __init__(self, m: int, n: int, k: int) -> None:
        self.tensors = {"input": torch.randn(m, k)}
        module = torch.nn.Linear(k, n).eval()
        self.tensors |= {name: each.detach() for name, each in module.named_parameters()}
        exported = torch.export.export(module, (self.tensors["input"],))
        self.graph = frontend.lower(exported).graph

    def compile(self, schedule: str, threads: int) -> Program:
        """Raises: errors.CompileError, for one among others that does not fit."""
        return Program(build(self.graph, Options(threads=threads, schedule=schedule)), self.tensors)


class Program:
    """One schedule, ready to be called. schedule: the numbers it has, {} for another emitter."""

    def __init__(self, built: Any, tensors: dict[str, torch.Tensor]) -> None:
        main = json.loads(built.artifact.manifest)["entries"]["main"]
        kernels = [call["schedule"] for call in main["calls"] if call.get("kind") == "contraction"]
        numbers = kernels[0] if kernels else {}
        self.schedule = {name: numbers[name] for name in _NAMES if name in numbers}
        self._program = _core.Program(built.artifact)
        self._arguments = [tensors[spec["name"]] for spec in main["arguments"]]
        self._results = [
            torch.empty_strided(spec["shape"], spec["strides"], dtype=DTYPES[spec["dtype"]])
            for spec in main["results"]
        ]

    def least(self, seconds: float) -> float:
        """The least seconds of the calls that fill `seconds`, at least three."""
        times: list[float] = []
        while len(times) < 3 or sum(times) < seconds:
            start = time.perf_counter()
            self._program.run(self._arguments, self._results, None)
            times.append(time.perf_counter() - start)
        return min(times)


def candidates(depth: int) -> Iterator[str]:
    """The whole space for a reduction of `depth`; not all of it fits every shape."""
    chunks = sorted({depth // parts for parts in range(1, 5) if depth % parts == 0})
    rows, groups, panels = range(1, 31), range(1, 7), (1, 2, 4, 8)
    for numbers in itertools.product(rows, groups, chunks, panels):
        if numbers[0] * numbers[1] + numbers[1] < 32:  # vector registers at most
            yield text_of(dict(zip(_NAMES, numbers)))


def text_of(schedule: dict[str, int]) -> str:
    return ",".join(f"{name}={value}" for name, value in schedule.items())


def search(linear: Linear, depth: int, options: argparse.Namespace) -> Found | None:
    """None where the kernel has no schedule of this kind, as for one row."""
    chosen = linear.compile("", options.threads)
    if set(chosen.schedule) != set(_NAMES):
        return None
    own = text_of(chosen.schedule)
    programs = {own: chosen}
    times = {own: chosen.least(options.seconds)}
    for schedule in candidates(depth):
        if schedule == own:
            continue
        # The bounds are the compiler's; what lies outside them is no candidate.
        with contextlib.suppress(errors.CompileError):
            program = linear.compile(schedule, options.threads)
            times[schedule] = program.least(options.seconds)
            programs[schedule] = program
        keep = sorted(times, key=times.__getitem__)[:_FINALISTS]
        programs = {name: p for name, p in programs.items() if name in (own, *keep)}
    finals: dict[str, float] = dict.fromkeys(programs, float("inf"))
    for _ in range(options.rounds):
        for name, program in programs.items():
            finals[name] = min(finals[name], program.least(options.seconds))
    best = min(finals, key=finals.__getitem__)
    return Found(own, finals[own], best, finals[best], len(times))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument("shapes", nargs="*", type=_shape, default=SHAPES, metavar="MxNxK")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.005, help="of a schedule in a round")
    return parser.parse_args(arguments)


def _shape(text: str) -> tuple[int, int, int]:
    m, n, k = map(int, text.split("x"))
    return m, n, k


def table_of(found: dict[tuple[int, int, int], Found | None]) -> Table:
    """A row per shape, then the geometric mean and the worst of the ratios."""
    table = Table("M", "N", "K", "chosen", "µs", "best", "µs", "chosen ÷ best", "tried")
    for shape, each in found.items():
        if each is None:
            table.add_row(*map(str, shape), "another emitter")
            continue
        table.add_row(
            *map(str, shape), each.chosen, f"{each.chosen_seconds * 1e6:.1f}", each.best,
            f"{each.best_seconds * 1e6:.1f}", f"{each.ratio:.3f}", str(each.tried),
        )  # fmt: skip
    ratios = {shape: each.ratio for shape, each in found.items() if each is not None}
    if ratios:
        worst = max(ratios, key=ratios.__getitem__)
        table.caption = (
            f"geometric mean {statistics.geometric_mean(ratios.values()):.3f}, "
            f"worst {ratios[worst]:.3f} at {'x'.join(map(str, worst))}"
        )
    return table


def main() -> int:
    options = parse()
    set_num_threads(options.threads)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    found: dict[tuple[int, int, int], Found | None] = {}
    # Compiling what does not fit leaves reproducers, and none of it is worth keeping.
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        os.environ["TMPDIR"] = os.environ["WEFT_CACHE_DIR"] = folder
        for shape in options.shapes:
            found[shape] = search(Linear(*shape), shape[2], options)
            console.print(f"{shape}: {found[shape]}")
    console.print(table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
