# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One row: PyTorch's call, Weft's and a composition's parts, in short rounds that take turns."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import weft
from benchmarks.ops.case import Op
from weft.benchmark.systems import breaks_of_first_calls
from weft.errors import WeftWarning

# Of calls in a row: short enough to lie between two interruptions now and then.
_ROUND_SECONDS = 2e-4
_LEAST_ROUNDS = 20
# What a call costs more that Weft hands on to PyTorch.
HANDED_ON_SECONDS = 5e-6
LEAST_RATIO = 0.95
_TOLERANCES = {torch.float64: 1e-10, torch.bfloat16: 2e-2, torch.float16: 4e-3}


@dataclass(frozen=True)
class Row:
    """Seconds are those of a call, in the best round.

    handed_on: what PyTorch runs, or why; None where everything is compiled. parts: seconds of the
    parts compiled one by one, of a composition. wrong: how the values differ, or None.
    """

    group: str
    name: str
    eager: float
    weft: float
    handed_on: str | None = None
    parts: float | None = None
    wrong: str | None = None

    @property
    def ratio(self) -> float:
        return self.eager / self.weft

    @property
    def slow(self) -> bool:
        """A row that is slower than PyTorch."""
        if self.handed_on is not None and self.weft <= self.eager + HANDED_ON_SECONDS:
            return False
        return self.ratio < LEAST_RATIO

    @property
    def slower_than_parts(self) -> bool:
        return self.parts is not None and self.parts < LEAST_RATIO * self.weft


def measure(op: Op, seconds: float) -> Row:
    """seconds: that the rounds take together."""
    torch.manual_seed(zlib.crc32(op.name.encode()))
    call, args = op.make()
    compiled = weft.compile(call)
    handed_on = _settle(compiled, args)
    wrong = difference(compiled(*args), call(*args))
    calls = [lambda: call(*args), lambda: compiled(*args)]
    if isinstance(call, nn.Sequential):
        calls.append(_in_parts(call, args))
    times = best_of_rounds(calls, seconds)
    return Row(op.group, op.name, *times[:2], handed_on, *(times[2:] or [None]), wrong)


def _settle(compiled: Callable[..., object], args: tuple[torch.Tensor, ...]) -> str | None:
    """Calls until a program answers. Returns what PyTorch runs, or why it runs the call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeftWarning)
        breaks = breaks_of_first_calls(compiled, lambda: compiled(*args))
    if breaks:
        return "; ".join(breaks)
    kernels = weft.profile(compiled, *args, repeats=1).kernels
    return ", ".join(kernel.kernel for kernel in kernels if kernel.kind == "torch") or None


def _in_parts(whole: nn.Sequential, args: tuple[torch.Tensor, ...]) -> Callable[[], object]:
    first, *others = parts = [weft.compile(part) for part in whole]

    def call() -> object:
        value = first(*args)
        for part in others:
            value = part(value)
        return value

    value = args
    for part in parts:
        _settle(part, value)
        value = (part(*value),)
    return call


def best_of_rounds(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least seconds of each call, on average over a round in which it is called again and
    again; rounds of different calls take turns."""
    batches = [_batch(call) for call in calls]
    least = [float("inf")] * len(calls)
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < _LEAST_ROUNDS:
        rounds += 1
        for number, (call, batch) in enumerate(zip(calls, batches, strict=True)):
            least[number] = min(least[number], _seconds(call, batch))
    return least


def _batch(call: Callable[[], object]) -> int:
    """How many calls are a round."""
    return max(1, round(_ROUND_SECONDS / min(_seconds(call, 1) for _ in range(3))))


def _seconds(call: Callable[[], object], batch: int) -> float:
    start = time.perf_counter()
    for _ in range(batch):
        call()
    return (time.perf_counter() - start) / batch


def difference(values: object, expected: object) -> str | None:
    """How results differ by more than rounding explains."""
    for number, (value, exact) in enumerate(
        zip(tree_leaves(values), tree_leaves(expected), strict=True)
    ):
        if value.dtype != exact.dtype or value.shape != exact.shape:
            return f"result {number}: {value.dtype} {tuple(value.shape)}"
        tolerance = _TOLERANCES.get(exact.dtype, 1e-4) if exact.is_floating_point() else 0.0
        try:
            torch.testing.assert_close(value, exact, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            return f"result {number}: {' '.join(str(error).split())}"
    return None
