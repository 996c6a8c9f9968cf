# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.inference_mode within an observed call, as operations that a replay repeats."""

from __future__ import annotations

import threading
from typing import Any

import torch


class _Entered(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []


_entered = _Entered()


def push_inference(enabled: bool) -> None:
    """Does what entering torch.inference_mode(enabled) does."""
    mode = torch._C._InferenceMode(enabled)
    mode.__enter__()
    _entered.modes.append(mode)


def pop_inference() -> None:
    """Leaves the mode that was entered last."""
    _entered.modes.pop().__exit__(None, None, None)


class InferenceModes:
    """The modes that replays of this thread have entered and not left yet."""

    def __init__(self) -> None:
        self._count = len(_entered.modes)

    def restore(self) -> None:
        while len(_entered.modes) > self._count:
            pop_inference()

    def again(self) -> InferenceModes:
        return InferenceModes()

    def agrees(self, other: InferenceModes, tolerance: float | None = None) -> bool:
        return self._count == other._count
