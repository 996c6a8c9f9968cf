# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes say of the optimisations that they made or left."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.types import Location


@dataclass(frozen=True)
class Remark:
    """kind: "passed", "missed", "failed" or "analysis". pass_name: of the pass or pattern that
    says so. location: the user's line of the op that it is about, None if that is not known."""

    kind: str
    pass_name: str
    text: str
    location: Location | None = None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.kind}: {self.text} [{self.pass_name}]"


def from_session(found: tuple[str, str, str, tuple[str, int, str]]) -> Remark:
    pass_name, kind, text, (file, line, function) = found
    return Remark(kind, pass_name, text, Location(file, line, function) if line else None)
