# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processors that a measurement runs on, and whose turn it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def siblings(processor: int) -> str:
    """The processors of its core, as the system writes them; itself where it does not."""
    topology = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return topology.read_text().strip()
    except OSError:
        return str(processor)


def chosen(
    threads: int, allowed: Iterable[int], core_of: Callable[[int], str] = siblings
) -> set[int]:
    """So many processors, or all of a smaller number: of different cores as far as there are
    enough, and the last ones, as the first take most of the interrupts."""
    cores: dict[str, list[int]] = {}
    for processor in sorted(allowed, reverse=True):
        cores.setdefault(core_of(processor), []).append(processor)
    in_turn = [
        each[turn]
        for turn in range(max(map(len, cores.values()), default=0))
        for each in cores.values()
        if turn < len(each)
    ]
    return set(in_turn[: max(threads, 1)])


def pin(threads: int) -> None:
    """Keeps this process, and the threads that it starts from now on, on as many processors as it
    has threads, so that they do not move while they are timed."""
    # A container may forbid it: what is measured is right all the same, and less steady.
    with contextlib.suppress(PermissionError):
        os.sched_setaffinity(0, chosen(threads, os.sched_getaffinity(0)))


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Waits until no other process of this user measures on this host. A process that ends gives
    its turn away."""
    path = Path(tempfile.gettempdir()) / f"weft-tune-{os.getuid()}.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
