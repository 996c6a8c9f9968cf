# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which threads are in calls of observed callables, and which one replays a call.

A replay starts from the state ahead of the call and ends in the state behind it, in the program's
own objects. What another thread appends to a list meanwhile would be lost. So a thread replays
while no other one is in a call, and calls that come meanwhile wait for it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from weft import _capture

# Seconds that a thread waits for the calls of others, which may themselves wait for something. If
# they do not end, its call has no program.
_LONGEST_WAIT = 0.2
_POLL = 0.001  # seconds: programs that C++ runs do not tell that they have ended


class Turns:
    """Those of all threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0  # threads
        self._begun = 0  # calls
        self._replays = False
        self._own = threading.local()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Within a call of an observed callable."""
        own = self._own
        depth = getattr(own, "depth", 0)
        if depth == 0:
            with self._changed:
                while self._replays and not self._replays_itself():  # which may call another one
                    self._changed.wait()
                self._inside += 1
                self._begun += 1
                own.begun = getattr(own, "begun", 0) + 1
        own.depth = depth + 1
        try:
            yield
        finally:
            own.depth = depth
            if depth == 0:
                with self._changed:
                    self._inside -= 1
                    self._changed.notify_all()

    def of_others(self) -> int:
        """How many calls other threads have begun."""
        begun: int = self._begun - getattr(self._own, "begun", 0)
        return begun + _capture.started_programs()

    def others_are_in_calls(self) -> bool:
        return not self._is_quiet(self._own_calls())

    def _own_calls(self) -> int:
        return 1 if getattr(self._own, "depth", 0) else 0

    def _replays_itself(self) -> bool:
        return getattr(self._own, "replays", False)

    @contextlib.contextmanager
    def replay(self) -> Iterator[bool]:
        """Within a replay. Yields whether no other thread is in a call, nor will be until its end;
        otherwise they have not come to an end, and nothing may be replayed."""
        nested = self._replays_itself()
        alone = self._own.replays = nested or self._begin_replay()
        try:
            yield alone
        finally:
            self._own.replays = nested
            if alone and not nested:
                with self._changed:
                    self._open()

    def _begin_replay(self) -> bool:
        own = self._own_calls()
        with self._changed:
            self._inside -= own  # another one may replay until it is this one's turn
            self._changed.notify_all()
            try:
                if not self._changed.wait_for(lambda: not self._replays, _LONGEST_WAIT):
                    return False
                return self._closes()
            finally:
                self._inside += own

    def _closes(self) -> bool:
        """Lets no call begin. Returns whether those that have begun have come to their end."""
        self._replays = True
        _capture.close_programs(True)
        alone, end = False, time.monotonic() + _LONGEST_WAIT
        try:
            while not (alone := self._is_quiet()) and time.monotonic() < end:
                self._changed.wait(_POLL)
        finally:
            if not alone:
                self._open()
        return alone

    def _is_quiet(self, own: int = 0) -> bool:
        """Whether no more than so many calls are under way, and no program that C++ runs."""
        return self._inside <= own and not _capture.running_programs()

    def _open(self) -> None:
        self._replays = False
        _capture.close_programs(False)
        self._changed.notify_all()

    def go_on_alone(self) -> None:
        """In a child of a fork, which has none of the parent's other threads."""
        self._changed = threading.Condition(threading.Lock())
        self._inside = self._own_calls()
        self._replays = self._replays_itself()
        _capture.close_programs(self._replays)


TURNS = Turns()
os.register_at_fork(after_in_child=TURNS.go_on_alone)
