# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.linspace` of a symbolic number of steps: the number is an int to PyTorch, and a symbol
would become one. It is written by an `arange`, whose end may be a symbol."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

_PARAMETERS = ("start", "end", "steps")
_DTYPES = (torch.float32, torch.float64)


def _of_symbolic_steps(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    dtype = given.pop("dtype", None) or torch.get_default_dtype()
    if len(args) > len(_PARAMETERS) or not _is_written_out(given, dtype):
        return NotImplemented
    return _spaced(given["start"], given["end"], given["steps"], dtype)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {torch.linspace: _of_symbolic_steps}


def _is_written_out(given: dict[str, Any], dtype: torch.dtype) -> bool:
    others = {name: each for name, each in given.items() if name not in _PARAMETERS}
    is_plain = all(name == "device" and str(each) == "cpu" for name, each in others.items() if each)
    ends = [given.get("start"), given.get("end")]
    return (
        is_plain
        and dtype in _DTYPES
        and isinstance(given.get("steps"), torch.SymInt)
        and all(type(each) in (int, float) and math.isfinite(each) for each in ends)
    )


def _spaced(start: float, end: float, steps: torch.SymInt, dtype: torch.dtype) -> torch.Tensor:
    """(steps): RangeFactories: from the start in the first half, from the end in the second. A
    symbol is no size of 0 or 1."""
    n, last = torch.arange(steps, dtype=torch.float64), steps - 1
    up = n * (end - start) / last + start
    down = (n - last) * (end - start) / last + end
    return torch.where(n < steps // 2, up, down).to(dtype)
