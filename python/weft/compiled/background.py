# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled beside the calls, which PyTorch runs meanwhile.

One thread of the process takes requests in turn. Tracing, compiling and the comparison with
PyTorch run in forked children of a lower priority; the thread itself waits for them, and enters
the finished program between two calls. A call waits for none of it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from weft import _core, config, errors
from weft.capture import isolated
from weft.capture.isolated import Abandoned
from weft.compiled.argument_copies import as_it_is
from weft.compiled.programs import Programs
from weft.compiled.range_verification import begin, conclude, differs_at_ends
from weft.compiled.ranges import RangeProgram
from weft.compiled.requests import Request
from weft.compiled.specialize import Specialized, declined
from weft.compiled.verification import Check, Finding, Verdict
from weft.compiled.verification_records import Verified
from weft.frontend.philox import PhiloxDraws

if TYPE_CHECKING:
    from weft.compiled.compiled import Compiled

_MOST_WAITING = 64  # requests of the process; beyond them a call is not noted
# Half of what a call of PyTorch's needs on the same processor goes to it for each 3 more. At the
# largest, 19, it gets a hundredth of a processor that others are busy on, and minutes go by until
# there is a program; so it gets a quarter, which calls on an idle machine do not notice.
_NICENESS = 5
_AUTOCAST_DEVICES = ("cpu", "cuda")


class ThreadState:
    """torch's settings of the calling thread, for another one."""

    def __init__(self) -> None:
        self._inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()
        self._autocast = _autocast()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        before = _autocast()
        with torch.inference_mode(self._inference), torch.set_grad_enabled(self._grad):
            _set_autocast(self._autocast)
            try:
                yield
            finally:
                _set_autocast(before)


def _autocast() -> tuple:
    devices = [
        (each, torch.is_autocast_enabled(each), torch.get_autocast_dtype(each))
        for each in _AUTOCAST_DEVICES
    ]
    return torch.is_autocast_cache_enabled(), devices


def _set_autocast(state: tuple) -> None:
    cached, devices = state
    torch.set_autocast_cache_enabled(cached)
    for device, enabled, dtype in devices:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


@dataclass
class Job:
    """A request and who has made it. pays: of a call that a program for a range stands for, whether
    the program made for it is to take the place of that. pattern: what calls of its kind match."""

    face: weakref.ref[Compiled]
    request: Request
    pays: Callable[[Specialized], bool] | None = None
    thread_state: ThreadState = field(default_factory=ThreadState)

    def __post_init__(self) -> None:
        signature = self.request.signature
        self.pattern = _core.Specialization(
            signature.arguments, signature.names, signature.examples
        )

    def stands_for(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        return self.request.environment.core.holds() and self.pattern.matches(args, kwargs)

    def answers(self, request: Request) -> bool:
        return (
            self.request.environment is request.environment
            and self.request.gradients == request.gradients
            and self.pattern.matches(request.args, request.kwargs)
        )

    def run(self, stop: Callable[[], bool], niceness: int) -> str | None:
        """Compiles the program and enters it; why PyTorch runs such calls, if it has to.

        stop: whether nobody wants it any more. niceness: of the processes.
        Raises: Abandoned, once that is so.
        """
        face = self.face()
        if face is None:
            return "its callable is gone"
        programs, original = face.programs, face.original
        del face  # the user may let go of it meanwhile
        with self.thread_state.entered(), isolated.manner(stop, niceness):
            if self._has_range(programs, original):
                return None
            made = self._made(programs, original)
            if self.pays is not None:
                made.is_of_range = True
                if made.reason is not None or not made.verified or not self.pays(made):
                    return None
            programs.enter_later(self.request, made)
            return made.reason

    def _has_range(self, programs: Programs, original: Callable[..., Any]) -> bool:
        """Whether a program for a range of sizes stands for the call, made now where it can be."""
        request = self.request
        if not request.wanted or config.verify == "always":
            return False
        if programs.find_range(request.args, request.kwargs) is not None:
            return True
        if not request.environment.core.state_holds():
            return False
        program = programs.ranges.make(request, apart=True)
        if program is None:
            return False
        reason = None
        program.exclude_ones()  # nobody tells this process of one that differs
        if config.verify == "first":
            try:
                reason = isolated.call_isolated(
                    lambda: _range_differs(programs, original, program, request), {}
                )
            except Abandoned:
                raise
            except Exception as error:  # it costs speed, and not the thread that compiles
                reason = f"it cannot be compared: {type(error).__name__}: {error}"
        if reason is None:
            programs.enter_range(request, program)
        else:
            programs.ranges.decline(request, reason)
        return reason is None

    def _made(self, programs: Programs, original: Callable[..., Any]) -> Specialized:
        request = self.request
        if not request.environment.core.state_holds():
            reason = "torch's settings of its thread cannot be those of the compiling one"
            return declined(request.signature, errors.CaptureError(reason))
        made = programs.compile(request, apart=True)
        # Gradients are compared on the first call, whose graph is freed with what it returns.
        if made.verified or made.training is not None or config.verify != "first":
            return made
        try:
            finding = isolated.call_isolated(
                lambda: _compare(programs, original, made, request), {}
            )
        except Abandoned:
            raise
        except (
            Exception
        ):  # PyTorch's own, for a state of now, among others; the first call finds out
            return made
        if finding.verdict is Verdict.SAME:
            record = Verified.of(made, finding.layouts)
            record.apply(made)
            record.save()
        return made


def _compare(
    programs: Programs, original: Callable[..., Any], made: Specialized, request: Request
) -> Finding:
    """Compares the program with PyTorch, for a process in which nobody sees what the call does."""
    args, kwargs = request.args, request.kwargs
    check = Check(made, request.signature, request.state, args, kwargs)

    def eager() -> Any:
        philox = programs.capture.rng == "philox" and made.draws
        with PhiloxDraws() if philox else contextlib.nullcontext():
            return original(*args, **kwargs)

    return check.conclude(eager(), lambda: programs.change_of(request.state), eager)


def _range_differs(
    programs: Programs, original: Callable[..., Any], program: RangeProgram, request: Request
) -> str | None:
    """Where the program's results differ from PyTorch's, None if they agree; for a process in which
    nobody sees what the call does."""
    check = begin(request, program)
    value = original(*request.args, **request.kwargs)
    reason = conclude(check, programs, request, value, original)
    return reason or differs_at_ends(programs, original, request, program, check.call)


class _Compiler:
    """The thread, which lives as long as there are requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._closing = False

    def submit(self, job: Job, programs: Programs) -> None:
        with self._changed:
            if self._closing or len(self._waiting) >= _MOST_WAITING:
                return
            # What the call did and undid in dicts makes guards fail, and is no other state.
            if any(each.answers(job.request) for each in programs.pending):
                return
            programs.pending = (*programs.pending, job)
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="weft", daemon=True)
                self._thread.start()

    def wait(self, programs: Programs, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not programs.pending, timeout)

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._run(job)

    def _next(self) -> Job | None:
        with self._changed:
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            return None

    def _run(self, job: Job) -> None:
        face = job.face
        found = face()
        programs = None if found is None else found.programs
        del found
        try:
            job.run(lambda: self._closing or face() is None, _NICENESS)
        except Abandoned:
            return
        finally:
            if programs is not None:
                with self._changed:
                    programs.pending = tuple(each for each in programs.pending if each is not job)
                    self._changed.notify_all()


_compiler = _Compiler()


def submit(
    face: Compiled, request: Request, pays: Callable[[Specialized], bool] | None = None
) -> None:
    """Has the program of a call compiled, unless too many wait already. pays: as of `Job`."""
    # The call may write to its arguments before it is compared, as to a cache that is full then.
    if (kept := as_it_is(request)) is not None:
        _compiler.submit(Job(weakref.ref(face), kept, pays), face.programs)


def is_pending(programs: Programs, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a program that stands for the call is being compiled, or waits to be."""
    return any(job.stands_for(args, kwargs) for job in programs.pending)


def wait(programs: Programs, timeout: float | None = None) -> bool:
    """Until nothing is pending for `programs`, at most `timeout` seconds; whether that is so."""
    return _compiler.wait(programs, timeout)


def _forget_in_child() -> None:
    """The parent's thread does not exist in a forked child."""
    global _compiler
    _compiler = _Compiler()


os.register_at_fork(after_in_child=_forget_in_child)
# Lest the thread, or a child of it, outlive the interpreter.
atexit.register(lambda: _compiler.close())
