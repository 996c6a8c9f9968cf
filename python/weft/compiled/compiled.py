# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands behind a compiled callable or module.

The callable is C++ and answers every call that one of its programs stands for. `Compiled`
is asked about the others: it compiles a program for them, or finds the reason why PyTorch
has to run them. PyTorch runs a program's first call too, and the program is published if it has
reproduced that (verification.py).
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import Options
from weft.artifacts.kernels import kernel_calls
from weft.capture import isolated
from weft.capture.callable_face import Face
from weft.capture.given import Given
from weft.capture.signature import Declined
from weft.capture.tracing import Tracing
from weft.compiled import background, checkpoints, transforms
from weft.compiled.assumptions import Assumptions
from weft.compiled.batch_invariance import (
    MOST_ROWS,
    batch_of,
    first_row,
    in_parts,
    is_row_wise,
    same_first_row,
)
from weft.compiled.first_call import FirstCall
from weft.compiled.frequent_sizes import make_own_program, note_padding, own_program_of
from weft.compiled.graph_text import graph_text
from weft.compiled.lowered import lowered
from weft.compiled.programs import Programs
from weft.compiled.range_verification import begin, conclude, differs_at_ends, in_eager
from weft.compiled.ranges import RangeProgram
from weft.compiled.requests import Found, Request, records_gradients
from weft.compiled.sizes import Sizes
from weft.compiled.specialize import Specialized
from weft.compiled.user_frames import frames_to_user, without_frames
from weft.reporting.explanation import Explanation
from weft.reporting.profile import Profile
from weft.reporting.tables import render

_ADVICE = "PyTorch runs this call: {reason}; weft.report() lists such calls from now on"


class Compiled(Face):
    """The face of a callable whose programs are traced and compiled."""

    def __init__(
        self,
        original: Callable[..., Any],
        capture: Tracing | Given,
        options: Options,
        settings: dict[str, Any],
    ) -> None:
        super().__init__(original, settings)
        self.options = options
        sizes = None
        if isinstance(capture, Tracing):
            invariant = bool(settings.get("batch_invariant"))
            sizes = Sizes(settings.get("shapes"), original, invariant)
        self.programs = Programs(capture, options, sizes, bool(settings.get("automatic")))
        self._first_of_all = original  # makes the call that sets up what the next ones find
        self._is_told = False  # the user, that PyTorch runs calls

    def callable(self) -> _core.Callable:
        made = super().callable()
        self.programs.callable = weakref.ref(made)
        return made

    # What the C++ callable asks for.

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if torch._C._are_functorch_transforms_active():
            return self._transformed(args, kwargs)
        if records_gradients() and config.verify != "always" and not _core.interposition_active():
            region = checkpoints.current()
            again = region is not None and region.again
            trained = self.programs.find_trained(args, kwargs, again)
            if trained is not None:
                return self._run(trained, args, kwargs)
        if self.settings.get("batch_invariant"):
            batch, rows = batch_of(args, kwargs)
            if batch == 1 or batch > MOST_ROWS:
                if self._has_rows(args, kwargs, rows):
                    return in_parts(args, kwargs, rows, batch, self._dispatch)
        if (ranged := self._find_range(args, kwargs)) is not None:
            own = own_program_of(self, *ranged, (args, kwargs))
            if own is not None and own.specialized.verified:
                return self._run(own.specialized, args, kwargs)
            if own is not None:
                return self._first_call(own, args, kwargs)
            ran, value = self._run_range(*ranged)
            return value if ran else self.original(*args, **kwargs)
        self.programs.totals.misses += 1
        if background.is_pending(self.programs, args, kwargs):
            return self._until_compiled(args, kwargs)
        found = self._find(args, kwargs)
        if isinstance(found, tuple):
            return self._first_of_range(*found, args, kwargs)
        if isinstance(found, Request):
            background.submit(self, found)
            return self._until_compiled(args, kwargs)
        if isinstance(found, Declined):
            return self._declined(found, args, kwargs)
        specialized = found.specialized
        if specialized.transient:
            return self._first_of_all(*args, **kwargs)
        if specialized.reason is not None:
            return self._eager(specialized.why_not(), args, kwargs)
        if config.verify == "always" or not specialized.verified:
            return self._first_call(found, args, kwargs)
        return self._run(specialized, args, kwargs)

    def _until_compiled(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if (region := checkpoints.current()) is not None:
            self.programs.pending_in.add(region)
        return self.original(*args, **kwargs)

    def _run(self, specialized: Specialized, args: tuple, kwargs: dict[str, Any]) -> Any:
        if specialized.training is not None:
            region = checkpoints.current()
            if region is not None and region in specialized.eager_in:
                return self.original(*args, **kwargs)
            outcome, value = specialized.training.call(specialized, args, kwargs)
        else:
            outcome, value = specialized.core.call(args, kwargs)
        if not outcome:
            return self._failed(errors.CaptureError(without_frames(value)), args, kwargs)
        self.programs.totals.hits += 1
        self.programs.has_used(specialized)
        return value

    def _transformed(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        outcome = transforms.call(self, args, kwargs)
        if isinstance(outcome, Declined):
            return self._failed(outcome, args, kwargs)
        return self.original(*args, **kwargs) if outcome is None else outcome[0]

    def _has_rows(self, args: tuple, kwargs: dict[str, Any], rows: list[int]) -> bool:
        """Whether a program computes each row of such a batch alone, made now if there is none."""
        twice = first_row(args, kwargs, rows, torch.clone)
        if (found := self._find_range(*twice)) is None:
            self._dispatch(*twice)
            found = self._find_range(*twice)
        if found is None:
            return False
        program = found[0]
        if program.row_wise is None:
            other = self._find_range(*first_row(args, kwargs, rows, torch.zeros_like))
            program.row_wise = is_row_wise(program) and other is not None and same_first_row(
                self._run_range(*found), self._run_range(*other)
            )  # fmt: skip
        return program.row_wise

    def _find_range(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if config.verify == "always" or _core.interposition_active():
            return None
        return self.programs.find_range(args, kwargs)

    def _run_range(self, program: RangeProgram, args: tuple) -> tuple[bool, Any]:
        """Whether the program could run the call, whose arguments are padded; what it returned. It
        writes nothing, so that PyTorch can run what it refuses, and say why."""
        try:
            if program.training is not None:
                start = time.perf_counter()
                ran, value = program.training.call(program.specialized, args, {})
                note_padding(program, args, time.perf_counter() - start)
            else:
                ran, value = program.specialized.core.call(args, {})
        except (errors.Error, IndexError, RuntimeError, ValueError):
            return False, None
        if ran:
            self.programs.totals.hits += 1
            program.core.calls += 1
        return ran, value

    def _first_of_range(
        self, request: Request, program: RangeProgram, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """PyTorch's value of a call for which the program has been made, which is entered if it
        reproduces that, and calls at both ends of its range."""
        original = in_eager(self.programs, program, self.original)
        if config.verify == "off":
            program.exclude_ones()
            self.programs.enter_range(request, program)
            found = self._find_range(args, kwargs)
            ran, value = self._run_range(*found) if found else (False, None)
            return value if ran else original(*args, **kwargs)
        try:
            check = begin(request, program)
        except Exception as error:
            reason = f"it cannot be compared: {type(error).__name__}: {error}"
            self.programs.ranges.decline(request, reason)
            return original(*args, **kwargs)
        value = original(*args, **kwargs)
        start = time.perf_counter()
        reason = conclude(check, self.programs, request, value, original)
        if reason is None:
            reason = differs_at_ends(self.programs, original, request, program, check.call)
        if reason is None:
            self.programs.enter_range(request, program)
            if self.settings.get("batch_invariant") and not check.call.objects:
                found = self._find_range(args, kwargs)
                ran, own = self._run_range(*found) if found else (False, None)
                value = own if ran else value
        else:
            self.programs.ranges.decline(
                request, f"the program does not reproduce eager execution: {reason}"
            )
        self.programs.totals.verify_seconds += time.perf_counter() - start
        return value

    def _find(
        self, args: tuple, kwargs: dict[str, Any], for_sizes: bool = True
    ) -> Found | Request | Declined | tuple[Request, RangeProgram]:
        """What is to run the call, or why PyTorch has to. That is not raised: while it is handled,
        it would become the context of what the user's own code raises."""
        try:
            with checkpoints.nothing_counted():
                return self._looked_up(args, kwargs, for_sizes)
        except errors.SizeError:
            raise
        except Declined as why:
            return why.with_traceback(None)
        except Exception as error:  # an object of the user's that cannot be looked at, or a bug
            return Declined(f"the state cannot be read: {type(error).__name__}: {error}")

    def _looked_up(
        self, args: tuple, kwargs: dict[str, Any], for_sizes: bool
    ) -> Found | Request | tuple[Request, RangeProgram]:
        """Raises: Declined; errors.SizeError; whatever an object of the user's does."""
        if self.settings.get("background"):
            return self.programs.look_up(args, kwargs, for_sizes)
        with self.programs.lock:
            found = self.programs.look_up(args, kwargs, for_sizes)
            if isinstance(found, Found):
                return found
            if found.wanted and config.verify != "always":
                program = self.programs.ranges.make(found)
                if program is not None:
                    return found, program
            return self.programs.entered(found)

    def _first_call(self, found: Found, args: tuple, kwargs: dict[str, Any]) -> Any:
        return FirstCall(self.programs, self.original, self._keep_away, found, args, kwargs).run()

    def declined(
        self, core: _core.Specialization, reason: str, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """A call whose program could not run it; nothing has been written yet."""
        if isolated.in_child():
            return self.original(*args, **kwargs)
        if reason:
            return self._failed(errors.CaptureError(without_frames(reason)), args, kwargs)
        why = next(each.why_not() for each in self.programs.all() if each.core is core)
        return self._eager(why, args, kwargs)

    often = make_own_program

    # What the user asks for.

    def report(self, file: Any = None) -> None:
        """Prints what has been compiled, how fast it runs and what PyTorch ran and why.

        file: where to, by default standard output.
        """
        render(self.programs.with_ranges(), self.eager_reasons, file)

    def wait(self, timeout: float | None = None) -> bool:
        """Until all programs that calls have asked for are compiled (`background=True`), at most
        `timeout` seconds; whether they are."""
        return background.wait(self.programs, timeout)

    def profile(self, *args: Any, repeats: int = 20, **kwargs: Any) -> Profile:
        """Times every kernel of the program for these arguments in `repeats` calls, after one
        that is not counted. They are calls like others: what they write is written each time.

        Raises: errors.Error, if PyTorch has to run the call; errors.ConfigError, if `repeats`
        is less than 1.
        """
        if repeats < 1:
            raise errors.ConfigError(f"expected repeats of at least 1, found {repeats}")
        try:
            found = self.programs.find(args, kwargs)
            if not found.specialized.verified:
                self._first_call(found, args, kwargs)
            specialized = found.specialized
        except Declined as why:  # gradients among the reasons
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
        """What the latest program assumes, in the user's terms: `self.layers[2].p == 0.1`,
        `x.shape == (4, 6)`. Raises: errors.Error, if there is none."""
        return self._newest().texts()

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The assumption of the latest program that this call does not meet; None if it meets all.
        Raises: errors.Error, if there is no program."""
        newest = self._newest()
        if _core.interposition_active():
            return "a mode, a transform or a tracer of torch is active"
        return newest.why_miss(args, kwargs, self.programs.state())

    def _newest(self) -> Assumptions:
        if self.programs.newest is None:
            raise errors.Error("nothing has been compiled yet: call the function first")
        return self.programs.newest

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Makes the call, with all that it does, and says how it and those like it are run."""
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
        """program: one that answers calls."""
        kernels = [each for each in kernel_calls(program.manifest) if each.kind != "torch"]
        host = tuple(
            str(errors.CaptureError(f"{each.target}: {each.reason}", each.location))
            for each in program.lowered.fallbacks
        )
        return Explanation(True, (), program.shapes, len(kernels), host)

    def reset(self) -> None:
        super().reset()
        self._is_told = False
        self.programs.reset()

    def stats(self) -> dict[str, Any]:
        """What has happened so far.

        graphs: programs published. breaks: why calls ran eagerly, each reason once; that a first
        call is run by PyTorch for comparison, and ops that it computes inside a program, are none.
        hits: calls that a program answered. misses: calls that no program was ready for. captures:
        programs traced. capture_seconds, compile_seconds, verify_seconds: spent on tracing, on
        lowering and compiling, and on comparing first calls, PyTorch's own time left out. ranges:
        of each program that stands for a range of sizes the shapes, and how many calls it has
        answered. specialized: why others stand for one size, or for one value of a number, each
        reason once.
        """
        ranges: Counter[str] = Counter()  # with and without gradients
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

        Of one that trains, `joint` and `partitioned` are stages as well; behind them stands the
        forward program, or with role="backward" that one.
        Raises: errors.Error, if nothing has been compiled, or has no backward; errors.CompileError
        for an unknown stage.
        """
        return lowered(self.programs.latest(), stage, role)

    def graph(self, part: str = "forward") -> str:
        """The graph of the latest program, as text: of one that trains "joint", which has its
        gradients as well, or one of the halves that it was cut into, "forward" and "backward"; of
        others "forward" alone.

        Raises: errors.Error, if nothing has been compiled, or it has no gradients;
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
        and each kernel as it is fused; where gradients are recorded, of both halves. Compiles the
        program, if there is none yet, and runs nothing.

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
        """Draws the latest program at a stage into an .svg, .png or .dot: `graph`, `optimized`,
        `kernels` or `linalg`, of one that trains also `joint` and `partitioned`, in two colours.

        options: those of `weft.ir.pictures.visualize`.
        Raises: errors.Error, if nothing has been compiled, or without Graphviz; errors.IRError.
        """
        from weft.ir import Module
        from weft.ir.pictures import visualize

        is_graph = stage in ("joint", "partitioned")
        module = Module.parse(self.ir(stage, role), stage="graph" if is_graph else stage)
        visualize(module, path, **options)

    @property
    def compile_seconds(self) -> dict[str, float]:
        """How long the latest program took: `capture` and `lower` up to the graph, `build`
        from there to the loaded artifact; the compiler's own stages, which are part of
        `build`, unless the artifact was found in the cache.

        Raises: errors.Error, if nothing has been compiled.
        """
        latest = self.programs.latest()
        return {**latest.seconds, **latest.build.seconds}

    @property
    def artifact_path(self) -> Path:
        """Where the latest program's artifact lies."""
        return Path(self.programs.latest().build.artifact.path)

    @property
    def artifact_paths(self) -> list[Path]:
        programs = self.programs.with_ranges()
        return [Path(s.build.artifact.path) for s in programs if s.build is not None]

    # Calls that PyTorch runs.

    def _declined(self, why: Declined, args: tuple, kwargs: dict[str, Any]) -> Any:
        programs = self.programs
        if why.type is not None and why.type not in programs.refused_types:
            programs.refused_types = (*programs.refused_types, why.type)
        return self._eager(why, args, kwargs)

    def _eager(self, why: errors.CaptureError, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call for which there is no program."""
        return self._failed(why, args, kwargs)

    def _failed(self, why: errors.CaptureError, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that its program could not run."""
        self._refuse(why)
        return self.original(*args, **kwargs)

    def _keep_away(self, why: errors.CaptureError) -> None:
        """A program is not published. Raises: errors.NotCompiledError, as `_refuse`."""
        self._refuse(why)

    def _refuse(self, why: errors.CaptureError) -> None:
        """Raises: errors.NotCompiledError, if the user asked for that."""
        if self.settings.get("fullgraph"):
            failed = self.programs.failed_pass
            if failed is not None and str(failed) == why.reason:
                cause = failed.__cause__ or failed
                raise errors.FailedPassError(why.reason, failed.pass_name, failed.path) from cause
            raise errors.NotCompiledError(why.reason, why.location, why.op)
        reason = str(why)
        self.eager_reasons[reason] += 1
        known, self._is_told = self._is_told, True
        if self._is_final():
            self.programs.user_knows = True
            self.programs.arm()
        if not known:
            warnings.warn(_ADVICE.format(reason=reason), errors.WeftWarning, frames_to_user())

    def _is_final(self) -> bool:
        """Whether calls that cannot be traced need not come here again."""
        return True
