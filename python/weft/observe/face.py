# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands behind a callable whose programs are captured by observing the interpreter.

A call that no program stands for runs in the interpreter, observed. Its program is published if a
replay of it gives the same result at once, bit by bit; else the reason is kept and the call has
been an eager one.
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
from weft.observe import dump
from weft.observe.backends import Backend
from weft.observe.declared import declare_all, declare_imported
from weft.observe.graph import LoggedGraph, graph_of
from weft.observe.replays import (
    ObservedCall,
    Surroundings,
    fault_of_compiled,
    fault_of_graph,
    fault_of_replay,
    registers_of,
)

if TYPE_CHECKING:
    from weft.observe.parts import Parts

# Programs of a callable, and captures in a row that published none, after which calls run eagerly.
MOST_PROGRAMS = 8
MOST_FAILURES = 4
# Captures in a row whose programs answered no call: something changes at each. If it is the call
# itself that changes it, MOST_PROGRAMS: of a longer cycle none is left when its turn comes.
MOST_BARREN = 16
# Places that are known for having something else in each call.
MOST_SITES = 256
# Such captures after which programs are no longer compiled.
MOST_COMPILED = 2


class Refused(BaseException):
    """Breaks off a call that is to be a program or nothing. No error that a program handles."""


class Observed(Face):
    """The face of a callable whose calls are observed. backend: what compiles its programs; None,
    if torch's own operations run them."""

    def __init__(
        self,
        original: Callable[..., Any],
        settings: dict[str, Any],
        backend: Backend | None = None,
    ) -> None:
        super().__init__(original, settings)
        self._backend = backend
        self._parts: Parts | None = None  # of calls that nobody observes any more
        # Why torch's own operations run programs that were to be compiled.
        self.not_compiled: Counter[str] = Counter()
        # What the user calls, which tries the programs before it asks here.
        self.answering: Callable[[], _core.Callable | None] = lambda: None
        # Whether the last observation ended at what is not declared, as another one would.
        self.met_unknown = False
        self._programs: list[Published] = []
        self._sites: dict[tuple, None] = {}  # of `_moving_sites`
        self._last_failure = ""
        self._changing = ""  # what the latest program assumed and the next call did not meet
        self.published_at = 0.0  # time of the latest program, in seconds of time.perf_counter
        self._hits_before = 0
        self._published = self._captures = self._hits = self._misses = self._failures = (
            self._barren
        ) = self._outdated = 0
        self._capture_seconds = self._compile_seconds = self._verify_seconds = 0.0

    def callable(self) -> _core.Callable:
        made = super().callable()
        self.answering = weakref.ref(made)
        return made

    # What the C++ callable asks for.

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
        """What a program gives for the call, if one stands for it. One of a path that the call's
        data does not take leaves everything as it was."""
        if not self._programs or _core.interposition_active():
            return None
        for number, entry in enumerate(self._programs):
            if not entry.around.hold():
                continue
            generators = torch.get_rng_state() if entry.random else None
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
        """Why the call is not to be observed."""
        if _core.interposition_active():
            return "a mode, a transform or a tracer of torch is active"
        if self._failures >= MOST_FAILURES:
            return self._last_failure
        if self.is_barren():
            return f"what it depends on changes at each call: {self._changing}"
        return None

    def is_barren(self) -> bool:
        """Whether programs are made that answer no call."""
        return self._barren >= MOST_BARREN or self._outdated >= MOST_PROGRAMS

    def has_given_up(self) -> bool:
        """Whether no program will ever answer a call again."""
        hopeless = self._failures >= MOST_FAILURES or self.is_barren()
        return hopeless and not self._programs

    def program_of(self, args: tuple, kwargs: dict[str, Any]) -> Published | None:
        """That stands for the call, its data left aside."""
        for each in self._programs:
            if each.around.hold() and each.program.why_miss(args, kwargs) is None:
                return each
        return None

    def capture(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, str | None]:
        """What the call gives, and why no program came of observing it. Raises: Refused, if the
        user wants a program or nothing, and the call has done nothing yet."""
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
        start = time.perf_counter()
        refusal = Refused if self.settings.get("fullgraph") else None
        sites = self._moving_sites()
        try:
            value, program = _capture.observe(self.original, args, kwargs, refusal, sites)
        except Refused as refused:
            around.restore()
            torch.set_rng_state(generators)
            self.met_unknown = True
            self._fail(*refused.args)
            raise
        finally:
            self._capture_seconds += time.perf_counter() - start
        reason, location = program.reason, program.location
        if reason is None:
            start = time.perf_counter()
            call = ObservedCall(args, kwargs, program.take_snapshots(), generators, value)
            reason = self._fault(program, around, call)
            self._verify_seconds += time.perf_counter() - start
        self.met_unknown = program.reason is not None
        if reason is not None:
            self._sites.clear()  # as inputs their objects may be what nobody knows
            return value, self._fail(reason, location)
        self._failures = 0
        self._publish(around, program, call)
        if (changed := program.why_miss(args, kwargs)) is not None:
            self._changing = changed
            self._outdated += 1
        return value, None

    def watch(self, *args: Any, **kwargs: Any) -> Any:
        """What a call gives of which no program is wanted. What it has set, the next one may set
        again, and takes for an input."""
        if self.hopeless() is not None:
            return self.original(*args, **kwargs)
        declare_all()
        declare_imported()
        value, program = _capture.observe(self.original, args, kwargs)
        if program.reason is None:
            self._sites |= dict.fromkeys(program.moved())
        return value

    def _moving_sites(self) -> list[tuple]:
        """Places in what programs hold that have something else by now than when it was captured:
        from now on they are inputs."""
        for each in self._programs:
            self._sites |= dict.fromkeys(each.program.moved())
        while len(self._sites) > MOST_SITES:  # the oldest
            del self._sites[next(iter(self._sites))]
        return list(self._sites)

    def _fail(self, reason: str, location: str | None) -> str:
        self._failures += 1
        self._last_failure = f"{reason} ({location})" if location else reason
        return self._last_failure

    def _resized(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any] | None:
        """What the log of a call with tensors of other sizes gives, if nothing but they differs,
        and nothing that was observed depends on them: no code of the user's runs."""
        for each in self._programs:
            if not each.around.hold():
                continue
            around, generators = Surroundings(), torch.get_rng_state()
            found = each.program.resized(args, kwargs)
            if found is not None:
                value, program = found
                snapshots = program.take_snapshots()
                call = ObservedCall(args, kwargs, snapshots, generators, value)
                self._publish(around, program, call)
                return (value,)
            around.restore()
            torch.set_rng_state(generators)
        return None

    def _publish(self, around: Surroundings, program: Any, call: ObservedCall) -> None:
        random = not torch.equal(call.generators, torch.get_rng_state())
        published = Published(around, program, random)
        self._compile(published, call)
        self._published += 1
        self.published_at = time.perf_counter()
        self._programs.insert(0, published)
        del self._programs[MOST_PROGRAMS:]
        dump.leave(program, self._published)
        self._show()

    def _show(self) -> None:
        """Programs that draw no random numbers are called without a Python frame: what such a one
        leaves, if it is broken off, nobody has to put back."""
        callable_ = self.answering()
        if callable_ is None:
            return
        ready = [each for each in self._programs if not each.random]
        for each in ready:
            each.program.arm(each.around.settings(), each.around.restore)
        callable_._observe([each.program for each in ready])

    def _answered(self) -> int:
        """Calls that programs have answered, beside those that C++ counts for others."""
        callable_ = self.answering()
        return self._hits + (0 if callable_ is None else callable_._hits())

    def _compile(self, published: Published, call: ObservedCall) -> None:
        """What is not compiled, torch's own operations run."""
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
                published.compiled = self._backend.attach(published.program, call, graph)
                tolerance = math.inf if published.random else self._backend.tolerance
                fault = fault_of_compiled(published.program, call, tolerance)
                if fault is not None:
                    raise errors.CaptureError(f"the compiled program differs: {fault}")
        except Exception as error:  # a backend raises what it likes
            published.program.detach()
            published.compiled = None
            own = isinstance(error, errors.CaptureError)
            published.not_compiled = str(error) if own else f"{type(error).__name__}: {error}"
            self.not_compiled[published.not_compiled] += 1
        self._compile_seconds += time.perf_counter() - start - (self._verify_seconds - verified)

    def _graph(self, program: Any, call: ObservedCall) -> LoggedGraph:
        """Of the program's log, which gives what the call gave. Raises: errors.CaptureError."""
        with call.as_ahead(program):
            graph = graph_of(program, registers_of(program, call))
        if config.verify != "off" and not graph.is_empty():
            start = time.perf_counter()
            fault = fault_of_graph(program, graph, call)
            self._verify_seconds += time.perf_counter() - start
            if fault is not None:
                raise errors.CaptureError(f"the graph of the call differs: {fault}")
        return graph

    def _fault(self, program: Any, around: Surroundings, call: ObservedCall) -> str | None:
        """Why the program cannot be published, if it cannot."""
        if not around.hold():
            return "changes a setting of torch"
        if config.verify == "off":
            return None
        return fault_of_replay(program, call)

    def declined(self, core: Any, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._eager(reason, args, kwargs)

    def _eager(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._refuse(reason)
        return self.in_parts(self.has_given_up())(*args, **kwargs)

    def in_parts(self, given_up: bool) -> Callable[..., Any]:
        """What runs calls that no program stands for: once they are no longer observed, as
        `given_up` says, it runs programs of the modules and functions that they call."""
        if self._parts is None and given_up:
            from weft.observe.parts import Parts

            self._parts = Parts(self.original, self.settings, self._backend)
        return self.original if self._parts is None else self._parts.call

    def _refuse(self, reason: str) -> None:
        if self.settings.get("fullgraph"):
            raise errors.NotCompiledError(reason)
        first = not self.eager_reasons
        self.eager_reasons[reason] += 1
        if first:
            text = f"PyTorch runs this call: {reason}"
            warnings.warn(text, errors.WeftWarning, stacklevel=4)

    # What the user asks for.

    def reset(self) -> None:
        super().reset()
        self._programs.clear()
        self.not_compiled.clear()
        self._sites.clear()
        self._parts = None
        self._show()
        self._failures = self._barren = self._outdated = 0

    def stats(self) -> dict[str, Any]:
        """graphs: programs published. breaks: why calls ran eagerly, each reason once. replayed:
        why PyTorch's own operations run programs that were to be compiled, with the line of the
        user's, each reason once. hits: calls that a program answered. misses: calls that none was
        ready for. captures: calls observed.
        capture_seconds: in observed calls, which give the user their results. verify_seconds: in
        replays of logs, and runs of their graphs, that were compared with them. compile_seconds: of
        the backend, comparisons of what it made among them. parts: if there are any, `parts` says
        what."""
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
        """Of calls that run in parts, which modules and functions had programs, and how often these
        answered: an entry of the statistics, if there are any."""
        hits = {} if self._parts is None else self._parts.hits()
        return {"parts": hits} if hits else {}

    def guards(self) -> list[str]:
        """What the latest program assumes, in the program's own terms: `K == 2.0`,
        `self._modules['0'] is …`. Raises: errors.Error, if there is none."""
        return self._latest().guards()

    def log(self) -> list[str]:
        """The operations of the latest program, each with the user's line. Raises: errors.Error,
        if there is none."""
        return self._latest().log()

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The guard of the latest program that this call does not meet; None if it meets all.
        Raises: errors.Error, if there is no program."""
        if self._programs and not self._programs[0].around.hold():
            return "a setting of torch has changed"
        return self._latest().why_miss(args, kwargs)

    def report(self, file: TextIO | None = None) -> None:
        """Prints the log of each program, and why calls ran eagerly."""
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


@dataclass
class Published:
    """A program, what of torch it was made under, whether it draws random numbers, and what the
    backend made of it, or why not."""

    around: Surroundings
    program: Any
    random: bool
    compiled: Any = None
    not_compiled: str | None = None
