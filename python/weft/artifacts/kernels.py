# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that a program calls, as its manifest lists them, with the time they took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any


@dataclass(frozen=True)
class KernelCall:
    """One call of a kernel, or of an op that PyTorch runs, in a program.

    kernel: its name, or the op's. kind: "contraction", "nest", …, or "torch". lines: the
    user's (file, line) it comes from. flops, moved (bytes): of the call; 0 for an op of
    PyTorch. samples: seconds, one for each time it was measured. schedule: the emitter's.
    """

    kernel: str
    kind: str
    lines: tuple[tuple[str, int], ...]
    flops: int
    moved: int
    samples: tuple[float, ...]
    schedule: dict[str, Any]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def least(self) -> float:
        """The least seconds."""
        return min(self.samples)

    @property
    def flops_per_second(self) -> float:
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        return self.moved / self.seconds if self.seconds else 0.0


def kernel_calls(
    manifest: dict[str, Any], runs: Sequence[Sequence[float]] = (), entry: str = "main"
) -> tuple[KernelCall, ...]:
    """The calls of an entry in order. runs: of each run, the seconds of every call."""
    calls = manifest["entries"][entry]["calls"]
    times = zip(*runs) if runs else repeat((), len(calls))
    return tuple(_kernel_call(call, samples) for call, samples in zip(calls, times))


def _kernel_call(call: dict[str, Any], samples: tuple[float, ...]) -> KernelCall:
    lines = tuple((file, line) for file, line, *_ in call["locs"])
    if "fallback" in call:
        return KernelCall(call["target"], "torch", lines, 0, 0, samples, {})
    return KernelCall(
        call["kernel"], call["kind"], lines, call["flops"], call["bytes"], samples, call["schedule"]
    )
