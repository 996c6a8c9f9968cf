# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a function in a forked copy of this process, where nobody sees what it does.

Tracing runs the user's code on tensors without values: it fills tables and caches, advances
iterators and draws random numbers, and torch.export changes what the whole process sees. All of it
happens in the child; the parent gets the result alone. An object that both know goes back as a
reference to the parent's.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import io
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from weft import _core
from weft.capture.signature import Declined
from weft.frontend import asking

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SECONDS_WITHOUT_PROGRESS = 1.0
_ATTEMPTS = 3
_TICK = 0.5  # seconds
# How replies begin.
_PORTABLE, _OF_THIS_PROCESS = b"p", b"t"


@dataclass(frozen=True)
class Reply:
    """What a child has sent: a pickle. is_portable: whether it names nothing that only this process
    has, but for objects by their places among `known`."""

    data: bytes
    is_portable: bool

    def value(self, known: dict[int, Any]) -> tuple[bool, Any]:
        """Whether the function raised, and what it raised or returned."""
        reply: tuple[bool, Any] = _Unpickler(io.BytesIO(self.data), known).load()
        return reply


def call_isolated(
    function: Callable[[], Any],
    known: dict[int, Any],
    keep: Callable[[Reply], None] | None = None,
) -> Any:
    """`function()` in a child process.

    known: the parent's objects that the result may refer to, by address; the caller keeps them
    alive. Other tensors come by value. keep: is given what came back.
    Raises: what `function` raised, as it pickles; Declined, if the child died, got stuck again and
    again on a lock that a thread of the parent held at the fork, or made a result that cannot come
    back; Abandoned, see `manner`.
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(_Stuck):
            return _call_once(function, known, keep)
    return _call_once(function, known, keep)


class _Stuck(Declined):
    """The child waits for a thread that it does not have."""


class Abandoned(Exception):
    """Nobody wants the result any more."""


class _Manner(threading.local):
    """How this thread's children run."""

    stop: Callable[[], bool] | None = None
    niceness = 0


_manner = _Manner()


@contextlib.contextmanager
def manner(stop: Callable[[], bool], niceness: int) -> Iterator[None]:
    """Children that this thread makes within have a lower priority, and end early, by the
    exception `Abandoned`, once `stop()`."""
    before = _manner.stop, _manner.niceness
    _manner.stop, _manner.niceness = stop, niceness
    try:
        yield
    finally:
        _manner.stop, _manner.niceness = before


def _call_once(
    function: Callable[[], Any], known: dict[int, Any], keep: Callable[[Reply], None] | None
) -> Any:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_child(function, known, writer)
    os.close(writer)
    try:
        reply = _read_all(reader, pid)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reader)
        status = _reap(pid)
    if not reply:
        raise Declined(f"tracing ended early ({_how_it_ended(status)})")
    found = Reply(reply[1:], reply[:1] == _PORTABLE)
    raised, value = found.value(known)
    if raised:
        raise value
    if keep is not None:
        keep(found)
    return value


def in_child() -> bool:
    """Whether this process is such a child, where callables that are compiled run as they are."""
    return _in_child


def let_programs_run() -> None:
    """Lets programs answer calls in this child, as they do in its parent."""
    global _in_child
    _in_child = False


# --- the child ---

_in_child = False


def _run_child(function: Callable[[], Any], known: dict[int, Any], writer: int) -> None:
    global _in_child
    _in_child = True
    _manner.stop = None
    try:
        os.nice(_manner.niceness)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its child itself
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        faulthandler.disable()  # it writes to a file of its own
        # Finalizers of what the parent owns are not ours to run.
        gc.disable()
        # The threads of PyTorch's pool stayed in the parent.
        asking.threads_of_calls = torch.get_num_threads()
        torch.set_num_threads(1)
        _core.set_num_threads(1)
        try:
            reply = (False, function())
        except Exception as error:
            reply = (True, error)
        _write_all(writer, _pickled(reply, known))
    finally:
        os._exit(0)


def _pickled(reply: tuple[bool, Any], known: dict[int, Any]) -> bytes:
    try:
        return _dumped(reply, known)
    except Exception as error:
        text = str(reply[1]) if reply[0] else f"{type(error).__name__}: {error}"
        return _dumped((True, Declined(f"the traced program cannot be handed over: {text}")), known)


def _dumped(reply: tuple[bool, Any], known: dict[int, Any]) -> bytes:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, known)
    pickler.dump(reply)
    return (_PORTABLE if pickler.is_portable else _OF_THIS_PROCESS) + buffer.getvalue()


def _write_all(writer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(writer, view) :]


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, known: dict[int, Any]) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._known = known
        self._places = {address: place for place, address in enumerate(known)}
        self.is_portable = True

    def persistent_id(self, value: Any) -> Any:
        if self._known.get(id(value)) is value and not isinstance(value, _BY_VALUE):
            return ("object", self._places[id(value)])
        if isinstance(value, type) and not _is_importable(value):
            self.is_portable = False
            return ("type", id(value), value.__module__, value.__qualname__)
        return None


_BY_VALUE = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.Size)


def _is_importable(kind: type) -> bool:
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


# --- the parent ---


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, known: dict[int, Any]) -> None:
        super().__init__(buffer)
        self._known = [*known.values()]

    def persistent_load(self, reference: Any) -> Any:
        kind, address, *names = reference
        if kind == "object":
            return self._known[address]
        for found in _classes(object, set()):
            if id(found) == address and [found.__module__, found.__qualname__] == names:
                return found
        raise Declined(f"the call made the class {'.'.join(names)}")


def _classes(base: type, seen: set[type]) -> Any:
    for kind in type.__subclasses__(base):
        if kind not in seen:
            seen.add(kind)
            yield kind
            yield from _classes(kind, seen)


def _read_all(reader: int, pid: int) -> bytes:
    """Raises: _Stuck, if the child sleeps for a while."""
    parts, progress, since = [], _progress(pid), time.monotonic()
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while True:
        if poll.poll(int(_TICK * 1000)):
            part = os.read(reader, 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
        if _manner.stop is not None and _manner.stop():
            raise Abandoned
        now = _progress(pid)
        if now != progress or now[0] != "S":
            progress, since = now, time.monotonic()
        elif time.monotonic() - since > _SECONDS_WITHOUT_PROGRESS:
            raise _Stuck("tracing waits for something that another thread holds")


def _progress(pid: int) -> tuple[str, ...]:
    """Whether it sleeps ("S"), and the processor time that it has had; where it does, with its own
    children, for which it may wait: a comparison in a child has one of its own."""
    fields = _stat_of(pid)
    if not fields:
        return ("",)
    state = "S" if _sleeps(pid) else "R"
    progress = (state, *fields[11:13])
    if state != "S":
        return progress
    numbers = (int(each) for each in os.listdir("/proc") if each.isdecimal())
    below = [_progress(n) for n in numbers if (of := _stat_of(n)) and of[1] == str(pid)]
    state = "S" if all(each[0] == "S" for each in below) else "R"
    return (state, *progress[1:], *(time for each in below for time in each[1:]))


def _sleeps(pid: int) -> bool:
    """Whether all of its threads do: one may wait for another, which waits for a processor."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return all((_stat_of(f"{pid}/task/{each}") or "R")[0] == "S" for each in threads)


def _stat_of(process: int | str) -> list[str]:
    """From the state on, none of a process or thread that is gone."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []


def _reap(pid: int) -> int | None:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # a handler of the user's waits for all children
        return None


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "nobody knows how"
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit status {os.waitstatus_to_exitcode(status)}"
