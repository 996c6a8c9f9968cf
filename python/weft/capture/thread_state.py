# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes torch's settings of one thread to another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

_AUTOCAST_DEVICES = ("cpu", "cuda")


class ThreadState:
    """torch's settings of the calling thread, to be set in another thread."""

    def __init__(self) -> None:
        self._inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()
        self._autocast = autocast()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        before = autocast()
        with torch.inference_mode(self._inference), torch.set_grad_enabled(self._grad):
            set_autocast(self._autocast)
            try:
                yield
            finally:
                set_autocast(before)


def autocast() -> tuple:
    """The settings of autocast."""
    devices = [
        (each, torch.is_autocast_enabled(each), torch.get_autocast_dtype(each))
        for each in _AUTOCAST_DEVICES
    ]
    return torch.is_autocast_cache_enabled(), devices


def set_autocast(state: tuple) -> None:
    """state: as `autocast` gives them."""
    cached, devices = state
    torch.set_autocast_cache_enabled(cached)
    for device, enabled, dtype in devices:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
