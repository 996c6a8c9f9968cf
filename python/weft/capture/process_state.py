# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the process keeps for Python's own modules, where code that a program stands for reaches
them: the levels of loggers, and the context by which `decimal` rounds.
"""

from __future__ import annotations

import decimal
import logging
import types
from collections.abc import Callable
from typing import Any

from weft._core import ObjectGuards
from weft.capture.signature import Same

_LOGGERS = (logging.Logger, logging.RootLogger)
_WITH_MODULE = (type, types.FunctionType, types.BuiltinFunctionType)


def watched(value: Any, guards: ObjectGuards) -> Any:
    """The state that `value` (an object, class, function or module) reads, as a key; None for most
    values, which read none."""
    kind = type(value)
    if kind in _LOGGERS:
        return _levels([value], guards)
    if kind is logging.LoggerAdapter:
        return watched(value.logger, guards)
    if kind.__module__ == "logging" and isinstance(value, logging.Handler):
        return _handler(value, guards)
    if isinstance(value, decimal.Context):
        return (_context(guards), _said_by(value, guards))
    if isinstance(value, decimal.Decimal):
        return _context(guards)
    if kind is types.ModuleType:
        module = value.__name__
    else:
        module = value.__module__ if kind in _WITH_MODULE else kind.__module__
    if module == "logging":
        guards.watch_dict(logging._levelToName)
        return (*_levels(_all_loggers(guards), guards), *logging._levelToName.items())
    if module == "decimal":
        return _context(guards)
    return None


def decimal_flags() -> tuple[Any, ...]:
    """Those of the current context that operations have set."""
    flags = decimal.getcontext().flags
    return tuple(flags.items())


def _levels(loggers: list[logging.Logger], guards: ObjectGuards) -> tuple[Any, ...]:
    """Of these and of those that they ask: the state that is not what a new logger has."""
    manager, key, seen = logging.Logger.manager, [], set()
    guards.watch_object(manager)
    for logger in loggers:
        at: logging.Logger | None = logger
        while at is not None and id(at) not in seen:
            seen.add(id(at))
            guards.watch_object(at)
            guards.watch_list(at.handlers)
            guards.watch_list(at.filters)
            handlers = tuple(_handler(each, guards) for each in at.handlers)
            filters = tuple(map(Same, at.filters))
            parent = at.parent.name if at.parent is not None else None
            state = (at.level, at.disabled, at.propagate, handlers, filters)
            if len(loggers) == 1 or state != (0, False, True, (), ()):
                key.append((at.name, parent, *state))
            at = at.parent
    return (manager.disable, *key)


def _handler(handler: logging.Handler, guards: ObjectGuards) -> tuple[Same, int]:
    guards.watch_object(handler)
    return (Same(handler), handler.level)


def _all_loggers(guards: ObjectGuards) -> list[logging.Logger]:
    """Code that has the module may ask for any."""
    known = logging.Logger.manager.loggerDict
    guards.watch_dict(known)
    return [logging.root, *(each for each in known.values() if isinstance(each, logging.Logger))]


def _context(guards: ObjectGuards) -> Any:
    """Which one is current, and all that it says, flags included: a call that sets some has an
    effect."""
    guards.watch_answer(decimal.getcontext)
    return _said_by(decimal.getcontext(), guards)


def _said_by(context: decimal.Context, guards: ObjectGuards) -> tuple[Any, ...]:
    """C is asked, which runs no code of Python's."""
    state: Callable[[], Any] = context.__reduce__  # type: ignore[assignment]
    guards.watch_answer(state)
    _, (*numbers, flags, traps) = state()
    return (*numbers, frozenset(flags), frozenset(traps))
