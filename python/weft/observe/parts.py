# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that no program stands for run in the interpreter; modules and functions that they call
are observed on their own, and their programs run in their places.

So all else that such a call does comes where it did, between the programs. `_capture.Parts` looks
at what is called; who calls, and how often, is left alone.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from weft import _capture
from weft.capture.reachability import INSTALLED
from weft.observe.backends import Backend
from weft.observe.face import MOST_FAILURES, Observed, Published

# Parts that have answered no call yet, beyond which no more are made: what is called may be made
# anew in each call.
MOST_IDLE = 512

_NOTHING, _PART, _ALONE = range(3)
_WEFT = str(Path(__file__).resolve().parents[1])
_CALL = nn.Module._wrapped_call_impl


class Parts:
    """call: calls `original`, with programs for its parts. settings, backend: theirs."""

    def __init__(
        self, original: Callable[..., Any], settings: dict[str, Any], backend: Backend | None
    ) -> None:
        self._original = original
        self._settings = {**settings, "fullgraph": False}
        self._backend = backend
        self._parts: list[Part] = []
        self._looked_into: set[int] = {id(original)}  # modules whose own method is none
        self.call = _capture.Parts(original, self._how, self._make)

    def hits(self) -> dict[str, int]:
        """How many calls each part has answered that answers any, by its name."""
        found: dict[str, int] = {}
        for each in self._parts:
            if (count := each.stats()["hits"]) > 0:
                found[each.name] = found.get(each.name, 0) + count
        return found

    def reasons(self) -> list[str]:
        """Why parts run as they are, each reason once."""
        return list(dict.fromkeys(why for each in self._parts for why in each.eager_reasons))

    def _how(self, function: types.FunctionType) -> int:
        """Of a function that is called: modules are parts, and functions of the user's own."""
        code = function.__code__
        if code is _CALL.__code__:
            return _PART
        name, file = code.co_name, code.co_filename
        if file.startswith(_WEFT):  # what weft.disable keeps out, too
            return _ALONE
        special = name != "<lambda>" and name.startswith(("<", "__", "torch_dynamo"))
        return _NOTHING if special or file.startswith(INSTALLED) else _PART

    def _make(self, function: types.FunctionType, owner: nn.Module | None) -> Any:
        """What is called instead; None for what runs as it is."""
        idle = [each for each in self._parts if not each.stats()["hits"]]
        if function is self._original or len(idle) >= MOST_IDLE:
            return None
        if owner is None:
            return self._part(function, function, None)
        if function is _CALL:
            return None if owner is self._original else self._part(owner, function, owner)
        # What a module that has been looked into does, its call does.
        if function is getattr(type(owner), "forward", None) and id(owner) in self._looked_into:
            return None
        return self._part(types.MethodType(function, owner), function, owner)

    def _part(
        self, target: Callable[..., Any], function: types.FunctionType, owner: nn.Module | None
    ) -> Any:
        def leave() -> None:
            self.call.refuse(function, owner)
            if owner is not None:
                self._looked_into.add(id(owner))  # which `call` holds

        part = Part(target, self._settings, self._backend, leave)
        self._parts.append(part)
        return part.callable()


class Part(Observed):
    """The face of a module or function that a call calls. leave: what is done once it is known that
    it has no program: it runs as it is, with parts of its own."""

    def __init__(
        self,
        original: Callable[..., Any],
        settings: dict[str, Any],
        backend: Backend | None,
        leave: Callable[[], None],
    ) -> None:
        super().__init__(original, settings, backend)
        self._leave = leave
        named = type(original) if isinstance(original, nn.Module) else original
        self.name: str = getattr(named, "__qualname__", type(original).__qualname__)

    def _eager(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._refuse(reason)
        return self.original(*args, **kwargs)

    def _refuse(self, reason: str) -> None:
        """The user hears of the call around it."""
        self.eager_reasons[reason] += 1
        given_up = self._failures >= MOST_FAILURES or self.is_barren()
        if self.met_unknown or given_up:
            self._leave()

    def _show(self) -> None:
        super()._show()
        if self._programs and not _computes(self._programs[0]):
            self._leave()  # no program is faster than so little


def _computes(published: Published) -> bool:
    """Whether it does anything to tensors."""
    kinds = ("tensor", "sequence", "same")  # the last one of what writes to its argument
    return any(each[0] is not None and each[3][0] in kinds for each in published.program.records())
