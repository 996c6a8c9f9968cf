# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs calls for which there is no program in parts.

Such a call runs in the interpreter. The modules and functions that it calls are observed
individually, and their programs run in place of them, so that everything else the call does still
happens between them as before. `_capture.Parts` looks at what is called; the callers are left
unchanged.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from weft import _capture
from weft.capture.library_paths import INSTALLED
from weft.observe.backends import Backend
from weft.observe.face import MOST_FAILURES, Observed, Published

# The most parts that have answered no call yet; beyond that no more are made, since the functions
# may be made anew in each call.
MOST_IDLE = 512

_NOTHING, _PART, _ALONE = range(3)
_WEFT = str(Path(__file__).resolve().parents[1])
_CALL = nn.Module._wrapped_call_impl


class Parts:
    """Programs for the parts of calls. call: calls `original` with these programs. settings,
    backend: those that parts are made with."""

    def __init__(
        self, original: Callable[..., Any], settings: dict[str, Any], backend: Backend | None
    ) -> None:
        self._original = original
        self._settings = {**settings, "fullgraph": False}
        self._backend = backend
        self._parts: list[Part] = []
        self._looked_into: set[int] = {id(original)}  # modules whose own method is not a part
        self.call = _capture.Parts(original, self._how, self._make)

    def hits(self) -> dict[str, int]:
        """How many calls each part has answered, by its name, for parts that have answered any."""
        found: dict[str, int] = {}
        for each in self._parts:
            if (count := each.stats()["hits"]) > 0:
                found[each.name] = found.get(each.name, 0) + count
        return found

    def reasons(self) -> list[str]:
        """The reasons why parts are run without a program, each once."""
        return list(dict.fromkeys(why for each in self._parts for why in each.eager_reasons))

    def _how(self, function: types.FunctionType) -> int:
        """How a called function is treated: modules are parts, and so are the user's own
        functions."""
        code = function.__code__
        if code is _CALL.__code__:
            return _PART
        name, file = code.co_name, code.co_filename
        if file.startswith(_WEFT):  # this includes what weft.disable excludes
            return _ALONE
        special = name != "<lambda>" and name.startswith(("<", "__", "torch_dynamo"))
        return _NOTHING if special or file.startswith(INSTALLED) else _PART

    def _make(self, function: types.FunctionType, owner: nn.Module | None) -> Any:
        """What is called instead of the function; None if it is run as it is."""
        idle = [each for each in self._parts if not each.stats()["hits"]]
        if function is self._original or len(idle) >= MOST_IDLE:
            return None
        if owner is None:
            return self._part(function, function, None)
        if function is _CALL:
            return None if owner is self._original else self._part(owner, function, owner)
        # The method of a module that has been looked into belongs to the call itself.
        if function is getattr(type(owner), "forward", None) and id(owner) in self._looked_into:
            return None
        return self._part(types.MethodType(function, owner), function, owner)

    def _part(
        self, target: Callable[..., Any], function: types.FunctionType, owner: nn.Module | None
    ) -> Any:
        def leave() -> None:
            self.call.refuse(function, owner)
            if owner is not None:
                self._looked_into.add(id(owner))  # `call` keeps the module alive

        part = Part(target, self._settings, self._backend, leave)
        self._parts.append(part)
        return part.callable()


class Part(Observed):
    """The object behind a module or function that a call calls. leave: is called once it is known
    that it has no program; it is then run as it is, with parts of its own."""

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
        """The user is told by the call around this part."""
        self.eager_reasons[reason] += 1
        given_up = self._failures >= MOST_FAILURES or self.is_barren()
        if self.met_unknown or given_up:
            self._leave()

    def _show(self) -> None:
        super()._show()
        if self._programs and not _computes(self._programs[0]):
            self._leave()  # so short a part is not worth a program


def _computes(published: Published) -> bool:
    """Whether the program computes anything on tensors."""
    kinds = ("tensor", "sequence", "same")  # "same" is the kind of what writes to its argument
    return any(each[0] is not None and each[3][0] in kinds for each in published.program.records())
