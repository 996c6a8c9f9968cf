# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.captures [PROGRAM...]`: any capture with any backend.

Programs by three captures (TorchDynamo, torch.jit.trace, Weft) and three backends (PyTorch's own
operations, Inductor, Weft): the time of a call as a multiple of eager's speed, in rounds that take
turns. Each call is checked with other values first: "wrong" is what differs from eager, "-" what
could not be made. The last rows are geometric means over what is right, and how much that is.
"""

from __future__ import annotations

import argparse
import math
import timeit
import warnings
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch._inductor.compile_fx import compile_fx

import weft

ROUNDS, LEAST_SECONDS = 15, 0.005


class Residual(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norm, self.scale = nn.LayerNorm(width), 0.5

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for number, layer in enumerate(self.layers):
            x = x + torch.relu(layer(self.norm(x))) * (self.scale + number)
        return {"x": x, "mean": x.mean(-1)}


class Gated(nn.Module):
    """Takes one of two ways, as its data says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.plain, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.plain(x)
        return y * torch.sigmoid(self.gate(x)) if x.sum() > 0 else y


def small(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


PROGRAMS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "x * 2 + 1": (lambda: small, (16,)),
    "residual": (lambda: Residual(64, 8), (8, 64)),
    "convolutions": (convolutions, (2, 3, 32, 32)),
    "gated": (lambda: Gated(64), (8, 64)),
}


class _Traced(nn.Module):
    def __init__(self, traced: Any) -> None:
        super().__init__()
        self.traced = traced

    def forward(self, x: torch.Tensor) -> Any:
        return self.traced(x)


def _trace(program: Any, x: torch.Tensor) -> Any:
    return torch.jit.trace(program, (x,), strict=False, check_trace=False)


def _trace_inductor(program: Any, x: torch.Tensor) -> Any:
    exported = torch.export.export(_Traced(_trace(program, x)), (x,), strict=False)
    return torch.compile(exported.module())


SYSTEMS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "TorchDynamo, eager": lambda program, x: torch.compile(program, backend="eager"),
    "TorchDynamo, Inductor": lambda program, x: torch.compile(program),
    "TorchDynamo, Weft": lambda program, x: torch.compile(program, backend="weft"),
    "torch.jit.trace, eager": _trace,
    "torch.jit.trace, Inductor": _trace_inductor,
    "torch.jit.trace, Weft": lambda program, x: weft.from_traced(
        _trace(program, x), [("x", (tuple(x.shape), x.dtype))]
    ),
    "Weft, eager": lambda program, x: weft.compile(program, backend="eager"),
    "Weft, Inductor": lambda program, x: weft.compile(program, backend=compile_fx),
    "Weft, Weft": lambda program, x: weft.compile(program),
}


def prepared(name: str, program: Any, x: torch.Tensor) -> Any:
    """A callable that has been called; "wrong" or "-" if there is none."""
    try:
        made = SYSTEMS[name](program, x)
        for sign in (1, 1, -1, -1):
            value = x * sign
            try:
                torch.testing.assert_close(made(value), program(value), rtol=1e-3, atol=1e-4)
            except AssertionError:
                return "wrong"
    except Exception:  # systems raise what they like
        return "-"
    return made


def measured(systems: dict[str, Any], x: torch.Tensor) -> dict[str, float]:
    """The least seconds of a call of each."""
    timers = {name: timeit.Timer(lambda f=f: f(x)) for name, f in systems.items()}
    counts = {}
    for name, timer in timers.items():
        once = max(min(timer.repeat(3, 1)), 1e-7)
        counts[name] = max(1, int(LEAST_SECONDS / once))
    best = dict.fromkeys(timers, math.inf)
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(counts[name]) / counts[name])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Any capture with any backend.")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), metavar="PROGRAM")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    chosen = options.programs
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    table = Table("capture, backend", *chosen, "mean", "right", title="speed as multiples of eager")
    ratios: dict[str, dict[str, Any]] = {name: {} for name in SYSTEMS}
    for program_name in chosen:
        make, shape = PROGRAMS[program_name]
        program, x = make(), torch.rand(shape)
        if isinstance(program, nn.Module):
            program.eval()
        with torch.no_grad():
            made = {name: prepared(name, program, x) for name in SYSTEMS}
            ready = {name: each for name, each in made.items() if not isinstance(each, str)}
            seconds = measured({"eager": program, **ready}, x)
        for name, each in made.items():
            told = isinstance(each, str)
            ratios[name][program_name] = each if told else seconds["eager"] / seconds[name]
    for name, row in ratios.items():
        right = [each for each in row.values() if not isinstance(each, str)]
        mean = math.exp(sum(map(math.log, right)) / len(right)) if right else math.nan
        cells = (each if isinstance(each, str) else f"{each:.2f}" for each in row.values())
        table.add_row(name, *cells, f"{mean:.2f}", f"{len(right)} of {len(row)}")
    Console().print(table)


if __name__ == "__main__":
    main()
