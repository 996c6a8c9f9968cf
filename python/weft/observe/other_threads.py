# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other threads do beside an observed call: whether there are any, and their own calls of
observed callables, which may change what this call has changed."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from weft import _capture


def live() -> bool:
    """Whether another thread might run Python."""
    return len(sys._current_frames()) > 1


class Calls:
    """Calls of observed callables, on all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0  # threads
        self._begun = 0  # calls
        self._own = threading.local()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Within a call of an observed callable."""
        own = self._own
        depth = getattr(own, "depth", 0)
        if depth == 0:
            with self._lock:
                self._inside += 1
                self._begun += 1
            own.begun = getattr(own, "begun", 0) + 1
        own.depth = depth + 1
        try:
            yield
        finally:
            own.depth = depth
            if depth == 0:
                with self._lock:
                    self._inside -= 1

    def of_others(self) -> tuple[int, bool]:
        """How many calls other threads have begun, and whether one of these is under way."""
        own = 1 if getattr(self._own, "depth", 0) else 0
        begun = self._begun - getattr(self._own, "begun", 0) + _capture.started_programs()
        return begun, self._inside > own or _capture.running_programs() > 0

    def go_on_alone(self) -> None:
        """In a child of a fork, which has none of the parent's other threads."""
        self._lock = threading.Lock()
        self._inside = 1 if getattr(self._own, "depth", 0) else 0


CALLS = Calls()
os.register_at_fork(after_in_child=CALLS.go_on_alone)
