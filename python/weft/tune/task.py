# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is tuned: a kernel, with all schedules that it may have."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """A schedule.

    text: as in the records; "" for the schedule that the compiler chooses by itself. numbers: its
    parameters by name. predicted: the predicted cost, in seconds or in another unit that all
    candidates of a task share. access: what `tune/access.py` says of its tile, as many numbers for
    each candidate of a task.
    """

    text: str
    numbers: dict[str, int] = field(hash=False)
    predicted: float = 0.0
    access: tuple[float, ...] = field(default=(), hash=False)

    def features(self) -> list[float]:
        """The numbers that describe the candidate to the learned model."""
        numbers = [float(value) for _, value in sorted(self.numbers.items())]
        logs = [math.log2(value) if value > 0 else -1.0 for value in numbers]
        return [*numbers, *logs, math.log(max(self.predicted, 1e-30)), *self.access]


class Task(ABC):
    """A kernel to tune.

    name: for people. kernel: a digest of all that the results depend on. share: the part of the
    model's time that the kernel takes; 1 for a kernel on its own.
    """

    name: str
    kernel: str
    share: float = 1.0

    @abstractmethod
    def default(self) -> Candidate:
        """The schedule that is compiled without records."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """The other schedules, ordered by the analytical model's prediction, the best first."""

    @abstractmethod
    def request(self, candidate: Candidate) -> dict[str, Any]:
        """The request for the worker: `module`, `incumbent` and `reference` as MLIR of the stage
        `linalg`, their `schedules`, and shapes and dtypes of the arguments."""

    def __repr__(self) -> str:
        count = len(self.candidates())
        return f"<tune.Task {self.name}: {count} candidates, {self.share:.1%} of the time>"
