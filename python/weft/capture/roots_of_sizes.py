# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math.sqrt` of a size that is a symbol, which the function of C would make a number."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch


@contextlib.contextmanager
def roots_of_sizes() -> Iterator[None]:
    """While a trace runs, in a process of its own."""
    of_number = math.sqrt

    def sqrt(x: Any, /) -> Any:
        return torch._sym_sqrt(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else of_number(x)

    with mock.patch.object(math, "sqrt", sqrt):
        yield
