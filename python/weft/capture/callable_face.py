# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the C++ callable asks, however its programs are captured."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import torch
from torch.fx._symbolic_trace import is_fx_symbolic_tracing

from weft import _capture, _core
from weft.capture import isolated

# Of all callables that live.
_living: weakref.WeakSet[Face] = weakref.WeakSet()

_set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame


class Undisturbed:
    """Our own code is none that torch.compile around it should look at, nor a call around it that
    is looked through for parts."""

    __slots__ = ("_before", "_parts")

    def __enter__(self) -> None:
        self._before, self._parts = _set_eval_frame(None), _capture.leave_parts()

    def __exit__(self, *_: object) -> None:
        _capture.enter_parts(self._parts)
        _set_eval_frame(self._before)


class Face(ABC):
    """The face of one callable. Attributes that it lacks are those of the target.

    original: the module or function. traced: the same, for torch.fx; of a module, as its parents
    hold it. settings: the arguments of `weft.compile`. eager_reasons: why PyTorch ran calls.
    """

    def __init__(self, original: Callable[..., Any], settings: dict[str, Any]) -> None:
        self.original = original
        self.traced = original  # what torch.fx shall see
        self.settings = settings
        self.eager_reasons: Counter[str] = Counter()
        _living.add(self)

    def callable(self) -> _core.Callable:
        """What the user calls; it holds this face, and nobody holds it but the user."""
        return _core.Callable(self)

    @property
    def face(self) -> Self:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "original":
            raise AttributeError(name)
        return getattr(self.original, name)

    def dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that no program stands for yet."""
        if isolated.in_child():  # what a traced program calls becomes part of it
            return self.original(*args, **kwargs)
        if is_fx_symbolic_tracing():
            return self.traced(*args, **kwargs)
        with Undisturbed():
            return self._dispatch(args, kwargs)

    @abstractmethod
    def _dispatch(self, args: tuple, kwargs: dict[str, Any]) -> Any: ...

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """What has happened so far."""

    @abstractmethod
    def report(self, file: Any = None) -> None:
        """Prints what programs there are, and why PyTorch ran calls."""

    def reset(self) -> None:
        """Forgets all programs: the next calls are captured as if they were the first. What has
        been counted stays."""
        self.eager_reasons.clear()


def reset_all() -> None:
    for face in list(_living):
        face.reset()
