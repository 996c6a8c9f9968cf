# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The line of the user's from which a call has come."""

from __future__ import annotations

import sys

from weft.capture.reachability import INSTALLED


def frames_to_user() -> int:
    """The `stacklevel` with which the function that calls this one warns at the user's line: that
    of the nearest caller that is not installed, such as torch's Sequential, if there is one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("weft."):
        level, frame = level + 1, frame.f_back
    nearest = level
    while frame.f_code.co_filename.startswith(INSTALLED):
        if frame.f_back is None:
            return nearest
        level, frame = level + 1, frame.f_back
    return level


def without_frames(error: str) -> str:
    """What an op that PyTorch ran has raised, without the frames that led there."""
    return error.rstrip().rpartition("\n")[2] if error.startswith("Traceback") else error
