# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`max`, `min` and `math.pow` as they are in eager execution.

torch.export has others while it traces: the greater of two tensors becomes their elementwise
maximum, which has other gradients where both are equal, that of a tensor and a number is always a
tensor, and math.pow of two ints is an int.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.frontend.numbers import Arithmetic

_OWN = (builtins.max, builtins.min, math.pow)
_type = type  # what it is while others stand in its place


@contextlib.contextmanager
def eager_builtins() -> Iterator[None]:
    """Within it, the user's code runs."""
    before = (builtins.max, builtins.min, math.pow)
    largest, smallest, power = _OWN
    chosen = _of_symbols(largest, torch.sym_max), _of_symbols(smallest, torch.sym_min)
    builtins.max, builtins.min, math.pow = *chosen, power
    try:
        yield
    finally:
        builtins.max, builtins.min, math.pow = before


def _of_symbols(function: Callable[..., Any], of_sizes: Callable[..., Any]) -> Any:
    """`function`, without a condition on two sizes, or on two numbers that the program takes."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 2 or kwargs:
            return function(*args, **kwargs)
        for each in args:
            if issubclass(_type(each), Arithmetic):
                made = each._apply(function, *args)
                return function(*args) if made is NotImplemented else made
        kinds = set(map(_type, args))
        if torch.SymInt in kinds and kinds <= {int, torch.SymInt}:
            return of_sizes(*args)
        return function(*args)

    return chosen
