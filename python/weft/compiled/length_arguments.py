# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose packed sequences have varying lengths, which a program takes as data."""

from __future__ import annotations

from weft import errors
from weft.capture.packed_sequences import NO_VALUES
from weft.capture.signature import ChangesArgument, HasEffects, Heard
from weft.capture.tracing import Captured, Tracing
from weft.compiled.requests import Request


class VaryingLengths:
    """Whether programs are made for any lengths, separately for calls that record gradients or do
    not."""

    def __init__(self) -> None:
        self._vary: dict[bool, bool] = {}

    def captured(self, capture: Tracing, request: Request) -> Captured:
        """The captured call; once calls have had other lengths of packed sequences, it is captured
        for any lengths, if possible."""
        gradients = request.gradients
        call = (
            *(request.args, request.kwargs),
            *(request.references, request.state, request.signature),
        )
        if request.numbers.leaves:
            try:
                return capture.capture(*call, gradients, numbers=request.numbers)
            except errors.CaptureError as why:
                if why.reason != NO_VALUES:
                    raise
            # The varying numbers may be the lengths.
            return capture.capture(*call, gradients, numbers=request.numbers, any_lengths=True)
        reason: errors.CaptureError | None = None
        if self._vary.get(gradients):
            try:
                return capture.capture(*call, gradients, any_lengths=True)
            except (HasEffects, Heard, ChangesArgument):
                raise
            except errors.CaptureError as why:
                reason = why
        try:
            captured = capture.capture(*call, gradients)
        except errors.CaptureError as why:
            if why.reason != NO_VALUES or reason is not None:
                raise
            return capture.capture(*call, gradients, any_lengths=True)
        if reason is not None:
            self._vary[gradients] = False
        elif captured.read:
            self._vary.setdefault(gradients, True)
        return captured
