# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a test's work in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """`work(number)` for each number below `count`, in a thread of its own under no_grad.

    Raises: what the first work to fail has raised, after all have ended.
    """
    failures = []

    def guarded(number):
        try:
            with torch.no_grad():  # a thread's own state
                work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
