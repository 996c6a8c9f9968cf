# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles programs in the background, while PyTorch runs the calls.

One thread of the process takes requests in turn. Tracing, compiling and the comparison with PyTorch
run in forked children with lower priority; the thread itself waits for them, and enters the
finished program between two calls. No call waits for any of this.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft import _core, config, errors
from weft.capture import isolated
from weft.capture.isolated import Abandoned
from weft.capture.thread_state import ThreadState
from weft.compiled.argument_copies import as_it_is
from weft.compiled.programs import Programs
from weft.compiled.range_verification import begin, conclude, differs_at_ends
from weft.compiled.ranges import RangeProgram
from weft.compiled.requests import FillsObject, Request
from weft.compiled.specialize import Specialized, declined
from weft.compiled.verification import Check, Finding, Verdict
from weft.compiled.verification_records import Verified
from weft.frontend.philox import PhiloxDraws

if TYPE_CHECKING:
    from weft.compiled.compiled import Compiled

_MOST_WAITING = 64  # requests of the process; calls beyond them are not noted
# With each 3 more, a process gets half as much of a processor that it shares. With the largest
# value, 19, it would get a hundredth of a busy processor, and a program would take minutes. With
# this value it gets a quarter, which calls on an idle machine do not notice.
_NICENESS = 5


@dataclass
class Job:
    """A request and the object that made it. pays: for a call that a program for a range stands
    for, a function that says whether the new program is to be used instead. pattern: the pattern
    that such calls match."""

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
        """Compiles the program and enters it. Returns why PyTorch runs such calls, if it has to.

        stop: a function that says whether the program is no longer wanted. niceness: of the child
        processes.
        Raises: Abandoned, once it is no longer wanted.
        """
        face = self.face()
        if face is None:
            return "its callable is gone"
        programs, original = face.programs, face.original
        del face  # the user may delete it meanwhile
        with self.thread_state.entered(), isolated.manner(stop, niceness):
            if self._has_range(programs, original):
                return None
            try:
                made = self._made(programs, original)
            except FillsObject:
                self.request.wanted = programs.ranges.wanted(self.request)
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
        """Whether a program for a range of sizes stands for the call. It is made now if
        possible."""
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
        finding = None
        # Whether a size of 1 gives other results is not reported to this process.
        program.exclude_ones()
        if config.verify == "first":
            try:
                finding = isolated.call_isolated(
                    lambda: _range_differs(programs, original, program, request), {}
                )
            except Abandoned:
                raise
            except Exception as error:  # an error costs speed, but must not end the thread
                why = f"it cannot be compared: {type(error).__name__}: {error}"
                finding = Finding(Verdict.DIFFERENT, why)
        if finding is None:
            programs.enter_range(request, program)
        else:
            programs.ranges.refuse(request, finding)
        return finding is None

    def _made(self, programs: Programs, original: Callable[..., Any]) -> Specialized:
        request = self.request
        if not request.environment.core.state_holds():
            reason = "torch's settings of its thread cannot be those of the compiling one"
            return declined(request.signature, errors.CaptureError(reason))
        made = programs.compile(request, apart=True)
        # Gradients are compared in the first call, whose graph is freed with its result.
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
    """Compares the program with PyTorch, in a process where the call's effects are not seen."""
    args, kwargs = request.args, request.kwargs
    check = Check(made, request.signature, request.state, args, kwargs)

    def eager() -> Any:
        philox = programs.capture.rng == "philox" and made.draws
        with PhiloxDraws() if philox else contextlib.nullcontext():
            return original(*args, **kwargs)

    return check.conclude(eager(), lambda: programs.change_of(request.state), eager)


def _range_differs(
    programs: Programs, original: Callable[..., Any], program: RangeProgram, request: Request
) -> Finding | None:
    """Where the program's results differ from PyTorch's, or None; in a process where the call's
    effects are not seen."""
    check = begin(request, program)
    value = original(*request.args, **request.kwargs)
    finding = conclude(check, programs, request, value, original)
    return finding or differs_at_ends(programs, original, request, program, check.call)


class _Compiler:
    """The thread that compiles, which lives as long as there are requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._closing = False

    def submit(self, job: Job, programs: Programs) -> None:
        with self._changed:
            if self._closing or len(self._waiting) >= _MOST_WAITING:
                return
            # Changes of dicts that the call took back make guards fail, but are not another state.
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
    """Requests the program of a call, unless too many requests wait already. pays: as in `Job`."""
    # The call may change its arguments before the comparison, for example fill a cache.
    if (kept := as_it_is(request)) is not None:
        _compiler.submit(Job(weakref.ref(face), kept, pays), face.programs)


def is_pending(programs: Programs, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a program that stands for the call is being compiled, or waits to be."""
    return any(job.stands_for(args, kwargs) for job in programs.pending)


def wait(programs: Programs, timeout: float | None = None) -> bool:
    """Waits until nothing is pending for `programs`, at most `timeout` seconds. Returns whether
    nothing is pending."""
    return _compiler.wait(programs, timeout)


def _forget_in_child() -> None:
    """Forgets the parent's thread, which does not exist in a forked child."""
    global _compiler
    _compiler = _Compiler()


os.register_at_fork(after_in_child=_forget_in_child)
# The thread, or a child of it, must not outlive the interpreter.
atexit.register(lambda: _compiler.close())
