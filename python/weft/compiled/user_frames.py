# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's lines from which a call has come, and those of functions that it calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from weft import errors
from weft.capture.code_names import line_of
from weft.capture.library_paths import INSTALLED


def frames_to_user() -> int:
    """The `stacklevel` with which the calling function's warning names the user's line: that of the
    nearest caller that is not in an installed package, such as torch's Sequential, if there is
    one."""
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
    """The error of an op that PyTorch ran, without the stack frames that led to it."""
    return error.rstrip().rpartition("\n")[2] if error.startswith("Traceback") else error


def failure(error: Exception, target: Callable[..., Any] | None) -> errors.CaptureError:
    """A CaptureError for an unexpected error, since a fault of the compiler costs speed, never the
    user's result.

    target: what the user has had compiled.
    """
    return errors.CaptureError(
        f"compilation failed: {type(error).__name__}: {error}", line_of(target)
    )
