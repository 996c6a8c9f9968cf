# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs tell the world: a replay does it once, and names the program's line.

Filters of warnings that a program sets and takes back again, a replay sets as well.
"""

from __future__ import annotations

import logging
import threading
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
    for function in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings):
        _capture.declare(function, "filters")
    _capture.set_operator("enter filters", warnings.catch_warnings.__enter__)
    _capture.set_operator("leave filters", warnings.catch_warnings.__exit__)
    _capture.set_operator("push filters", push_filters)
    _capture.set_operator("pop filters", pop_filters)


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


class _Entered(threading.local):
    def __init__(self) -> None:
        self.filters: list[warnings.catch_warnings] = []


_entered = _Entered()


def push_filters(first: tuple | None) -> None:
    """As entering warnings.catch_warnings does. first: a filter that it is given."""
    filters = warnings.catch_warnings()
    filters.__enter__()
    _entered.filters.append(filters)
    if first is not None:
        warnings.simplefilter(*first)


def pop_filters() -> None:
    """Leaves what was entered last."""
    _entered.filters.pop().__exit__(None, None, None)


class Filters:
    """How often replays of this thread have entered warnings.catch_warnings and not yet left it."""

    def __init__(self) -> None:
        self._count = len(_entered.filters)

    def restore(self) -> None:
        while len(_entered.filters) > self._count:
            pop_filters()

    def again(self) -> Filters:
        return Filters()

    def agrees(self, other: Filters, tolerance: float | None = None) -> bool:
        return self._count == other._count
