# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a schedule as plain data, and their text: one line each, such as

split Z i factor=32
reorder Z i.outer j.outer r i.inner j.inner
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.te.errors import ScheduleError


@dataclass(frozen=True)
class Step:
    """One step. verb: the name of a stage's method. stage: the tensor's name. names: those of axes
    and tensors. numbers: options by name."""

    verb: str
    stage: str
    names: tuple[str, ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        options = (f"{name}={value}" for name, value in self.numbers)
        return " ".join((self.verb, self.stage, *self.names, *options))


def written(steps: Iterable[Step]) -> str:
    return "".join(f"{step}\n" for step in steps)


def read(text: str) -> list[Step]:
    """The steps of a text. Empty lines and lines that begin with # are ignored.

    Raises: ScheduleError for a line that is not a step.
    """
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 2:
            raise ScheduleError(
                f"line {number}", f"`{line}` is no step", "write a verb, a tensor and axes"
            )
        names = tuple(word for word in words[2:] if "=" not in word)
        numbers = []
        for word in words[2:]:
            key, sign, value = word.partition("=")
            if sign and not value.lstrip("-").isdigit():
                raise ScheduleError(
                    f"line {number}", f"`{word}` has no number", "write name=integer"
                )
            if sign:
                numbers.append((key, int(value)))
        steps.append(Step(words[0], words[1], names, tuple(numbers)))
    return steps
