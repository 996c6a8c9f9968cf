# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""te kernels beside PyTorch and NumPy, and the ladder of schedules of a matrix product.

    python -m benchmarks.tensor_expressions [--threads N] [--size N] [--rounds N] [--chart FILE.svg]

Everything is timed in turns; a row has the best time, and how many times as long the others took.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks import ladder_chart
from weft import _core, te


def best_of(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds, the least of the rounds, in each of which all have one turn."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def product(size: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    x, y = te.placeholder((size, size), name="X"), te.placeholder((size, size), name="Y")
    r = te.reduce_axis((0, size), "r")
    return x, y, te.compute((size, size), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")


def ladder(size: int) -> dict[str, te.Function]:
    """Schedules of a product, each with one step more."""
    x, y, z = product(size)
    s = te.create_schedule(z)
    rungs = {}

    def rung(name: str) -> None:
        rungs[name] = te.build(s, [x, y, z], "fmm", default=False)

    rung("three loops")
    i, j = z.op.axis
    (r,) = s[z].op.reduce_axis
    s[z].reorder(i, r, j)
    rung("order")
    s[z].reorder(i, j, r)
    io, jo, ii, ji = s[z].tile(i, j, 4, 64)
    s[z].reorder(jo, io, r, ii, ji)
    rung("blocks")
    s[z].vectorize(ji)
    rung("vectors")
    s[z].unroll(ii)
    rung("register tiles")
    packed = s.cache_read(y, "packed", z)
    s[packed].compute_at(s[z], jo)
    _, inner = s[packed].split(s[packed].op.axis[1], factor=64)
    s[packed].vectorize(inner)
    rung("packing")
    s[z].prefetch(x, r, 16)
    rung("prefetches")
    s[z].parallel(jo)
    rung("threads")
    s = te.create_schedule(z)
    io, jo, ii, ji = s[z].tile(i, j, 6, 64)
    s[z].reorder(jo, io, r, ii, ji)
    s[z].tensorize(r, "fma")
    packed = s.cache_read(y, "packed", z)
    s[packed].compute_at(s[z], jo)
    s[packed].vectorize(s[packed].op.axis[1])
    s[z].parallel(jo)
    rung("tensorize")
    rungs["default"] = te.build(te.create_schedule(z), [x, y, z], "fmm")
    return rungs


def products(size: int, rounds: int, chart: Path | None) -> None:
    x, y, z = (torch.randn(size, size) for _ in range(3))
    left, right, out = x.numpy(), y.numpy(), np.empty_like(z.numpy())
    rungs = ladder(size)
    calls: dict[str, Callable[[], object]] = {
        name: lambda f=f: f(x, y, z) for name, f in rungs.items()
    }
    calls["torch.mm"] = lambda: torch.mm(x, y, out=z)
    calls["numpy.matmul"] = lambda: np.matmul(left, right, out=out)
    seconds = best_of(calls, rounds)
    print(f"\n| product of {size} | ms | GFLOP/s | time ÷ default's |\n| --- | --- | --- | --- |")
    for name, each in seconds.items():
        rate = 2 * size**3 / each / 1e9
        print(f"| {name} | {each * 1e3:.3f} | {rate:.0f} | {each / seconds['default']:.2f} |")
    threads = torch.get_num_threads()
    peak = _core.measure_peak_flops(threads) / 1e9
    print(f"\npeak {peak:.0f} GFLOP/s")
    if chart is not None:
        rates = {name: 2 * size**3 / each / 1e9 for name, each in seconds.items()}
        caption = f"GFLOP/s of a float32 product of {size}, threads: {threads}"
        ladder_chart.draw(rates, peak, caption, chart)


def softmax(m: int, n: int) -> tuple[list[te.Tensor], Callable[..., torch.Tensor]]:
    x = te.placeholder((m, n), name="x")
    a, b = te.reduce_axis((0, n), "a"), te.reduce_axis((0, n), "b")
    most = te.compute((m,), lambda i: te.max(x[i, a], axis=a), "most")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - most[i]), "e")
    total = te.compute((m,), lambda i: te.sum(e[i, b], axis=b), "total")
    return [x, te.compute((m, n), lambda i, j: e[i, j] / total[i], "o")], lambda x: x.softmax(-1)


def depthwise(c: int, h: int, w: int) -> tuple[list[te.Tensor], Callable[..., torch.Tensor]]:
    x, k = te.placeholder((c, h, w), name="x"), te.placeholder((c, 3, 3), name="k")

    def inside(q: te.Tensor, i: te.Tensor, j: te.Tensor) -> object:
        within = te.all(i > 0, i <= h, j > 0, j <= w)
        return te.if_then_else(within, x[q, i - 1, j - 1], 0.0)

    padded = te.compute((c, h + 2, w + 2), inside, "padded")
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")
    z = te.compute(
        (c, h, w), lambda q, i, j: te.sum(padded[q, i + a, j + b] * k[q, a, b], axis=[a, b]), "z"
    )
    return [x, k, z], lambda x, k: F.conv2d(x[None], k[:, None], padding=1, groups=c)[0]


def top1(m: int, n: int) -> tuple[list[te.Tensor], Callable[..., torch.Tensor]]:
    x = te.placeholder((m, n), name="x")
    a, b = te.reduce_axis((0, n), "a"), te.reduce_axis((0, n), "b")
    most = te.compute((m,), lambda i: te.max(x[i, a], axis=a), "most")
    z = te.compute(
        (m,), lambda i: te.min(te.if_then_else(x[i, b] == most[i], b, n), axis=b), "first"
    )
    return [x, z], lambda x: x.argmax(-1)


def others(rounds: int) -> None:
    print("\n| default schedule | µs | PyTorch's time ÷ ours |\n| --- | --- | --- |")
    for make, sizes in [(softmax, (128, 768)), (depthwise, (64, 56, 56)), (top1, (128, 1000))]:
        seconds = beside_pytorch(*make(*sizes), rounds)
        ratio = seconds["torch"] / seconds["te"]
        print(f"| {make.__name__} {sizes} | {seconds['te'] * 1e6:.1f} | {ratio:.2f} |")


def beside_pytorch(
    args: list[te.Tensor], eager: Callable[..., torch.Tensor], rounds: int
) -> dict[str, float]:
    f = te.build(te.create_schedule(args[-1]), args)
    given = [torch.randn(each.shape) for each in args[:-1]]
    result = f(*given)
    torch.testing.assert_close(result, eager(*given), rtol=1e-4, atol=1e-4)
    return best_of({"te": lambda: f(*given, result), "torch": lambda: eager(*given)}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="of the product")
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != str(options.threads):
        print(f"OPENBLAS_NUM_THREADS is not {options.threads}: NumPy may use other threads")
    torch.set_num_threads(options.threads)
    products(options.size, options.rounds, options.chart)
    others(options.rounds * 10)


if __name__ == "__main__":
    main()
