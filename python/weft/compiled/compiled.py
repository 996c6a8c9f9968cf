# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The object behind a compiled callable or module.

The callable is C++ and answers every call that one of its programs stands for. `Compiled` is asked
about other calls: it compiles a program for them, or finds the reason why PyTorch has to run them.
PyTorch runs a program's first call too, and the program is published if it has reproduced that call
(verification.py).
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import Options
from weft.capture import isolated
from weft.capture.given import Given
from weft.capture.signature import Declined
from weft.capture.tracing import Tracing
from weft.compiled import background, checkpoints, transforms
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
from weft.compiled.inspected import Inspected
from weft.compiled.programs import Programs
from weft.compiled.range_verification import begin, conclude, differs_at_ends, in_eager
from weft.compiled.ranges import RangeProgram
from weft.compiled.requests import FillsObject, Found, Request, records_gradients
from weft.compiled.sizes import Sizes
from weft.compiled.specialize import Specialized
from weft.compiled.user_frames import frames_to_user, without_frames

_ADVICE = "PyTorch runs this call: {reason}; weft.report() lists such calls from now on"
_WATCHED = "anomaly mode looks for the operation whose gradient is no number"


class Compiled(Inspected):
    """The object behind a callable whose programs are traced and compiled."""

    def __init__(
        self,
        original: Callable[..., Any],
        capture: Tracing | Given,
        options: Options,
        settings: dict[str, Any],
    ) -> None:
        self.options = options
        sizes = None
        if isinstance(capture, Tracing):
            invariant = bool(settings.get("batch_invariant"))
            sizes = Sizes(settings.get("shapes"), original, invariant)
        programs = Programs(capture, options, sizes, bool(settings.get("automatic")))
        super().__init__(original, settings, programs)
        # Makes the first call of all, which sets up what later calls find.
        self._first_of_all = original
        self._is_told = False  # whether the user has been told that PyTorch runs calls

    def callable(self) -> _core.Callable:
        made = super().callable()
        self.programs.callable = weakref.ref(made)
        return made

    # Called by the C++ callable.

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if torch._C._are_functorch_transforms_active():
            return self._transformed(args, kwargs)
        if torch.is_anomaly_enabled() and records_gradients():
            return self._failed(errors.CaptureError(_WATCHED), args, kwargs)
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
        """Whether a program computes each row of such a batch separately. It is made now if there
        is none."""
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
        """Whether the program could run the call, whose arguments are padded, and what it returned.
        A program for a range writes nothing, so that PyTorch can run a call that it refuses, and
        report errors."""
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
        """PyTorch's result for a call for which the program has been made. The program is entered
        if it reproduces that result, and calls at both ends of its range."""
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
        finding = conclude(check, self.programs, request, value, original)
        if finding is None:
            finding = differs_at_ends(self.programs, original, request, program, check.call)
        if finding is None:
            self.programs.enter_range(request, program)
            if self.settings.get("batch_invariant") and not check.call.objects:
                found = self._find_range(args, kwargs)
                ran, own = self._run_range(*found) if found else (False, None)
                value = own if ran else value
        else:
            self.programs.ranges.refuse(request, finding)
        self.programs.totals.verify_seconds += time.perf_counter() - start
        return value

    def _find(
        self, args: tuple, kwargs: dict[str, Any], for_sizes: bool = True
    ) -> Found | Request | Declined | tuple[Request, RangeProgram]:
        """What is to run the call, or why PyTorch has to. The reason is returned and not raised:
        while an exception is handled it would become the context of exceptions that the user's own
        code raises."""
        try:
            with checkpoints.nothing_counted():
                return self._looked_up(args, kwargs, for_sizes)
        except errors.SizeError:
            raise
        except Declined as why:
            return why.with_traceback(None)
        # An object of the user's that cannot be examined, or a fault of the compiler.
        except Exception as error:
            return Declined(f"the state cannot be read: {type(error).__name__}: {error}")

    def _looked_up(
        self, args: tuple, kwargs: dict[str, Any], for_sizes: bool
    ) -> Found | Request | tuple[Request, RangeProgram]:
        """Finds what is to run the call. Raises: Declined; errors.SizeError; any error of the
        user's objects."""
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
            try:
                return self.programs.entered(found)
            except FillsObject:
                return self._looked_up(args, kwargs, for_sizes)

    def _first_call(self, found: Found, args: tuple, kwargs: dict[str, Any]) -> Any:
        return FirstCall(self.programs, self.original, self._keep_away, found, args, kwargs).run()

    def declined(
        self, core: _core.Specialization, reason: str, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """Runs a call that its program could not run, before anything has been written."""
        if isolated.in_child():
            return self.original(*args, **kwargs)
        if reason:
            return self._failed(errors.CaptureError(without_frames(reason)), args, kwargs)
        why = next(each.why_not() for each in self.programs.all() if each.core is core)
        return self._eager(why, args, kwargs)

    often = make_own_program

    def reset(self) -> None:
        super().reset()
        self._is_told = False
        self.programs.reset()

    # Calls that PyTorch runs.

    def _declined(self, why: Declined, args: tuple, kwargs: dict[str, Any]) -> Any:
        programs = self.programs
        if why.type is not None and why.type not in programs.refused_types:
            programs.refused_types = (*programs.refused_types, why.type)
        return self._eager(why, args, kwargs)

    def _eager(self, why: errors.CaptureError, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a call for which there is no program."""
        return self._failed(why, args, kwargs)

    def _failed(self, why: errors.CaptureError, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a call that its program could not run."""
        self._refuse(why)
        return self.original(*args, **kwargs)

    def _keep_away(self, why: errors.CaptureError) -> None:
        """Notes that a program is not published. Raises: errors.NotCompiledError, as `_refuse`."""
        self._refuse(why)

    def _refuse(self, why: errors.CaptureError) -> None:
        """Raises: errors.NotCompiledError, if the user asked for errors with `fullgraph`."""
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
        """Whether calls that cannot be traced need not come to this object again."""
        return True
