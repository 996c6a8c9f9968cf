# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that fill an object among their arguments that was empty, as a prompt does a cache. What
such a call is given is as long as what it fills, and has another length the next time: it has a
program for a range of sizes at once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from weft import config
from weft.capture.argument_changes import Filled
from weft.capture.argument_objects import NO_COUNTERS, Counters
from weft.compiled.flat_calls import FlatCall
from weft.compiled.sizes import Wanted, prompt_range

if TYPE_CHECKING:
    from weft.compiled.programs import Programs
    from weft.compiled.requests import Request


class FilledObjects:
    """What calls fill, by their kind."""

    def __init__(self) -> None:
        self._found: dict[Any, Filled] = {}

    def clear(self) -> None:
        self._found.clear()

    def counters(self, kind: Any) -> Counters:
        """Attributes that are sizes of such calls."""
        filled = self._found.get(kind)
        return NO_COUNTERS if filled is None else filled.counters

    def begins(self, request: Request, filled: Filled | None, programs: Programs) -> bool:
        """Whether this is the first call of its kind that is found to fill something, and is to be
        looked up again. filled: by the call."""
        if filled is None or request.wanted or request.gradients or config.verify == "always":
            return False
        if request.kind is None or request.kind in self._found:
            return False
        self._found[request.kind] = filled
        call = FlatCall.of(request.args, request.kwargs, filled.counters)
        if call is not None:
            sizes = {call.leaves[number].shape[0] for number in call.counted}
            programs.varying.free_sizes(programs.target, sizes)
        return call is not None

    def add_sizes(self, told: Wanted, call: FlatCall, kind: Any) -> None:
        """Adds those of what is filled, and of tokens."""
        if (filled := self._found.get(kind)) is None:
            return
        held = call.held()
        own = {
            number: leaf
            for number, leaf in enumerate(call.leaves)
            if isinstance(leaf, torch.Tensor) and number not in held
        }
        tokens = (x for x in own.values() if x.dtype in (torch.int64, torch.int32))
        sizes = {*filled.sizes, *itertools.chain(*(each.shape[1:] for each in tokens))}
        for number, leaf in own.items():
            for dim, size in enumerate(leaf.shape[1:], 1):
                if size in sizes and leaf.is_contiguous():
                    told.setdefault(number, {}).setdefault(dim, prompt_range(size))
