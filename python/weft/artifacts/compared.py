# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schedules that the compiler compares for contractions, with the cycles of a call that it
predicts. It chooses again for this: nothing of it is kept when a program is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from weft.artifacts.builds import Options

_REMARK = re.compile(r"(\S+): (\w+) (.*)")
_FIELDS = re.compile(r"(.+) (\d+) cycles")


@dataclass(frozen=True)
class Compared:
    """What was compared for one contraction.

    kernel: its name. emitter: the kind of code. cycles: of a call, by the schedule's fields, such
    as "rows=6 groups=4": first the one that was taken, then the others, the fastest first.
    location: the user's file and line, None if unknown.
    """

    kernel: str
    emitter: str
    cycles: dict[str, int]
    location: tuple[str, int] | None


def compared_in_graph(graph: bytes, options: Options) -> list[Compared]:
    """Of all contractions of a graph, in the order of its kernels.

    Raises: errors.CompileError.
    """
    from weft import _compiler

    session = _compiler.Session.import_graph(graph)
    return _parsed(session.lower("graph", "scheduled", options.for_compiler()).remarks())


def compared_in_module(module: str, options: Options) -> list[Compared]:
    """Of all contractions of a module, as MLIR of the stage `linalg`.

    Raises: errors.CompileError.
    """
    from weft import _compiler

    session = _compiler.Session.parse(module, "module")
    return _parsed(session.lower("linalg", "scheduled", options.for_compiler()).remarks())


def _parsed(remarks: Iterable[tuple[str, str, str, tuple[str, int, str]]]) -> list[Compared]:
    """Reads those of compiler/Scheduling/ComparedSchedules.cpp."""
    found = []
    for pass_name, _, text, (file, line, _) in remarks:
        if pass_name != "weft-schedule-kernels":
            continue
        kernel, emitter, compared = _matched(_REMARK, text)
        parts = compared.replace("; over ", ", ").split(", ")
        cycles = {fields: int(count) for fields, count in (_matched(_FIELDS, p) for p in parts)}
        found.append(Compared(kernel, emitter, cycles, (file, line) if line else None))
    return found


def _matched(pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    found = pattern.fullmatch(text)
    assert found is not None, text
    return found.groups()
