# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `compiled.profile()` returns: the kernels of one program, timed in several calls."""

from __future__ import annotations

import io
import json
import statistics
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from weft.artifacts.kernels import KernelCall
from weft.reporting import roofline
from weft.reporting.tables import lines_text, print_profile


@dataclass(frozen=True)
class Profile:
    """The time of a program's kernels.

    kernels: in the order in which the program calls them. title: the arguments' shapes. threads:
    the number of threads that the program ran on. repeats: how many calls were timed.
    """

    title: str
    threads: int
    repeats: int
    kernels: tuple[KernelCall, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        """The median of a call's seconds, counting its kernels alone."""
        return statistics.median(self._totals())

    @property
    def least(self) -> float:
        """The time of the fastest call in seconds."""
        return min(self._totals())

    def limit_share(self, kernel: KernelCall) -> float | None:
        """The kernel's least possible time on this machine, by its operations and bytes, divided by
        its measured time.

        It is above 1 if the tensors were in a cache, which is faster than memory, and None where
        the operations and bytes are not known. The first call measures the machine for about a
        second.
        """
        if kernel.kind == "torch" or not kernel.seconds:
            return None
        least = roofline.least_seconds(kernel.flops, kernel.moved, self.threads)
        return least / kernel.seconds

    def print(self, file: Any = None) -> None:
        """Prints a table. file: where to, by default standard output."""
        print_profile(self, file)

    def __str__(self) -> str:
        text = io.StringIO()
        self.print(text)
        return text.getvalue()

    def chrome_trace(self, path: str | Path) -> None:
        """Writes the fastest call in the Trace Event Format, for Perfetto or chrome://tracing.

        Raises: OSError, if the file cannot be written.
        """
        document = {"traceEvents": self._events(), "displayTimeUnit": "ns"}
        Path(path).write_text(json.dumps(document, indent=1) + "\n", "utf-8")

    def _events(self) -> list[dict[str, Any]]:
        totals = self._totals()
        fastest = totals.index(min(totals))
        starts = [0.0, *accumulate(kernel.samples[fastest] for kernel in self.kernels)]
        names = [
            {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "weft"}},
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "kernels"}},
        ]
        kernels = [
            _event(kernel.kernel, kernel.kind, starts[number], starts[number + 1], _about(kernel))
            for number, kernel in enumerate(self.kernels)
        ]
        return [*names, _event(self.title, "program", 0.0, starts[-1], {}), *kernels]

    def _totals(self) -> list[float]:
        runs = zip(*(kernel.samples for kernel in self.kernels))
        return [sum(run) for run in runs] or [0.0]


def _event(
    name: str, category: str, start: float, end: float, about: dict[str, Any]
) -> dict[str, Any]:
    """A complete event of the Trace Event Format, which counts in microseconds."""
    return {
        "ph": "X", "name": name, "cat": category, "pid": 0, "tid": 0,
        "ts": start * 1e6, "dur": (end - start) * 1e6, "args": about,
    }  # fmt: skip


def _about(kernel: KernelCall) -> dict[str, Any]:
    return {
        "lines": lines_text(kernel.lines),
        "flops": kernel.flops,
        "bytes": kernel.moved,
        "schedule": kernel.schedule,
    }
