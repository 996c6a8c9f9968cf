# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hears what a traced call does besides tensor operations: prints, logs, asks for the time, opens
files, imports, looks into namespaces. No guard watches such reads and no program repeats such
effects, so that PyTorch has to run the call.

It replaces functions of Python for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import builtins
import io
import logging
import os
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from weft.modes import called_by_torch
from weft.signature import Declined

_CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "sleep",
)
# Files that Python's imports read.
_SOURCES = (".py", ".pyc", ".so", ".pth", ".json")
# What else changes the machine, as sys.addaudithook names it.
_ACTIONS = ("os.", "socket.", "subprocess.", "shutil.", "sqlite3.", "urllib.", "tempfile.")
_HARMLESS = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})


class Refused(Declined):
    """The call is stopped before it does what cannot be undone."""


class Observer:
    """reason: what the call did first, None so far."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def note(self, what: str) -> None:
        self.reason = self.reason or f"the call {what}"

    def refuse(self, what: str) -> None:
        self.note(what)
        raise Refused(f"the call {what}")

    def install(self, names: Iterable[tuple[dict[str, Any], str]]) -> None:
        """names: (namespace, name) pairs that the user's code may call without a module's help."""
        replaced = dict(self._clocks()) | dict(self._builtins())
        for original, replacement in replaced.items():
            _replace(original, replacement)
        for namespace, name in names:
            value = namespace.get(name)
            if isinstance(value, types.BuiltinFunctionType) and value in replaced:
                namespace[name] = replaced[value]
        builtins.__import__ = self._importing(builtins.__import__)
        logging.Logger.callHandlers = lambda logger, record: self._logged(record)
        sys.stdout, sys.stderr = _Stream(self), _Stream(self)
        sys.addaudithook(self._audit)

    def _clocks(self) -> Iterable[tuple[Any, Any]]:
        for name in _CLOCKS:
            function = getattr(time, name)
            yield function, self._heard(function, "asks for the time")

    def _builtins(self) -> Iterable[tuple[Any, Any]]:
        yield print, self._silent("prints")
        yield input, self._silent("waits for input")
        yield globals, self._heard(globals, "looks into a namespace")
        yield eval, self._heard(eval, "evaluates text")
        yield exec, self._heard(exec, "executes text")
        yield open, self._heard(open, "opens a file")

    def _heard(self, function: Callable, what: str) -> Callable:
        def heard(*args: Any, **kwargs: Any) -> Any:
            if not called_by_torch() and not _called_by_python():
                self.refuse(what)
            if function in _OF_THE_CALLER:
                return _in_caller(function, sys._getframe(1), args)
            return function(*args, **kwargs)

        return heard

    def _silent(self, what: str) -> Callable:
        def silent(*args: Any, **kwargs: Any) -> None:
            if not called_by_torch():
                self.note(what)

        return silent

    def _importing(self, original: Callable) -> Callable:
        def importing(name: str, *args: Any) -> types.ModuleType:
            # Functions in C import in the name of whoever calls them, with a list of no names.
            by_c = len(args) > 2 and isinstance(args[2], list)
            by_others = by_c or called_by_torch() or _called_by_python() or _called_by_library()
            if not by_others:
                caller = sys._getframe(1)
                place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
                self.note(f"imports {name} ({place})")
            return original(name, *args)

        return importing

    def _logged(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("torch.", "weft")):
            self.note("logs")

    def _audit(self, event: str, args: tuple) -> None:
        if event == "open":
            path = args[0]
            if isinstance(path, str) and not path.endswith(_SOURCES) and not _is_of_python(path):
                self._refuse_unless_importing(f"opens the file {path}")
        elif event.startswith(_ACTIONS) and event not in _HARMLESS:
            self._refuse_unless_importing(f"does something that cannot be undone ({event})")

    def _refuse_unless_importing(self, what: str) -> None:
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return
            frame = frame.f_back
        self.refuse(what)


class _Stream(io.TextIOBase):
    """In the place of standard output and error."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def write(self, text: str) -> int:
        # Warnings are heard once, and the eager call has given them.
        if not called_by_torch() and not _called_by_python():
            self._observer.note("prints")
        return len(text)

    def writable(self) -> bool:
        return True


_OF_THE_CALLER = (globals, eval, exec)


def _in_caller(function: Callable, frame: types.FrameType, args: tuple) -> Any:
    """What such a function gives in the frame that calls it."""
    if not args:
        return frame.f_globals
    return function(args[0], *(args[1:] or (frame.f_globals, frame.f_locals)))


def _replace(original: Any, replacement: Any) -> None:
    module = sys.modules[original.__module__]
    # `open` says that it is of `_io`; its users find it among the built-in functions.
    for namespace in (vars(module), vars(builtins)):
        if namespace.get(original.__name__) is original:
            namespace[original.__name__] = replacement


_PYTHON = sysconfig.get_path("stdlib") + os.sep
_SITE = tuple({sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib")})
# What torch imports while it traces.
_OF_TRACING = frozenset({"sympy", "mpmath", "networkx", "jinja2", "numpy", "typing_extensions"})


def _is_of_python(path: str) -> bool:
    return path.startswith((_PYTHON, os.path.dirname(torch.__file__), "/proc/", "/sys/", "/dev/"))


def _called_by_python() -> bool:
    """Whether who called the function that calls this one is of the standard library or ours."""
    frame = sys._getframe(2)
    file = frame.f_code.co_filename
    if str(frame.f_globals.get("__name__")).partition(".")[0] in _OF_TRACING:
        return True
    ours = os.path.dirname(os.path.realpath(__file__))
    made = file.startswith("<") and frame.f_globals.get("__name__") != "__main__"
    if made or os.path.realpath(file).startswith(ours):
        return True
    return file.startswith(_PYTHON) and not file.startswith(_SITE)


def _called_by_library() -> bool:
    return sys._getframe(2).f_code.co_filename.startswith(_SITE)
