# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a call is repeated that other threads must not see.

A repetition starts from the state ahead of the call and ends in the state behind it, in the
program's own objects. Where no other thread lives, nobody sees it. Otherwise it happens in a child
process, which none of them shares.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from weft.capture.isolated import call_isolated, let_programs_run
from weft.capture.thread_state import ThreadState

T = TypeVar("T")


def in_child(function: Callable[[], T]) -> T:
    """`function()` in a child process. What it returns has to pickle.

    Raises: what `function` raised; Declined, as `call_isolated`.
    """
    settings, context = ThreadState(), contextvars.copy_context()
    count = torch.get_num_threads()

    def with_settings() -> T:
        # PyTorch's threads stayed in the parent. This thread gets others, and the same number, as
        # the order of its sums depends on it.
        torch.set_num_threads(count)
        let_programs_run()
        with settings.entered():
            return context.run(function)

    def on_a_new_thread() -> T:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(with_settings).result()

    found: T = call_isolated(on_a_new_thread, {})
    return found
