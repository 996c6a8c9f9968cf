# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a sequence of ops repeats itself, as the layers of a model do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Repetition:
    """`count` equal blocks of `period` ops from the op numbered `start`."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    def representative(self, number: int) -> int:
        """The op of the first block that stands for another."""
        if self.start <= number < self.end:
            return self.start + (number - self.start) % self.period
        return number


def find_repetition(keys: Sequence[Hashable]) -> Repetition | None:
    """The one that leaves the fewest ops when one block stands for all; None without any.

    keys: equal for ops that are alike.
    """
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    best: Repetition | None = None
    saved = 0
    for period in range(2, len(sequence) // 2 + 1):
        run, end = _longest_run(sequence[period:] == sequence[:-period])
        count = run // period + 1
        if (count - 1) * period > saved:
            saved = (count - 1) * period
            best = Repetition(end - run, period, count)
    return best


def _longest_run(same: np.ndarray) -> tuple[int, int]:
    """Length and end of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], same.astype(np.int8), [0]))))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(ends[longest])
