# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context managers that replays enter and leave by operations of their own."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager


class Contexts(threading.local):
    """The contexts of one kind that replays of this thread have entered and not left yet."""

    def __init__(self) -> None:
        self._entered: list[AbstractContextManager] = []

    def __len__(self) -> int:
        return len(self._entered)

    def enter(self, context: AbstractContextManager) -> None:
        context.__enter__()
        self._entered.append(context)

    def leave(self) -> None:
        """Leaves the context that was entered last."""
        self._entered.pop().__exit__(None, None, None)


class Depth:
    """How many of the contexts are entered, which a replay that ends early restores."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts
        self._count = len(contexts)

    def restore(self) -> None:
        while len(self._contexts) > self._count:
            self._contexts.leave()

    def again(self) -> Depth:
        return Depth(self._contexts)

    def agrees(self, other: Depth, tolerance: float | None = None) -> bool:
        return self._count == other._count
