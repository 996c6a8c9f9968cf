# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.shapes [GROUP...]`: kernels one by one, as shares of the machine's limit.

`matmuls` and `odd`: contractions of a linear layer, warm weights, of the peak of multiply-adds;
`columns`: the same of a weight that lies as (in, out), `x @ w`;
`gemv`: one row by large weights, of the bandwidth that a loop reads memory with, which weights
that lie in a cache surpass;
`convolutions`: those of ResNet-50, where they stand in the network. Peaks are measured again
beside each row; times are the least of many calls.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Column, Table
from torch import nn

import weft
from benchmarks.models import resnet50
from weft import _core
from weft.artifacts.kernels import KernelCall

_SQUARES = ((768, 768), (3072, 768), (768, 3072), (256, 256), (384, 1536), (1024, 1024))
_MATMULS = [(m, n, k) for n, k in _SQUARES for m in (16, 32, 64, 128, 512, 1024)]
_COLUMNS = [(m, n, k) for n, k in _SQUARES for m in (16, 32, 64, 128, 512)]
_ODD = [
    *itertools.product((1, 2, 3, 5, 7, 12, 17, 23, 31, 33, 47, 65, 77, 100, 130), (768,), (768,)),
    *itertools.product((17, 50, 97, 130), (257, 1000, 1027), (300, 511, 769)),
]
_GEMV = [(1, n, k) for n, k in ((4096, 4096), (11008, 4096), (4096, 11008), (32000, 2048))]


@dataclass(frozen=True)
class Row:
    """share: of the limit, at the least of the kernel's times."""

    name: str
    schedule: str
    seconds: float
    share: float


def linear(shape: tuple[int, int, int], options: argparse.Namespace) -> Row:
    """M rows by an N x K weight with a bias; the kernels beside the contraction do not count."""
    kernels, peak = _profile(*_linear(shape), _core.measure_peak_flops, options)
    return _row(_name(shape), _heaviest(kernels), peak)


def columns(shape: tuple[int, int, int], options: argparse.Namespace) -> Row:
    """M rows by a K x N weight, with all that moves them."""
    m, n, k = shape
    module = Product(torch.randn(k, n)).eval()
    kernels, peak = _profile(module, (torch.randn(m, k),), _core.measure_peak_flops, options)
    return _row(_name(shape), _heaviest(kernels), peak, sum(each.least for each in kernels))


class Product(nn.Module):
    """x (M, K) by w (K, N)."""

    def __init__(self, w: torch.Tensor) -> None:
        super().__init__()
        self.w = nn.Parameter(w)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w


def gemv(shape: tuple[int, int, int], options: argparse.Namespace) -> Row:
    """One row by an N x K weight, in bytes of the weight: the middle one of five rounds, as the
    bandwidth follows the memory's other users."""
    _, n, k = shape
    rounds = []
    for _ in range(5):
        kernels, peak = _profile(*_linear(shape), _core.measure_peak_bandwidth, options)
        kernel = _heaviest(kernels)
        rounds.append(Row(_name(shape), kernel.kind, kernel.least, 4 * n * k / kernel.least / peak))
    return sorted(rounds, key=lambda row: row.share)[len(rounds) // 2]


def convolutions(options: argparse.Namespace) -> Iterator[Row]:
    """Those of ResNet-50, a row for each kernel however often it is called."""
    case = resnet50()
    kernels, peak = _profile(case.module, case.args, _core.measure_peak_flops, options)
    heavy = sorted((each for each in kernels if each.flops > 10**7), key=lambda each: each.kernel)
    for name, calls in itertools.groupby(heavy, key=lambda each: each.kernel):
        same = list(calls)
        fastest = min(same, key=lambda each: each.least)
        yield _row(f"{name}, {len(same)} of it", fastest, peak)


@torch.inference_mode()
def _profile(
    module: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    measure_peak: Callable[[int], float],
    options: argparse.Namespace,
) -> tuple[tuple[KernelCall, ...], float]:
    """A program's kernels, and the machine's peak beside them."""
    compiled = weft.compile(module, threads=options.threads)
    compiled(*inputs)
    once = compiled.profile(*inputs, repeats=3).least
    before = measure_peak(options.threads)
    repeats = max(20, min(2000, int(options.seconds / once)))
    kernels = compiled.profile(*inputs, repeats=repeats).kernels
    return kernels, max(before, measure_peak(options.threads))


def _linear(shape: tuple[int, int, int]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    m, n, k = shape
    return nn.Linear(k, n).eval(), (torch.randn(m, k),)


def _name(shape: tuple[int, int, int]) -> str:
    return " x ".join(map(str, shape))


def _heaviest(kernels: tuple[KernelCall, ...]) -> KernelCall:
    return max(kernels, key=lambda each: each.flops)


def _row(name: str, kernel: KernelCall, peak: float, seconds: float | None = None) -> Row:
    """seconds: of what counts, where that is not the kernel alone."""
    schedule = " ".join(f"{key}={value}" for key, value in kernel.schedule.items() if value)
    taken = kernel.least if seconds is None else seconds
    return Row(name, f"{kernel.kind} {schedule}", taken, kernel.flops / taken / peak)


def measure(group: str, options: argparse.Namespace) -> Iterator[Row]:
    if group == "convolutions":
        yield from convolutions(options)
    elif group == "gemv":
        yield from (gemv(shape, options) for shape in _GEMV)
    elif group == "columns":
        yield from (columns(shape, options) for shape in _COLUMNS)
    else:
        shapes = _MATMULS if group == "matmuls" else _ODD
        yield from (linear(shape, options) for shape in shapes)


def table_of(group: str, rows: list[Row]) -> Table:
    """A line per row, then the geometric mean and the least of the shares."""
    table = Table(group, Column("µs", justify="right"), "share of the limit", "kernel")
    for row in rows:
        table.add_row(row.name, f"{row.seconds * 1e6:.1f}", f"{row.share:.0%}", row.schedule)
    shares = [row.share for row in rows]
    table.caption = (
        f"geometric mean {statistics.geometric_mean(shares):.0%}, least {min(shares):.0%}"
    )
    return table


def main() -> int:
    groups = ("matmuls", "odd", "columns", "gemv", "convolutions")
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument(
        "groups", nargs="*", default=groups, metavar="GROUP", help=", ".join(groups)
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each shape")
    options = parser.parse_args()
    weft.set_num_threads(options.threads)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    for group in options.groups:
        console.print(table_of(group, list(measure(group, options))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
