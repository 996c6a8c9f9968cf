# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the fuzzer judges: Weft, and two whose verdict is known.

A subject compiles a target, says whether its calls run whole, and can be asked to capture
nothing for a while, so that whatever it has captured is all that may answer.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

import weft
from weft.capture import tracing as capture
from weft.capture.signature import Declined
from weft.observe import face
from weft.observe.parts import Parts


class Weft:
    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return weft.compile(target)

    def is_whole(self, compiled: Any) -> bool:
        stats = weft.stats(compiled)
        return stats["graphs"] > 0 and not stats["breaks"]

    def reasons(self, compiled: Any) -> list[str]:
        return weft.stats(compiled)["breaks"]

    def answered(self, compiled: Any) -> int:
        """How many calls a program has answered."""
        return weft.stats(compiled)["hits"]

    @contextlib.contextmanager
    def capturing_nothing(self) -> Iterator[None]:
        """A captured program costs a quarter of a second, a miss almost nothing."""
        old = capture.Tracing.capture

        def refuse(*args: Any) -> Any:
            raise Declined("nothing is captured now")

        capture.Tracing.capture = refuse
        try:
            yield
        finally:
            capture.Tracing.capture = old


class Observed(Weft):
    """Capture by observing the interpreter; programs run by PyTorch's own operations."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return weft.compile(target, capture="observe", backend="eager")

    @contextlib.contextmanager
    def capturing_nothing(self) -> Iterator[None]:
        old = face.Observed.capture
        face.Observed.capture = lambda self, args, kwargs: (self.original(*args, **kwargs), None)
        try:
            yield
        finally:
            face.Observed.capture = old


class ObservedNative(Observed):
    """The same, compiled."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return weft.compile(target, capture="observe")


class _Anew:
    """Compiles the target again for each call, as another process does."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target, self.hits, self.latest = target, 0, {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        compiled = weft.compile(self.target)
        try:
            return compiled(*args, **kwargs)
        finally:
            self.latest = weft.stats(compiled)
            self.hits += self.latest["hits"]


class Kept(Weft):
    """Traces of the folder of compiled programs, found by the digest of what they depend on."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return _Anew(target)

    def is_whole(self, compiled: Any) -> bool:
        return compiled.hits > 0 and not compiled.latest["breaks"]

    def reasons(self, compiled: Any) -> list[str]:
        return compiled.latest["breaks"]

    def answered(self, compiled: Any) -> int:
        return compiled.hits

    @contextlib.contextmanager
    def capturing_nothing(self) -> Iterator[None]:
        old = capture.call_isolated, face.Observed.capture

        def refuse(*args: Any) -> Any:
            raise Declined("nothing is traced now")

        capture.call_isolated = refuse
        face.Observed.capture = lambda self, args, kwargs: (self.original(*args, **kwargs), None)
        try:
            yield
        finally:
            capture.call_isolated, face.Observed.capture = old


class _InParts:
    """Calls that no program stands for, of which the target is a part."""

    def __init__(self, target: Callable[..., Any]) -> None:
        def around(*args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs)

        self.parts = Parts(around, {}, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.parts.call(*args, **kwargs)


class ObservedParts(Observed):
    """What calls call that are no program themselves."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return _InParts(target)

    def is_whole(self, compiled: Any) -> bool:
        return self.answered(compiled) > 0

    def reasons(self, compiled: Any) -> list[str]:
        return compiled.parts.reasons()

    def answered(self, compiled: Any) -> int:
        return sum(compiled.parts.hits().values())


class Eager:
    """Never wrong: what the fuzzer finds in it is a fault of the fuzzer's."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: target(*args, **kwargs)

    def is_whole(self, compiled: Any) -> bool:
        return False

    def reasons(self, compiled: Any) -> list[str]:
        return ["it never compiles"]

    def answered(self, compiled: Any) -> int:
        return 0

    def capturing_nothing(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


class _Replays:
    """The value of the second call, for all calls whose tensors have the shapes of its own."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target, self.key, self.value, self.calls, self.hits = target, None, None, 0, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        key = [(x.shape, x.dtype) if isinstance(x, torch.Tensor) else str(x) for x in leaves]
        self.calls += 1
        if self.calls > 2 and key == self.key:
            self.hits += 1
            return copy.deepcopy(self.value)
        value = self.target(*args, **kwargs)
        self.key, self.value = key, value
        return value


class Stale(Eager):
    """As wrong as can be: the fuzzer has to find it."""

    def compile(self, target: Callable[..., Any]) -> Callable[..., Any]:
        return _Replays(target)

    def answered(self, compiled: Any) -> int:
        return compiled.hits


SUBJECTS = {
    "weft": Weft,
    "kept": Kept,
    "observe": Observed,
    "observe-native": ObservedNative,
    "observe-parts": ObservedParts,
    "eager": Eager,
    "stale": Stale,
}
