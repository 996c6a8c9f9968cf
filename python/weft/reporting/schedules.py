# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `weft.schedules` returns: what the compiler has chosen for each contraction, over what, and
the times that it predicts for both."""

from __future__ import annotations

from dataclasses import dataclass

from weft.artifacts.builds import Options
from weft.artifacts.compared import compared_in_graph
from weft.machine import frequency

_SHOWN = 4  # of the others, as text


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

    kernel: its name in the program. emitter: the kind of code. taken: the choice. over: the others
    that were compared, the fastest first. location: the user's file and line, None if unknown.
    """

    kernel: str
    emitter: str
    taken: Alternative
    over: tuple[Alternative, ...] = ()
    location: tuple[str, int] | None = None

    def __str__(self) -> str:
        place = "{}:{}: ".format(*self.location) if self.location else ""
        others = ", ".join(map(str, self.over[:_SHOWN]))
        more = len(self.over) - _SHOWN
        left = f" and {more} more" if more > 0 else ""
        return f"{place}{self.kernel}: {self.emitter} {self.taken}" + (
            f"; over {others}{left}" if self.over else ""
        )


def chosen_schedules(graph: bytes, options: Options) -> list[ChosenSchedule]:
    """What the compiler chooses for a graph, in the order of its kernels.

    Raises: errors.CompileError.
    """
    found = []
    for each in compared_in_graph(graph, options):
        taken, *others = (
            Alternative(fields, cycles / frequency()) for fields, cycles in each.cycles.items()
        )
        found.append(ChosenSchedule(each.kernel, each.emitter, taken, tuple(others), each.location))
    return found
