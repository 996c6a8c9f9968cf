# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first call of a program. PyTorch runs the call, the program computes the same, and it is
published if it has reproduced PyTorch's result (verification.py)."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft import errors
from weft.capture.signature import Declined
from weft.compiled import checkpoints
from weft.compiled.first_difference import explain
from weft.compiled.gradient_check import compare_gradients
from weft.compiled.number_arguments import withdraw
from weft.compiled.number_verification import differs_at_others
from weft.compiled.programs import Programs
from weft.compiled.requests import Found
from weft.compiled.specialize import declined
from weft.compiled.verification import MOST_INCONCLUSIVE_CHECKS, Check, Verdict
from weft.compiled.verification_records import Verified
from weft.frontend.philox import PhiloxDraws

# For programs of one state after another: the call itself changes the state, unseen by the trace.
_MOST_INCONCLUSIVE_STATES = 4


@dataclass
class FirstCall:
    """The call `original(*args, **kwargs)`, which `found` is to answer from now on.

    refuse: a function that is told why a program is never published, and may raise
    errors.NotCompiledError.
    """

    programs: Programs
    original: Callable[..., Any]
    refuse: Callable[[errors.CaptureError], None]
    found: Found
    args: tuple
    kwargs: dict[str, Any]
    _keeping: checkpoints.Keeping | None = field(default=None, init=False)

    def run(self) -> Any:
        """PyTorch's result."""
        specialized = self.found.specialized
        region = checkpoints.current()
        if region is not None:
            if region.again or region.frame is None:
                return self._eager()
            specialized.eager_in.add(region)
        with self.programs.lock:
            ours = not specialized.checking
            specialized.checking = True
        if not ours:  # another thread, or a call within this one, is checking the program
            return self._eager()
        try:
            return self._check() if region is None else self._check_within(region)
        finally:
            specialized.checking = False

    def _check_within(self, region: checkpoints.Region) -> Any:
        self._keeping = checkpoints.Keeping(region)
        try:
            with checkpoints.nothing_counted():
                return self._check()
        finally:
            self._keeping.release()

    def _eager(self) -> Any:
        # If programs draw by Philox, PyTorch is given the same masks.
        philox = self.programs.capture.rng == "philox" and self.found.specialized.draws
        keeping = contextlib.nullcontext() if self._keeping is None else self._keeping.call()
        with PhiloxDraws() if philox else contextlib.nullcontext(), keeping:
            return self.original(*self.args, **self.kwargs)

    def _check(self) -> Any:
        start = time.perf_counter()
        check = self._begin()
        if check is None:
            return self._eager()
        middle = time.perf_counter()
        value = self._eager()
        end = time.perf_counter()
        try:
            self._settle(check, value)
        except errors.NotCompiledError:
            raise
        except Exception as error:  # a fault of the compiler costs speed, never the user's result
            self._keep_away(f"it cannot be compared: {type(error).__name__}: {error}")
        self.programs.totals.verify_seconds += time.perf_counter() - end + middle - start
        return value

    def _begin(self) -> Check | None:
        """Starts the comparison; None if it is not possible. The call is not made while an
        exception is handled, which would become the context of its own exceptions."""
        state = self.found.environment.state
        try:
            return Check(
                self.found.specialized, self.found.signature, state, self.args, self.kwargs
            )
        except Exception as error:
            self._keep_away(f"it cannot be compared: {type(error).__name__}: {error}")
            return None

    def _settle(self, check: Check, value: Any) -> None:
        """Decides what becomes of a program, now that PyTorch's result is known."""
        specialized, state = self.found.specialized, self.found.environment.state
        finding = check.conclude(value, lambda: self.programs.change_of(state), self._eager)
        forward = finding.verdict
        if forward is Verdict.SAME and specialized.training is not None:
            finding = compare_gradients(specialized.training, check, finding)
        if finding.verdict is Verdict.INCONCLUSIVE:
            specialized.inconclusive += 1
            self.programs.inconclusive += not finding.is_explained
            if self.programs.inconclusive >= _MOST_INCONCLUSIVE_STATES:
                why = f"each call is one of which nothing is known: {finding.reason}"
                self.programs.given_up = Declined(why)
            if specialized.inconclusive >= MOST_INCONCLUSIVE_CHECKS:
                self._keep_away(f"nothing is known of it: {finding.reason}")
        elif finding.verdict is not forward:
            self._keep_away(f"{finding.reason}")
        elif finding.verdict is Verdict.DIFFERENT:
            inputs = dict(zip(specialized.lowered.inputs, check.inputs))
            values = functools.partial(
                self.programs.capture.values, self.args, self.kwargs, state, inputs
            )
            # To find the place the program is run again, unless that would write unnoticed.
            found = not check.writes_unsaid
            where = explain(specialized, values, check.random_state) if found else ""
            self._keep_away(f"{finding.reason}{where}")
        elif (other := self._difference_at_other_numbers()) is not None:
            self._keep_away(other)
        else:
            self._accept(finding.layouts)

    def _difference_at_other_numbers(self) -> str | None:
        if self.found.specialized.verified:
            return None
        varying = self.programs.varying
        return differs_at_others(self.found, self.original, self.args, self.kwargs, varying)

    def _accept(self, layouts: dict[int, tuple[tuple[int, ...], int]]) -> None:
        specialized, environment = self.found.specialized, self.found.environment
        with self.programs.lock:
            if specialized.verified:
                return
            record = Verified.of(specialized, layouts)
            record.apply(specialized)
            record.save()
            self.programs.inconclusive = 0
            self.programs.publish(environment, specialized)
            # Changes of dicts that the call took back do not count.
            environment.core.rearm(self.programs.state().guards)

    def _keep_away(self, difference: str) -> None:
        """Lets PyTorch run such calls from now on. What was compiled is kept for the report."""
        if self.found.specialized.numbers is not None:
            withdraw(self.programs, self.found, difference)
            return
        why = errors.CaptureError(f"the program does not reproduce eager execution: {difference}")
        self.refuse(why)
        self.found.specialized.reason = why.reason
        self.programs.replace(self.found, declined(self.found.signature, why))
