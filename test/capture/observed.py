# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One call with all that it gives and leaves outside of its world: output, warnings, generators."""

from __future__ import annotations

import contextlib
import io
import logging
import random
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from weft.errors import WeftWarning


@dataclass
class Observed:
    """error: that was raised, or None. printed, logged, warned: text. generators: their states
    after the call. modes: torch's."""

    args: tuple
    kwargs: dict[str, Any]
    value: Any
    error: BaseException | None
    printed: str
    logged: list[str]
    warned: list[str]
    generators: tuple
    modes: tuple


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def observe(function: Callable[[], Any], args: tuple, kwargs: dict[str, Any]) -> Observed:
    """function: makes the call with args and kwargs, which are kept."""
    listener, stream = _Listener(), io.StringIO()
    logger = logging.getLogger("capture.corpus")
    logger.addHandler(listener)
    logger.propagate = False
    warned: list[str] = []
    # Worlds share torch's modules, and with them what these remember to have warned of.
    for name, module in list(sys.modules.items()):
        if name.startswith("torch") and "__warningregistry__" in vars(module):
            vars(module)["__warningregistry__"].clear()
    shown = warnings.showwarning
    # Not by `catch_warnings`, which makes the default filter forget what it has shown.
    warnings.showwarning = lambda message, category, *place: warned.append(
        f"{category.__name__} {plain_text(str(message))}"
    )
    value, error = None, None
    try:
        with contextlib.redirect_stdout(stream):
            try:
                value = function()
            except Exception as raised:
                error = raised
            modes = _modes()
            torch.set_default_dtype(torch.float32)
    finally:
        logger.removeHandler(listener)
        warnings.showwarning = shown
    warned = [line for line in warned if not line.startswith(WeftWarning.__name__)]
    generators = (torch.get_rng_state(), random.getstate(), numpy.random.get_state())
    return Observed(args, kwargs, value, error, stream.getvalue(), listener.lines, warned,
                    generators, modes)  # fmt: skip


def plain_text(text: str) -> str:
    """Without addresses and numbers of worlds and of scripted classes."""
    text = re.sub(r"___torch_mangle_\d+", "", text)
    return re.sub(r"capture_world_\d+", "world", re.sub(r"0x[0-9a-f]+", "0x", text))


def _modes() -> tuple:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
    )
