# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hears what a traced call does besides tensor operations: prints, logs, asks for the time, opens
files, imports, looks into namespaces. No guard watches such reads and no program repeats such
effects, so that PyTorch has to run the call.

It replaces functions of Python for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import datetime
import importlib
import io
import locale
import logging
import os
import resource
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import numpy
import torch
from torch._subclasses import meta_utils

from weft.capture import trace_listener, unique_by_position, unwatched_reads
from weft.capture.compile_probes import RELAYS as _RELAYS
from weft.capture.library_paths import LIBRARIES, PYTHON, is_of_stdlib
from weft.capture.process_state import decimal_flags
from weft.capture.reachability import (
    is_users_module,
    is_watched_import,
)
from weft.capture.signature import Declined

# What each call may find otherwise, by module.
_READERS = {
    time: (
        "asks for the time",
        *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
        *("process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep"),
        *("localtime", "gmtime", "ctime", "asctime", "strftime"),
        *("clock_gettime", "clock_gettime_ns"),
    ),
    importlib: ("imports a module by its name", "import_module"),
    os: (
        "asks the operating system",
        *("stat", "lstat", "access", "getcwd", "listdir", "scandir", "readlink", "read", "write"),
        *("urandom", "times", "getloadavg", "getpid", "getppid", "cpu_count", "getcwdb"),
        *("sched_getaffinity", "getpriority", "get_terminal_size"),
    ),
    locale: (
        "asks for the locale",
        *("setlocale", "getlocale", "localeconv", "getencoding"),
        *("nl_langinfo", "strcoll", "strxfrm"),
    ),
    signal: ("asks for a signal's handler", "getsignal"),
    resource: ("asks for limits", "getrlimit", "getrusage"),
    threading: ("asks for threads", "active_count", "enumerate"),
    _thread: ("asks for its thread", "get_ident", "get_native_id"),
    sys: (
        "looks into the interpreter",
        *("getrefcount", "getrecursionlimit", "getswitchinterval", "get_int_max_str_digits"),
        *("getsizeof", "getallocatedblocks", "gettrace", "getprofile"),
    ),
}
READERS = unwatched_reads.FUNCTIONS.union(
    getattr(module, name) for module, (_, *names) in _READERS.items() for name in names
)
_getframe = sys._getframe
_STREAMS = (sys.__stdout__, sys.__stderr__)
_RECURSION_LIMIT = sys.getrecursionlimit
# Files that Python's imports read.
_SOURCES = (".py", ".pyc", ".so", ".pth", ".json")
# What else changes the machine, as sys.addaudithook names it.
_ACTIONS = ("os.", "socket.", "subprocess.", "shutil.", "sqlite3.", "urllib.", "tempfile.")


class Refused(Declined):
    """The call was stopped before it did what cannot be undone."""


def is_standard_stream(value: Any) -> bool:
    """Whether it is Python's own standard output or error, which lead where a child hears them."""
    try:
        return any(each is value and each.fileno() in (1, 2) for each in _STREAMS if each)
    except (OSError, ValueError):  # it has no file, or is closed
        return False


class Observer:
    """reason: what the call did first, None so far. mistaken: what objects that stand for numbers
    may have made it do first."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.mistaken: str | None = None
        self._handled: str | None = None  # an error that only tracing may raise
        self._listens = False
        self._watched: set[tuple[int, str]] = set()
        self._output: int | None = None  # in the place of standard output and error

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Within it, the user's code runs."""
        self._listens, before, flags = True, self._printed(), decimal_flags()
        try:
            with numpy.errstate(all="call", call=self._floating_error):
                yield
            self.reason = self.reason or self._handled
        finally:
            self._listens = False
            if self._printed() != before and self.reason is None:
                self.reason = "the call prints"
            if decimal_flags() != flags and self.reason is None:
                self.reason = "the call sets flags of decimal's context"

    def _floating_error(self, kind: str, flags: int) -> None:
        """NumPy raises, warns or does nothing, as it is told."""
        self.note(f"meets NumPy's floating point error {kind!r}", _getframe(1))

    def _printed(self) -> int:
        """How many bytes have come to the streams that libraries hold, such as loggers'."""
        if self._output is None:
            return 0
        for stream in filter(is_standard_stream, _STREAMS):
            stream.flush()
        return os.fstat(self._output).st_size

    def note(self, what: str, frame: types.FrameType) -> bool:
        """Whether the user's code does it; frame: which did."""
        place = _users(frame) if self._listens else None
        if place is not None and self.reason is None:
            self.reason = f"the call {what} ({place})"
        return place is not None

    def raised(self, error: type, frame: types.FrameType) -> None:
        """Notes an error that comes to the user's code. Where the call goes on all the same, it has
        handled it."""
        is_of_torch = trace_listener.is_of_torch(error)
        if not is_of_torch and error is not TypeError:
            return
        place = _users(frame) if self._listens else None
        if place is None:
            return
        what = f"the call handles {error.__name__} ({place})"
        self.mistaken = self.mistaken or what
        if is_of_torch:
            self._handled = self._handled or what

    def refuse(self, what: str, frame: types.FrameType) -> None:
        if self.note(what, frame):
            raise Refused(str(self.reason))

    def _of_torch(self) -> None:
        """What of torch no guard and no program knows: whether a tensor has a gradient, and that
        results come from inference mode."""
        enter, getter = torch.inference_mode.__enter__, torch.Tensor.grad
        around = torch.is_inference_mode_enabled()

        def entered(mode: torch.inference_mode) -> None:
            caller = _getframe(1)
            if mode.mode is not around and self._listens and not _is_of_fakes(caller):
                self.reason = self.reason or "the call enters or leaves inference mode"
            enter(mode)

        def gradient(tensor: torch.Tensor) -> Any:
            caller = _getframe(1)
            if caller.f_globals is meta_utils.__dict__:
                # Whoever makes a fake tensor would give it a fake gradient, which has to be of its
                # type. Nothing that is traced reads it.
                return None
            self.note("reads a gradient", caller)
            return getter.__get__(tensor)

        torch.inference_mode.__enter__ = entered
        torch.Tensor.grad = property(gradient, getter.__set__, getter.__delete__)

    def _environment(self, known: Container[str]) -> None:
        get, iterate, environ = os._Environ.__getitem__, os._Environ.__iter__, os.environ

        def note(what: str, frame: types.FrameType) -> None:
            """Settings that libraries read are taken as they are."""
            if not (_users(frame) or "").startswith(LIBRARIES):
                self.note(what, frame)

        def item(variables: Any, name: str) -> str:
            if variables is environ and name not in known:
                note("asks for a variable by a computed name", _getframe(1))
            return get(variables, name)

        def names(variables: Any) -> Iterator[str]:
            note("asks for all variables", _getframe(1))
            return iterate(variables)

        os._Environ.__getitem__, os._Environ.__iter__ = item, names

    def install(
        self, names: Iterable[tuple[dict[str, Any], str]], environment: Container[str]
    ) -> None:
        """names: (namespace, name) pairs that the user's code may call without a module's help.
        environment: variables that are watched."""
        self._watched = {(id(namespace), name) for namespace, name in names}
        replaced = dict(self._readers()) | dict(self._builtins()) | self._dates()
        for original, replacement in replaced.items():
            _replace(original, replacement)
        for namespace, name in names:
            value = namespace.get(name)
            if isinstance(value, (types.BuiltinFunctionType, type)) and value in replaced:
                namespace[name] = replaced[value]
        self._of_torch()
        unwatched_reads.install(self.note)
        unique_by_position.install()
        trace_listener.listen(self.note, self.raised)
        self._environment(environment)
        builtins.__import__ = self._importing(builtins.__import__)
        logging.Logger.callHandlers = lambda logger, record: self._logged(record)
        self._output = os.memfd_create("printed")
        for standard in (1, 2):
            os.dup2(self._output, standard)
        sys.stdout, sys.stderr = _Stream(self), _Stream(self)
        sys.addaudithook(self._audit)

    def _readers(self) -> Iterable[tuple[Any, Any]]:
        for module, (what, *names) in _READERS.items():
            for name in names:
                function = getattr(module, name)
                yield function, self._heard(function, what)

    def _dates(self) -> dict[type, type]:
        """Classes that read the clock, in the place of which subclasses stand that say so."""
        refuse, day, plain = self.refuse, datetime.date, datetime.datetime

        class Date(datetime.date):
            @classmethod
            def today(cls) -> Any:
                refuse("asks for the time", _getframe(1))
                return day.today()

        class DateTime(datetime.datetime):
            @classmethod
            def now(cls, *args: Any, **kwargs: Any) -> Any:
                refuse("asks for the time", _getframe(1))
                return plain.now(*args, **kwargs)

            today = utcnow = now

        return {day: Date, plain: DateTime}

    def _builtins(self) -> Iterable[tuple[Any, Any]]:
        yield warnings.warn, self._silent("warns")
        yield print, self._silent("prints")
        yield input, self._silent("waits for input")
        yield globals, self._heard(globals, "looks into a namespace")
        yield eval, self._heard(eval, "evaluates text")
        yield exec, self._heard(exec, "executes text")
        yield open, self._heard(open, "opens a file")
        yield dir, self._listing(dir)
        yield vars, self._listing(vars)

    def _heard(self, function: Callable, what: str) -> Callable:
        def heard(*args: Any, **kwargs: Any) -> Any:
            caller = _getframe(1)
            # `inspect` asks for the recursion limit, lest it go on for ever.
            if function is not _RECURSION_LIMIT or not is_of_stdlib(caller.f_code.co_filename):
                self.refuse(what, caller)
            if function in _OF_THE_CALLER:
                return _in_caller(function, _getframe(1), args)
            return function(*args, **kwargs)

        return heard

    def _listing(self, function: Callable) -> Callable:
        """A function in the place of one like `dir`. Names of the user's modules are watched."""

        def listing(*args: Any) -> Any:
            caller = _getframe(1)
            if not args:
                return caller.f_locals if function is vars else sorted(caller.f_locals)
            if isinstance(args[0], torch.Tensor):
                self.note("looks at all attributes of a tensor", caller)
            if isinstance(args[0], types.ModuleType) and not is_users_module(args[0]):
                self.refuse("lists the names of a module", caller)
            return function(*args)

        return listing

    def _silent(self, what: str) -> Callable:
        def silent(*args: Any, **kwargs: Any) -> None:
            self.note(what, _getframe(1))

        return silent

    def _importing(self, original: Callable) -> Callable:
        def importing(
            name: str,
            globals: Any = None,
            locals: Any = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> types.ModuleType:
            # Most are torch's own, thousands in a trace. Functions in C import in the name of
            # whoever calls them, with a list of no names; torch's `is_compiling` asks ours.
            file = globals.get("__file__") if type(globals) is dict else None
            if not (
                (type(file) is str and file.startswith(LIBRARIES))
                or isinstance(fromlist, list)
                or name.partition(".")[0] == "weft"
                or is_watched_import(name, fromlist or (), level, self._watched)
            ):
                caller = _getframe(1)
                if not _is_of_library(caller):
                    self.note(f"imports {name}", caller)
            return original(name, globals, locals, fromlist, level)

        return importing

    def _logged(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("torch.", "weft")):
            self.note("logs", _getframe(1))

    def _audit(self, event: str, args: tuple) -> None:
        if event == "open":
            path = args[0]
            if isinstance(path, str) and not path.endswith(_SOURCES) and not _is_of_python(path):
                self.refuse(f"opens the file {path}", _getframe(1))
        elif event.startswith(_ACTIONS):
            self.refuse(f"does something that cannot be undone, {event}", _getframe(1))


class _Stream(io.TextIOBase):
    """Stands in the place of standard output and error."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def write(self, text: str) -> int:
        frame = _getframe(1)
        # The default filter prints a warning once a line: the eager call has printed it.
        if frame.f_globals.get("__name__") != "warnings":
            self._observer.note("prints", frame)
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
    """Under all the names that Python's modules have for it."""
    for module in (sys.modules[original.__module__], builtins, locale, os, threading, warnings):
        if vars(module).get(original.__name__) is original:
            setattr(module, original.__name__, replacement)


# What torch imports while it traces.
_OF_TRACING = frozenset(
    {"sympy", "mpmath", "networkx", "jinja2", "numpy", "typing_extensions", "weft"}
)


def _is_of_python(path: str) -> bool:
    return path.startswith((PYTHON, os.path.dirname(torch.__file__), "/proc/", "/sys/", "/dev/"))


def _users(frame: types.FrameType | None) -> str | None:
    """Where code of the user's, or of a library that is not torch's, does something, with its own
    hands or through the standard library; None if it is not such code, as in imports.
    """
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return None
        top = name.partition(".")[0]
        if top == "torch" and name not in _RELAYS:
            return _place(frame) if name.startswith("torch.testing.") else None
        if top in _OF_TRACING:
            return None
        of_python = is_of_stdlib(file)
        made = file.startswith("<") and name != "__main__"
        if not (of_python or made or name in _RELAYS):
            return None if _is_in_kernel(frame) else _place(frame)
        frame = frame.f_back
    return None


def _is_in_kernel(frame: types.FrameType | None) -> bool:
    """Whether it is that of an op of the user's, which every call of the program runs."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(("torch._ops", "torch._library", "torch.library")):
            return True
        if name.startswith("weft."):
            return False
        frame = frame.f_back
    return False


def _is_of_fakes(frame: types.FrameType) -> bool:
    """Whether it is that of torch's own tracing."""
    name = str(frame.f_globals.get("__name__"))
    return name.startswith("torch.") and name != "torch.utils._contextlib"


def _place(frame: types.FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_of_library(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(LIBRARIES)
