# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tensor expressions and their schedules raise."""

from __future__ import annotations

from weft.errors import Error


class TEError(Error, ValueError):
    """An invalid expression. The text says where, what was expected and what was found."""


class ScheduleError(Error, ValueError):
    """An illegal step of a schedule. The schedule is left as it was before.

    Attributes: axis (the name of the axis or tensor), reason, remedy (what would make the step
    legal).
    """

    def __init__(self, axis: str, reason: str, remedy: str) -> None:
        super().__init__(f"{axis}: {reason}; {remedy}")
        self.axis = axis
        self.reason = reason
        self.remedy = remedy
