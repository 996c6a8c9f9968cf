# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The object behind `weft.compile(f)`: calls are traced, or observed if they cannot be traced."""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from weft import _core, config, errors
from weft.artifacts.builds import Options
from weft.capture.tracing import Tracing
from weft.compiled.compiled import Compiled
from weft.compiled.first_difference import ALONE
from weft.observe.backends import Native
from weft.observe.face import Observed, Refused
from weft.reporting.explanation import Explanation

# Sizes that PyTorch refuses when it only computes shapes, and that a kernel may have accepted: an
# LSTM whose `bias` has been set to False takes its biases for weights.
_ILL_FORMED = re.compile(
    "torch.export: RuntimeError: .*"
    "(size mismatch|cannot be multiplied|must match|invalid for input)"
)


class TracedOrObserved(Compiled):
    """Traces or observes calls: the way that succeeds first for a call is used for it from then
    on."""

    def __init__(
        self, original: Callable[..., Any], options: Options, settings: dict[str, Any]
    ) -> None:
        super().__init__(original, Tracing(original, rolls=options.rolls_loops), options, settings)
        self.observed = Observed(original, settings, Native(options))
        self._first_of_all = self.observed.watch
        # For calls that cannot be captured in either way: why observing fails, by why tracing
        # fails.
        self._second_reasons: dict[str, str] = {}

    def callable(self) -> _core.Callable:
        made = super().callable()
        self.observed.answering = weakref.ref(made)
        return made

    # Calls.

    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        hit = self.observed.hit(args, kwargs)
        return super()._dispatch(args, kwargs) if hit is None else hit[0]

    def declined(
        self, core: _core.Specialization, reason: str, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        hit = None if reason else self.observed.hit(args, kwargs)
        return super().declined(core, reason, args, kwargs) if hit is None else hit[0]

    def _eager(self, why: errors.CaptureError, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self._why_not_observed(why) is not None:
            if (reason := self.observed.hopeless()) is not None:
                self._second_reasons.setdefault(str(why), reason)
            self._refuse(why)
            return self.observed.in_parts(self._is_final())(*args, **kwargs)
        value = None
        try:
            value, reason = self.observed.capture(args, kwargs)
        except Refused as refused:
            reason = str(refused)
        if reason is not None:
            self.observed.eager_reasons[reason] += 1
            self._second_reasons.setdefault(str(why), reason)
            self._refuse(why)
        return value

    def _keep_away(self, why: errors.CaptureError) -> None:
        """Notes that a program is not published. The calls that follow may be observed."""
        if self._why_not_observed(why) is not None:
            super()._keep_away(why)

    def _why_not_observed(self, why: errors.CaptureError) -> str | None:
        """Why the call is not observed: a call that was traced and compiled wrongly is not captured
        again."""
        if config.verify == "always":
            return "every call is compared"
        if _ILL_FORMED.search(why.reason):
            return "it reads memory that is none of its tensors'"
        differs = " differs: " in why.reason and not why.reason.endswith(ALONE)
        if differs or why.reason.startswith("compilation failed"):
            return "it was traced"
        if self.programs.failed_pass is not None:
            return "a pass failed"
        return self.observed.hopeless()

    def _is_final(self) -> bool:
        return self.observed.met_unknown or self.observed.has_given_up()

    def _refuse(self, why: errors.CaptureError) -> None:
        super()._refuse(why)
        if self._is_final() and (answering := self.observed.answering()) is not None:
            answering._call_instead(self.observed.in_parts(True))

    # Called by the user.

    def stats(self) -> dict[str, Any]:
        """As `Compiled.stats`, for traced and observed programs together: a break says why the call
        could not be traced, followed by why it could not be observed. `replayed` is as in
        `Observed.stats`."""
        traced, observed = super().stats(), self.observed.stats()
        # The observed programs count these as well.
        traced["hits"] -= self.programs.hits_of_callable()
        together = {
            name: value + observed[name] if isinstance(value, int | float) else value
            for name, value in traced.items()
        }
        together["breaks"] = [
            f"{each}; observed: {second}" if (second := self._second_reasons.get(each)) else each
            for each in traced["breaks"]
        ]
        return together | {"replayed": observed["replayed"]} | self.observed.parts()

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        known = Counter(self.observed.eager_reasons)
        found = super().explain(*args, **kwargs)
        if found.whole:
            return found
        program = self.observed.program_of(args, kwargs)
        if program is None:
            reasons = self.observed.eager_reasons - known
            return Explanation(False, (*found.breaks, *(f"observed: {each}" for each in reasons)))
        if program.compiled is None:
            return Explanation(True, (), "as observed", 0, (f"all of it: {program.not_compiled}",))
        face: Compiled = program.compiled.face
        return face.explanation_of(face.programs.latest())

    def report(self, file: Any = None) -> None:
        super().report(file)
        self.observed.report(file)

    def reset(self) -> None:
        super().reset()
        self.observed.reset()
        self._second_reasons.clear()
        if (answering := self.observed.answering()) is not None:
            answering._call_instead(self.original)

    def why_miss(self, *args: Any, **kwargs: Any) -> str | None:
        """The assumption of the latest program, traced or observed, that this call does not fulfil;
        None if it fulfils all. Raises: errors.Error, if there is no program."""
        if self._was_observed():
            return self.observed.why_miss(*args, **kwargs)
        return super().why_miss(*args, **kwargs)

    def guards(self) -> list[str]:
        """What the latest program assumes, in the user's terms. Raises: errors.Error, if there is
        no program."""
        return self.observed.guards() if self._was_observed() else super().guards()

    def _was_observed(self) -> bool:
        """Whether the latest program was observed."""
        traced = self.programs.newest
        return self.observed.published_at > (0.0 if traced is None else traced.made_at)

    def log(self) -> list[str]:
        """As `Observed.log`, for the latest program that was observed."""
        return self.observed.log()
