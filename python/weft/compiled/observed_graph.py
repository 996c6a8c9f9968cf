# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The object behind the compiled graph of an observed call (observe/backends.py)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from weft.artifacts.builds import Options
from weft.capture.signature import Declined
from weft.capture.tracing import Tracing
from weft.compiled.compiled import Compiled
from weft.compiled.requests import Request
from weft.compiled.verification_records import Verified
from weft.errors import CaptureError

_STANDS_NOT = "the program does not stand for this call"


class ObservedGraph(Compiled):
    """Has the program for one call of the graph, and declines calls for which that does not stand.
    The graph's numbers are inputs of the program. declines: counts these calls, by reason."""

    def __init__(
        self, graph: torch.fx.GraphModule, options: Options, declines: Counter[str]
    ) -> None:
        super().__init__(graph, Tracing(graph), options, {"fullgraph": True})
        varying = self.programs.varying
        varying.are_inputs = varying.from_first = True
        self._declines = declines
        self._is_accepted = False

    def compile(self, inputs: tuple) -> None:
        """Compiles the program for these inputs, without a call. Raises: CaptureError."""
        found = self.programs.find(inputs, {})
        if found.specialized.reason is not None:
            raise found.specialized.why_not()

    def accept(self, inputs: tuple) -> None:
        """Lets the program answer calls from now on, if its first call, with these inputs, has
        shown that it may: in this process, or in a child. Raises: CaptureError."""
        found = self.programs.find(inputs, {})
        if not found.specialized.verified:
            record = Verified.find(found.specialized)
            if record is None:
                raise CaptureError("nothing is known of the compiled program")
            record.apply(found.specialized)
            self.programs.publish(found.environment, found.specialized)
        self._is_accepted = True
        self.original = self._first_of_all = _declines

    def _looked_up(self, args: tuple, kwargs: dict[str, Any], for_sizes: bool) -> Any:
        if not self._is_accepted:
            return super()._looked_up(args, kwargs, for_sizes)
        found = self.programs.look_up(args, kwargs, for_sizes)
        if isinstance(found, Request):
            raise Declined(_STANDS_NOT)
        return found

    def _refuse(self, why: CaptureError) -> None:
        if self._is_accepted:
            self._declines[str(why)] += 1
        super()._refuse(why)


def _declines(*inputs: Any) -> tuple:
    """Stands for the graph in eager mode: the log runs such calls, which undoes what they have
    written if they fail."""
    raise CaptureError(_STANDS_NOT)
