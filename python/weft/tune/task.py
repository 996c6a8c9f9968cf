# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is tuned: a kernel with the space of its schedules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """A schedule. text: as records keep it, "" for the one that is chosen anyway. numbers: of which
    it is made, by name. predicted: by the model of the machine, in seconds or in another unit that
    the candidates of a task share."""

    text: str
    numbers: dict[str, int] = field(hash=False)
    predicted: float = 0.0

    def features(self) -> list[float]:
        """What the learned model is told."""
        numbers = [float(value) for _, value in sorted(self.numbers.items())]
        logs = [math.log2(value) if value > 0 else -1.0 for value in numbers]
        return [*numbers, *logs, math.log(max(self.predicted, 1e-30))]


class Task(ABC):
    """name: for people. kernel: a digest of all that the results depend on. share: of the model's
    time that the kernel takes, 1 for one on its own."""

    name: str
    kernel: str
    share: float = 1.0

    @abstractmethod
    def default(self) -> Candidate:
        """What is compiled without records."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """The others, the one first that the model of the machine likes most."""

    @abstractmethod
    def request(self, candidate: Candidate) -> dict[str, Any]:
        """For the worker: `module`, `incumbent` and `reference` as MLIR of the stage `linalg`,
        `schedules` of these, and what arguments look like."""

    def __repr__(self) -> str:
        count = len(self.candidates())
        return f"<tune.Task {self.name}: {count} candidates, {self.share:.1%} of the time>"
