# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `weft.schedules` returns: what the compiler has chosen for each contraction, over what, and
the times that it predicts for both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.artifacts.builds import Options, remarks_of
from weft.machine import frequency

_REMARK = re.compile(r"(\S+): (\w+) (.*?)(?: and (\d+) more)?")
_FIELDS = re.compile(r"(.+) (\d+) cycles")


@dataclass(frozen=True)
class Alternative:
    """A schedule that was compared. fields: its numbers, such as "rows=6 groups=4". seconds: of a
    call, as predicted."""

    fields: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.fields} {self.seconds * 1e6:.3g} µs"


@dataclass(frozen=True)
class ChosenSchedule:
    """The schedule of one contraction.

    kernel: its name in the program. emitter: the kind of code. taken: the choice. over: the best of
    the others. more: how many were compared besides. location: the user's file and line, None if
    unknown.
    """

    kernel: str
    emitter: str
    taken: Alternative
    over: tuple[Alternative, ...] = ()
    more: int = 0
    location: tuple[str, int] | None = None

    def __str__(self) -> str:
        place = "{}:{}: ".format(*self.location) if self.location else ""
        others = ", ".join(map(str, self.over))
        left = f" and {self.more} more" if self.more else ""
        return f"{place}{self.kernel}: {self.emitter} {self.taken}" + (
            f"; over {others}{left}" if self.over else ""
        )


def chosen_schedules(graph: bytes, options: Options) -> list[ChosenSchedule]:
    """What the compiler chooses for a graph, in the order of its kernels. It chooses again: nothing
    of it is kept when a program is compiled.

    Raises: errors.CompileError.
    """
    return [
        _parsed(text, (file, line) if line else None)
        for pass_name, _, text, (file, line, _) in remarks_of(graph, "scheduled", options)
        if pass_name == "weft-schedule-kernels"
    ]


def _parsed(text: str, location: tuple[str, int] | None) -> ChosenSchedule:
    """A remark of compiler/Scheduling/ComparedSchedules.cpp."""
    found = _REMARK.fullmatch(text)
    assert found is not None, text
    kernel, emitter, compared, more = found.groups()
    taken, _, others = compared.partition("; over ")
    over = tuple(map(_alternative, others.split(", "))) if others else ()
    return ChosenSchedule(kernel, emitter, _alternative(taken), over, int(more or 0), location)


def _alternative(text: str) -> Alternative:
    found = _FIELDS.fullmatch(text)
    assert found is not None, text
    return Alternative(found[1], int(found[2]) / frequency())
