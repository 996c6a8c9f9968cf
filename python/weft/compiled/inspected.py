# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user may ask a compiled callable: what has been compiled, what has not and why, how fast
it runs, and its IR."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft import _core, errors
from weft.artifacts.kernels import kernel_calls
from weft.capture.callable_face import Face
from weft.capture.signature import Declined
from weft.compiled import background
from weft.compiled.assumptions import Assumptions
from weft.compiled.graph_text import graph_text
from weft.compiled.lowered import lowered, schedules_of
from weft.compiled.programs import Programs
from weft.compiled.ranges import RangeProgram
from weft.compiled.requests import Found, Request
from weft.compiled.specialize import Specialized
from weft.reporting.explanation import Explanation
from weft.reporting.profile import Profile
from weft.reporting.schedules import ChosenSchedule
from weft.reporting.tables import render


class Inspected(Face):
    """The part of the object behind a callable that answers questions about its `programs`."""

    def __init__(
        self, original: Callable[..., Any], settings: dict[str, Any], programs: Programs
    ) -> None:
        super().__init__(original, settings)
        self.programs = programs

    @abstractmethod
    def _find(
        self, args: tuple, kwargs: dict[str, Any]
    ) -> Found | Request | Declined | tuple[Request, RangeProgram]:
        """What is to run the call, or why PyTorch has to."""

    @abstractmethod
    def _find_range(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The program for a range of sizes that runs the call, with its arguments, or None."""

    @abstractmethod
    def _first_call(self, found: Found, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a call by PyTorch, and compares the result with its program's."""

    def report(self, file: Any = None) -> None:
        """Prints what has been compiled, how fast it runs, and which calls PyTorch ran and why.

        file: where to, by default standard output.
        """
        render(self.programs.with_ranges(), self.eager_reasons, file)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all programs that calls have asked for are compiled (`background=True`), at
        most `timeout` seconds. Returns whether they are."""
        return background.wait(self.programs, timeout)

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
        """Times every kernel of the program for these arguments in `repeats` calls, after one that
        is not timed. These are calls like any others: each of them writes what a call writes.

        Raises: errors.Error, if PyTorch has to run the call; errors.ConfigError, if `repeats` is
        less than 1.
        """
        if repeats < 1:
            raise errors.ConfigError(f"expected repeats of at least 1, found {repeats}")
        try:
            found = self.programs.find(args, kwargs)
            if not found.specialized.verified:
                self._first_call(found, args, kwargs)
            specialized = found.specialized
        except Declined as why:  # for example because of gradients
            raise errors.Error(f"PyTorch runs this call: {why}") from None
        runs = []
        for _ in range(repeats + 1):
            timed, outcome = specialized.core.time(args, kwargs)
            if not timed:
                why_not = errors.CaptureError(specialized.reason or outcome, specialized.location)
                raise errors.Error(f"PyTorch runs this call: {why_not}")
            runs.append(outcome)
        kernels = kernel_calls(specialized.manifest, runs[1:])
        return Profile(specialized.shapes, _core.get_num_threads(), repeats, kernels)

    def guards(self) -> list[str]:
        """What the latest program assumes, in the user's terms: `self.layers[2].p == 0.1`, `x.shape
        == (4, 6)`. Raises: errors.Error, if there is no program."""
        return self._newest().texts()

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The assumption of the latest program that this call does not fulfil; None if it fulfils
        all. Raises: errors.Error, if there is no program."""
        newest = self._newest()
        if _core.interposition_active():
            return "a mode, a transform or a tracer of torch is active"
        return newest.why_miss(args, kwargs, self.programs.state())

    def _newest(self) -> Assumptions:
        if self.programs.newest is None:
            raise errors.Error("nothing has been compiled yet: call the function first")
        return self.programs.newest

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Makes the call, with all its effects, and says how it and similar calls are run."""
        known = Counter(self.eager_reasons)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.WeftWarning)
            self.dispatch(args, kwargs)
        breaks = self.eager_reasons - known
        if breaks:
            return Explanation(False, tuple(breaks))
        if (ranged := self._find_range(args, kwargs)) is not None:
            program = ranged[0].specialized
        else:
            found = self._find(args, kwargs)
            if isinstance(found, Declined):
                return Explanation(False, (str(found),))
            program = (found[1] if isinstance(found, tuple) else found).specialized
        if program.reason is not None:
            return Explanation(False, (str(program.why_not()),))
        return self.explanation_of(program)

    def explanation_of(self, program: Specialized) -> Explanation:
        """The explanation of calls that `program` answers."""
        kernels = [each for each in kernel_calls(program.manifest) if each.kind != "torch"]
        host = tuple(
            str(errors.CaptureError(f"{each.target}: {each.reason}", each.location))
            for each in program.lowered.fallbacks
        )
        return Explanation(True, (), program.shapes, len(kernels), host)

    def stats(self) -> dict[str, Any]:
        """Counts, times and reasons so far.

        graphs: programs published. breaks: why calls ran in eager mode, each reason once; first
        calls, which PyTorch runs for comparison, and ops that PyTorch computes inside a program do
        not count. hits: calls that a program answered. misses: calls for which there was no
        program. captures: programs traced. capture_seconds, compile_seconds, verify_seconds: spent
        on tracing, on lowering and compiling, and on comparing first calls, without PyTorch's own
        time. ranges: for each program that stands for a range of sizes its shapes, and how many
        calls it has answered. specialized: why other programs stand for a single size, or a single
        value of a number, each reason once.
        """
        ranges: Counter[str] = Counter()  # programs with and without gradients are added up
        for each in self.programs.range_programs():
            ranges[each.shapes] += each.calls
        declined = [*self.programs.varying.reasons.values()]
        if self.programs.ranges is not None:
            declined += self.programs.ranges.declined.values()
        totals = vars(self.programs.totals) | {"hits": self.programs.hits()}
        return {
            "graphs": totals.pop("graphs"),
            "breaks": list(self.eager_reasons),
            **totals,
            "ranges": dict(ranges),
            "specialized": list(dict.fromkeys(declined)),
        }

    def ir(self, stage: str = "graph", role: str = "forward") -> str:
        """The IR of the latest program at a stage (`graph` … `llvm`), as text.

        A program that trains also has the stages `joint` and `partitioned`; later stages are the
        forward program's, or with role="backward" the backward's.
        Raises: errors.Error, if nothing has been compiled, or there is no backward;
        errors.CompileError for an unknown stage.
        """
        return lowered(self.programs.latest(), stage, role)

    def schedules(self, role: str = "forward") -> list[ChosenSchedule]:
        """What the compiler has chosen for the contractions of the latest program, over what, and
        the times that it predicts. role: the half of a program that trains.

        Raises: errors.Error, as `ir` does.
        """
        return schedules_of(self.programs.latest(), role)

    def graph(self, part: str = "forward") -> str:
        """The graph of the latest program, as text: for a program that trains "joint", which
        includes its gradients, or one of the halves that it was cut into, "forward" and "backward";
        for other programs only "forward".

        Raises: errors.Error, if nothing has been compiled, or there are no gradients;
        errors.ConfigError for an unknown part.
        """
        parts = ("joint", "forward", "backward")
        if part not in parts:
            raise errors.ConfigError(f"expected one of {', '.join(parts)}, found {part!r}")
        if self.programs.latest().training is not None:
            if part == "joint":
                return self.ir("joint")
            from weft.ir import Module

            return str(Module.parse(self.ir("partitioned"))[part])
        if part != "forward":
            raise errors.Error("the latest program has no gradients")
        return self.ir("graph")

    def graph_for(self, *args: Any, **kwargs: Any) -> str:
        """The optimised graph of the program for these arguments, as text: entries, steps of loops,
        and each kernel with its fused ops; if gradients are recorded, for both halves. The program
        is compiled if there is none yet; nothing is run.

        Raises: errors.Error, if PyTorch has to run the call.
        """
        try:
            specialized = self.programs.find(args, kwargs).specialized
        except Declined as why:
            raise errors.Error(f"PyTorch runs this call: {why}") from None
        build = specialized.build
        if build is None:
            raise errors.Error(f"PyTorch runs this call: {specialized.why_not()}")
        roles = [""] if specialized.training is None else ["forward", "backward"]
        texts = [(role, lowered(specialized, "kernels", role)) for role in roles]
        return graph_text(specialized.shapes, texts)

    def visualize(
        self, path: str | Path, stage: str = "graph", role: str = "forward", **options: Any
    ) -> None:
        """Draws the latest program at a stage to an .svg, .png or .dot file.

        stage: `graph`, `optimized`, `kernels` or `linalg`; for a program that trains also `joint`
        and `partitioned`, in two colours. options: those of `weft.ir.pictures.visualize`.
        Raises: errors.Error, if nothing has been compiled, or Graphviz is missing; errors.IRError.
        """
        from weft.ir import Module
        from weft.ir.pictures import visualize

        is_graph = stage in ("joint", "partitioned")
        module = Module.parse(self.ir(stage, role), stage="graph" if is_graph else stage)
        visualize(module, path, **options)

    @property
    def compile_seconds(self) -> dict[str, float]:
        """The seconds that the latest program took: `capture` and `lower` up to the graph, `build`
        from there to the loaded artifact, and the compiler's own stages, which are part of `build`,
        unless the artifact was in the cache.

        Raises: errors.Error, if nothing has been compiled.
        """
        latest = self.programs.latest()
        return {**latest.seconds, **latest.build.seconds}

    @property
    def artifact_path(self) -> Path:
        """The file of the latest program's artifact. Raises: errors.Error, if nothing has been
        compiled."""
        return Path(self.programs.latest().build.artifact.path)

    @property
    def artifact_paths(self) -> list[Path]:
        programs = self.programs.with_ranges()
        return [Path(s.build.artifact.path) for s in programs if s.build is not None]
