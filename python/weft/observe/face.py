# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The object behind a callable whose programs are captured by observing the interpreter.

A call for which there is no program runs in the interpreter and is observed. Its program is
published if an immediate replay gives the same result, bit by bit; otherwise the reason is kept,
and the call has been run as in eager execution.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import torch

from weft import _capture, _core, config, errors
from weft.capture.callable_face import Face
from weft.capture.signature import Declined
from weft.observe import dump, other_threads
from weft.observe.backends import Backend
from weft.observe.declared import declare_all, declare_imported
from weft.observe.graph import LoggedGraph, graph_of
from weft.observe.other_threads import CALLS
from weft.observe.replays import (
    ObservedCall,
    Replay,
    Surroundings,
    fault_of_compiled,
    fault_of_graph,
    replay,
)

if TYPE_CHECKING:
    from weft.observe.parts import Parts

# The most programs of a callable, and the most captures in a row that published none; after that
# calls run in eager mode.
MOST_PROGRAMS = 8
MOST_FAILURES = 4
# The most captures in a row whose programs answered no call: something changes at each call. If the
# call itself changes it, the limit is MOST_PROGRAMS, since in a longer cycle each program is gone
# when its turn comes.
MOST_BARREN = 16
# The most places that are known to have another content in each call.
MOST_SITES = 256
# The number of such captures after which programs are no longer compiled.
MOST_COMPILED = 2


class Refused(BaseException):
    """Breaks off a call that has to become a program, or fail. It is not an Exception, so that the
    user's program does not handle it."""


class Observed(Face):
    """The object behind a callable whose calls are observed. backend: what compiles its programs;
    None if torch's own operations run them."""

    def __init__(
        self,
        original: Callable[..., Any],
        settings: dict[str, Any],
        backend: Backend | None = None,
    ) -> None:
        super().__init__(original, settings)
        self._backend = backend
        self._parts: Parts | None = None  # programs for parts of calls that are no longer observed
        # The reasons why torch's own operations run programs that were to be compiled.
        self.not_compiled: Counter[str] = Counter()
        # Gives the callable that the user calls. It tries the programs, then asks this object.
        self.answering: Callable[[], _core.Callable | None] = lambda: None
        # Whether the last observation ended at something undeclared, as another one would.
        self.met_unknown = False
        self._programs: list[Published] = []
        self._sites: dict[tuple, None] = {}  # places by `_moving_sites`
        self._last_failure = ""
        self._changing = ""  # what the latest program assumed and the next call did not fulfil
        self.published_at = 0.0  # the time of the latest program, in seconds of time.perf_counter
        self._hits_before = 0
        # The latest captures, in a row, of calls that fill a cache, as no later call does.
        self._passing = 0
        self._published = self._captures = self._hits = self._misses = self._failures = (
            self._barren
        ) = self._outdated = 0
        self._capture_seconds = self._compile_seconds = self._verify_seconds = 0.0

    def callable(self) -> _core.Callable:
        made = super().callable()
        self.answering = weakref.ref(made)
        return made

    # Called by the C++ callable.

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        found = self.hit(args, kwargs)
        if found is not None:
            return found[0]
        self._misses += 1
        reason = self.hopeless()
        if reason is not None:
            return self._eager(reason, args, kwargs)
        value = None
        try:
            value, reason = self.capture(args, kwargs)
        except Refused:
            reason = self._last_failure
        if reason is not None:
            self._refuse(reason)
        return value

    def hit(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any] | None:
        """The result of a program, if one stands for the call. A program for another path of the
        code, which the call's data does not take, leaves everything unchanged."""
        if not self._programs or _core.interposition_active():
            return None
        for number, entry in enumerate(self._programs):
            if not entry.around.hold():
                continue
            generators = torch.get_rng_state() if entry.random else None
            with CALLS.call():
                found = entry.program.run(args, kwargs)
            if found:
                self._hits += 1
                if number:
                    self._programs.insert(0, self._programs.pop(number))
                result: tuple[Any] = found
                return result
            if found is False:
                entry.around.restore()
                if generators is not None:
                    torch.set_rng_state(generators)
        return None

    def hopeless(self) -> str | None:
        """The reason why the call is not to be observed, or None."""
        if _core.interposition_active():
            return "a mode, a transform or a tracer of torch is active"
        if self._failures >= MOST_FAILURES:
            return self._last_failure
        if self.is_barren():
            return f"what it depends on changes at each call: {self._changing}"
        return None

    def is_barren(self) -> bool:
        """Whether programs are made that answer no calls."""
        return self._barren >= MOST_BARREN or self._outdated >= MOST_PROGRAMS

    def has_given_up(self) -> bool:
        """Whether no program will ever answer a call again."""
        hopeless = self._failures >= MOST_FAILURES or self.is_barren()
        return hopeless and not self._programs

    def program_of(self, args: tuple, kwargs: dict[str, Any]) -> Published | None:
        """The program that stands for the call, apart from conditions on data."""
        for each in self._programs:
            if each.around.hold() and each.program.why_miss(args, kwargs) is None:
                return each
        return None

    def capture(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, str | None]:
        """Observes the call. Returns its result, and why no program was made from it, or None.
        Raises: Refused, if the user wants a program or an error, and the call has not had any
        effect yet."""
        found = self._resized(args, kwargs)
        if found is not None:
            return found[0], None
        around = Surroundings()
        declare_all()
        declare_imported()
        self._captures += 1
        if self._programs:
            self._changing = (
                self._programs[0].program.why_miss(args, kwargs)
                or "a number or what is computed of data"
            )
        hits = self._answered()
        self._barren = 1 if hits != self._hits_before else self._barren + 1
        self._outdated = 0 if hits != self._hits_before else self._outdated
        self._hits_before = hits
        generators = torch.get_rng_state()
        others = CALLS.of_others()
        start = time.perf_counter()
        refusal = Refused if self.settings.get("fullgraph") else None
        sites = self._moving_sites(args, kwargs)
        try:
            with CALLS.call():
                value, program = _capture.observe(self.original, args, kwargs, refusal, sites)
        except Refused as refused:
            around.restore()
            if not other_threads.live() and not torch.equal(generators, torch.get_rng_state()):
                torch.set_rng_state(generators)
            self.met_unknown = True
            self._fail(*refused.args)
            raise
        finally:
            self._capture_seconds += time.perf_counter() - start
        reason, location, passes = program.reason, program.location, program.passes
        self.met_unknown = reason is not None
        if reason is None:
            call = ObservedCall.of(program, args, kwargs, generators, value)
            # Other threads' calls may have changed what this call has changed.
            beside_others = others != (CALLS.of_others()[0], False)
            if beside_others and self.program_of(args, kwargs) is not None:
                reason = "another thread has made a program for such calls"
            else:
                reason = self._published_or_fault(program, around, call)
            passes = reason is not None and beside_others
        if passes and self._passing < MOST_BARREN:
            self._passing += 1
            self._barren -= 1
            return value, None
        if reason is not None:
            self._sites.clear()  # as inputs, their objects might be unknown to the observer
            return value, self._fail(reason, location)
        if (changed := program.why_miss(args, kwargs)) is not None:
            self._changing = changed
            self._outdated += 1
        return value, None

    def _published_or_fault(
        self, program: Any, around: Surroundings, call: ObservedCall
    ) -> str | None:
        start = time.perf_counter()
        found = self._replay(program, around, call)
        self._verify_seconds += time.perf_counter() - start
        if found.fault is None:
            self._failures = self._passing = 0
            self._publish(Published(around, program, found.draws), call)
        return found.fault

    def watch(self, *args: Any, **kwargs: Any) -> Any:
        """Runs a call from which no program is wanted. Places that it has set, and that the next
        call may set again, become inputs."""
        if self.hopeless() is not None:
            return self.original(*args, **kwargs)
        declare_all()
        declare_imported()
        with CALLS.call():
            value, program = _capture.observe(self.original, args, kwargs)
        if program.reason is None:
            self._sites |= dict.fromkeys(program.moved(args, kwargs))
        return value

    def _moving_sites(self, args: tuple, kwargs: dict[str, Any]) -> list[tuple]:
        """The places in objects that programs hold whose content has changed since the capture, and
        the arguments that are other numbers in this call. From now on they are inputs."""
        for each in self._programs:
            self._sites |= dict.fromkeys(each.program.moved(args, kwargs))
        while len(self._sites) > MOST_SITES:  # removes the oldest
            del self._sites[next(iter(self._sites))]
        return list(self._sites)

    def _fail(self, reason: str, location: str | None) -> str:
        self._failures += 1
        self._last_failure = f"{reason} ({location})" if location else reason
        return self._last_failure

    def _resized(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any] | None:
        """The result by the log of a call with tensors of other sizes, if nothing else differs and
        nothing that was observed depends on the sizes. No code of the user's runs."""
        for each in self._programs:
            if not each.around.hold():
                continue
            around, generators = Surroundings(), torch.get_rng_state()
            with CALLS.call():
                found = each.program.resized(args, kwargs)
            if found:
                value, program = found
                call = ObservedCall.of(program, args, kwargs, generators, value)
                self._publish(Published(around, program, each.random), call)
                return (value,)
            if found is False:
                around.restore()
                if each.random:
                    torch.set_rng_state(generators)
        return None

    def _publish(self, published: Published, call: ObservedCall) -> None:
        self._compile(published, call)
        self._published += 1
        self.published_at = time.perf_counter()
        self._programs.insert(0, published)
        del self._programs[MOST_PROGRAMS:]
        dump.leave(published.program, self._published)
        self._show()

    def _show(self) -> None:
        """Lets programs that draw no random numbers be called without a Python frame. If one of
        these is broken off, no state of random numbers has to be put back."""
        callable_ = self.answering()
        if callable_ is None:
            return
        ready = [each for each in self._programs if not each.random]
        for each in ready:
            each.program.arm(each.around.settings(), each.around.restore)
        callable_._observe([each.program for each in ready])

    def _answered(self) -> int:
        """The calls that programs have answered, without those that C++ counts."""
        callable_ = self.answering()
        return self._hits + (0 if callable_ is None else callable_._hits())

    def _compile(self, published: Published, call: ObservedCall) -> None:
        """Compiles a program. If that is not possible, torch's own operations run it."""
        if self._backend is None:
            return
        if self._barren > MOST_COMPILED:
            published.not_compiled = "what it depends on changes at each call"
            self.not_compiled[published.not_compiled] += 1
            return
        start, verified = time.perf_counter(), self._verify_seconds
        try:
            graph = self._graph(published.program, call)
            if not graph.is_empty():
                published.compiled = self._compiled(self._backend, published, call, graph)
        except Exception as error:  # a backend may raise any error
            published.program.detach()
            published.compiled = None
            own = isinstance(error, errors.CaptureError)
            published.not_compiled = str(error) if own else f"{type(error).__name__}: {error}"
            self.not_compiled[published.not_compiled] += 1
        self._compile_seconds += time.perf_counter() - start - (self._verify_seconds - verified)

    def _compiled(
        self, backend: Backend, published: Published, call: ObservedCall, graph: LoggedGraph
    ) -> Any:
        """What runs the operations of the program from now on. Raises: errors.CaptureError, with
        the reason why torch's own operations have to run the program."""
        program, inputs = published.program, graph.arguments(call.registers)
        tolerance = math.inf if published.random else backend.tolerance
        with call.for_compiling(program):
            made = backend.compile(graph, inputs, self.not_compiled)

        def fault() -> str | None:
            with call.as_ahead(program):
                backend.begin(made, inputs)
            graph.attach(program, made)
            return fault_of_compiled(program, call, tolerance)

        found = call.try_out(fault)
        if found is not None:
            raise errors.CaptureError(f"the compiled program differs: {found}")
        backend.accept(made, inputs)
        graph.attach(program, made)
        return made

    def _graph(self, program: Any, call: ObservedCall) -> LoggedGraph:
        """The graph of the program's log, after checking that it gives what the call gave. Raises:
        errors.CaptureError."""
        graph = graph_of(program, call.registers, call.containers_ahead())
        if (call.apart or config.verify != "off") and not graph.is_empty():
            start = time.perf_counter()
            fault = call.try_out(lambda: fault_of_graph(program, graph, call))
            self._verify_seconds += time.perf_counter() - start
            if fault is not None:
                raise errors.CaptureError(f"the graph of the call differs: {fault}")
        return graph

    def _replay(self, program: Any, around: Surroundings, call: ObservedCall) -> Replay:
        """Repeats the call by its program. The fault is why that cannot be published."""
        if not around.hold():
            return Replay("changes a setting of torch")
        if config.verify == "off":
            return Replay(None, call.draws)
        try:
            return call.try_out(lambda: replay(program, call))
        except (Declined, OSError) as why:  # a child is stuck, or there is none
            return Replay(f"it cannot be repeated beside other threads: {why}")

    def declined(self, core: Any, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._eager(reason, args, kwargs)

    def _eager(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._refuse(reason)
        return self.in_parts(self.has_given_up())(*args, **kwargs)

    def in_parts(self, given_up: bool) -> Callable[..., Any]:
        """What runs calls for which there is no program. Once they are no longer observed
        (`given_up`), programs are made of the modules and functions that they call."""
        if self._parts is None and given_up:
            from weft.observe.parts import Parts

            self._parts = Parts(self.original, self.settings, self._backend)
        call = self.original if self._parts is None else self._parts.call
        return call if given_up else _counted(call)

    def _refuse(self, reason: str) -> None:
        if self.settings.get("fullgraph"):
            raise errors.NotCompiledError(reason)
        first = not self.eager_reasons
        self.eager_reasons[reason] += 1
        if first:
            text = f"PyTorch runs this call: {reason}"
            warnings.warn(text, errors.WeftWarning, stacklevel=4)

    # Called by the user.

    def reset(self) -> None:
        super().reset()
        self._programs.clear()
        self.not_compiled.clear()
        self._sites.clear()
        self._parts = None
        self._show()
        self._failures = self._barren = self._outdated = 0

    def stats(self) -> dict[str, Any]:
        """Counts and reasons, by name.

        graphs: programs published. breaks: why calls ran in eager mode, each reason once. replayed:
        why PyTorch's own operations run programs that were to be compiled, with the user's line,
        each reason once. hits: calls that a program answered. misses: calls for which there was no
        program. captures: calls observed. capture_seconds: spent in observed calls, whose results
        the user gets. verify_seconds: spent in replays of logs, and runs of their graphs, that were
        compared with observed calls. compile_seconds: spent in the backend, including comparisons
        of compiled code. parts: the statistics of `parts`, if there are any.
        """
        return {
            "graphs": self._published,
            "breaks": list(self.eager_reasons),
            "replayed": list(self.not_compiled),
            "hits": self._answered(),
            "misses": self._misses,
            "captures": self._captures,
            "capture_seconds": self._capture_seconds,
            "compile_seconds": self._compile_seconds,
            "verify_seconds": self._verify_seconds,
            **self.parts(),
        }

    def parts(self) -> dict[str, Any]:
        """Which modules and functions had programs in calls that run in parts, and how many calls
        these answered: an entry of the statistics, if there are any."""
        hits = {} if self._parts is None else self._parts.hits()
        return {"parts": hits} if hits else {}

    def guards(self) -> list[str]:
        """What the latest program assumes, in the user's terms: `K == 2.0`, `self._modules['0'] is
        …`. Raises: errors.Error, if there is no program."""
        return self._latest().guards()

    def log(self) -> list[str]:
        """The operations of the latest program, each with the user's line. Raises: errors.Error, if
        there is no program."""
        return self._latest().log()

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The assumption of the latest program that this call does not fulfil; None if it fulfils
        all. Raises: errors.Error, if there is no program."""
        if self._programs and not self._programs[0].around.hold():
            return "a setting of torch has changed"
        return self._latest().why_miss(args, kwargs)

    def report(self, file: TextIO | None = None) -> None:
        """Prints the log of each program, and why calls ran in eager mode."""
        file = file or sys.stdout
        for entry in self._programs:
            print("\n".join(entry.program.log()), file=file)
        for reason, count in self.not_compiled.items():
            print(f"PyTorch's operations run {count} programs: {reason}", file=file)
        for reason, count in self.eager_reasons.items():
            print(f"PyTorch ran {count} calls: {reason}", file=file)
        for name, hits in self.parts().get("parts", {}).items():
            print(f"of these, {name} has programs, which answered {hits} calls", file=file)

    def _latest(self) -> Any:
        if not self._programs:
            raise errors.Error("nothing has been captured")
        return self._programs[0].program


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with CALLS.call():
            return function(*args, **kwargs)

    return call


@dataclass
class Published:
    """A program, the settings of torch that it was made under, whether it draws random numbers, and
    the result of the backend, or the reason why there is none."""

    around: Surroundings
    program: Any
    random: bool
    compiled: Any = None
    not_compiled: str | None = None
