# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions of an observed call to a list or deque that each call fills."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


def over_numbers(
    function: Callable[[Any], Any], items: list | deque, part: slice | None = None
) -> Any:
    """`function(items)`, such as their sum, or that of a part of them.

    Raises: TypeError, if one of the items is no number of Python's, as it may then answer for
    itself.
    """
    if part is not None:
        items = items[part]
    if not {*map(type, items)} <= {int, float}:
        raise TypeError("expected numbers")
    return function(items)
