# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which function of PyTorch's calls, as a trace's modes are asked."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

_getframe = sys._getframe  # which is watched while the program runs


def caller(function: Callable) -> types.FrameType | None:
    """The frame of `function`, if it is what calls, by way of modes."""
    frame: types.FrameType | None = _getframe(1)
    while frame is not None and frame.f_globals["__name__"].startswith("weft."):
        frame = frame.f_back
    return frame if frame is not None and frame.f_code is function.__code__ else None


def is_called_by(function: Callable) -> bool:
    return caller(function) is not None
