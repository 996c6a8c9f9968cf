# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tensor expressions and their schedules raise."""

from __future__ import annotations

from weft.errors import Error


class TEError(Error, ValueError):
    """An expression that makes no sense; the text says where, what was expected and found."""


class ScheduleError(Error, ValueError):
    """A step that a schedule cannot take. The schedule is as it was before.

    Attributes: axis (the name of the axis or tensor), reason, remedy (what would make it legal).
    """

    def __init__(self, axis: str, reason: str, remedy: str) -> None:
        super().__init__(f"{axis}: {reason}; {remedy}")
        self.axis = axis
        self.reason = reason
        self.remedy = remedy
