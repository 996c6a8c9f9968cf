# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs tell the world: a replay does it once, and names the program's line."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from weft import _capture


def declare_telling() -> None:
    _capture.declare(print, "prints")
    _capture.declare(warnings.warn, "warns")
    _capture.set_operator("warn", _warn)
    _capture.declare(logging.Logger._log, "logs")
    _capture.declare(logging.Logger.isEnabledFor, "asked")
    _capture.set_operator("log", _log)


def _warn(message: str, category: type, file: str, line: int, names: dict[str, Any]) -> None:
    """As warnings.warn does from that line of a module with those globals."""
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, file, line, module, registry)


def _log(
    logger: logging.Logger, level: int, message: Any, args: Any, file: str, line: int, function: str
) -> None:
    """As Logger._log does, called from that line."""
    record = logger.makeRecord(logger.name, level, file, line, message, args, None, function)
    logger.handle(record)
