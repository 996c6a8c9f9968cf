# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs print, warn and log. A replay does each of these once, and names the program's
line.

A replay also sets the filters of warnings that a program sets and takes back.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

from weft import _capture
from weft.observe.contexts import Contexts


def declare_telling() -> None:
    _capture.declare(print, "prints")
    _capture.declare(warnings.warn, "warns")
    _capture.set_operator("warn", _warn)
    _capture.declare(logging.Logger._log, "logs")
    _capture.declare(logging.Logger.isEnabledFor, "asked")
    _capture.declare(logging.getLogger, "asked")
    _capture.set_operator("get logger", logging.getLogger)
    _capture.set_operator("log", _log)
    for function in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings):
        _capture.declare(function, "filters")
    _capture.set_operator("enter filters", warnings.catch_warnings.__enter__)
    _capture.set_operator("leave filters", warnings.catch_warnings.__exit__)
    _capture.set_operator("push filters", push_filters)
    _capture.set_operator("pop filters", pop_filters)


def _warn(message: str, category: type, file: str, line: int, names: dict[str, Any]) -> None:
    """Does what warnings.warn would, called at that line of a module with these globals."""
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, file, line, module, registry)


def _log(
    logger: logging.Logger, level: int, message: Any, args: Any, file: str, line: int, function: str
) -> None:
    """Does what Logger._log would, called at that line."""
    record = logger.makeRecord(logger.name, level, file, line, message, args, None, function)
    logger.handle(record)


warning_filters = Contexts()


def push_filters(first: tuple | None) -> None:
    """Does what entering warnings.catch_warnings does. first: the filter that it is given."""
    warning_filters.enter(warnings.catch_warnings())
    if first is not None:
        warnings.simplefilter(*first)


def pop_filters() -> None:
    """Leaves the context that was entered last."""
    warning_filters.leave()
