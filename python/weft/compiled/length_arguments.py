# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose packed sequences come with other lengths, which a program takes as data."""

from __future__ import annotations

from weft import errors
from weft.capture.packed_sequences import NO_VALUES
from weft.capture.signature import ChangesArgument, HasEffects, Heard
from weft.capture.tracing import Captured, Tracing
from weft.compiled.requests import Request


class VaryingLengths:
    """Whether programs are made for any lengths, by whether calls record gradients."""

    def __init__(self) -> None:
        self._vary: dict[bool, bool] = {}

    def captured(self, capture: Tracing, request: Request) -> Captured:
        """Once calls have come with other lengths of packed sequences, for any of these if it can
        be."""
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
            # These may be the lengths.
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
