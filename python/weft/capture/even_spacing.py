# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.linspace`, `torch.logspace` and grids of affine maps of a symbolic number of steps: the
number is an int to PyTorch, and a symbol would become one. They are written by an `arange`, whose
end may be a symbol."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

_PARAMETERS = ("start", "end", "steps")
_DTYPES = (torch.float32, torch.float64)


def _of_symbolic_steps(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    dtype = given.pop("dtype", None) or torch.get_default_dtype()
    if len(args) > len(_PARAMETERS) or not _is_written_out(given, dtype):
        return NotImplemented
    return _spaced(given["start"], given["end"], given["steps"]).to(dtype)


def _powers(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {"base": 10.0, **dict(zip((*_PARAMETERS, "base"), args)), **kwargs}
    dtype, base = given.pop("dtype", None) or torch.get_default_dtype(), given.pop("base")
    is_plain = len(args) <= len(_PARAMETERS) + 1 and type(base) in (int, float) and base > 0
    if not is_plain or not _is_written_out(given, dtype):
        return NotImplemented
    return torch.pow(base, _spaced(given["start"], given["end"], given["steps"])).to(dtype)


def _affine_grid(args: tuple, kwargs: dict[str, Any]) -> Any:
    """(batch, height, width, 2), as PyTorch's CPU kernel has it."""
    given = {
        "align_corners": False,
        **dict(zip(("theta", "size", "align_corners"), args)),
        **kwargs,
    }
    theta, size = given.get("theta"), given.get("size")
    if not (
        len(given) == 3
        and isinstance(theta, torch.Tensor)
        and theta.dtype in _DTYPES
        and size is not None
        and len(size) == 4
        and theta.dim() == 3
        and tuple(theta.shape[1:]) == (2, 3)
        and all(isinstance(each, torch.SymInt) for each in size[2:])
    ):
        return NotImplemented
    height, width = size[2:]
    x, y = (_centres(n, bool(given["align_corners"]), theta.dtype) for n in (width, height))
    x, y = x.expand(height, width), y.unsqueeze(1).expand(height, width)
    base = torch.stack([x, y, torch.ones_like(x)], -1).reshape(1, -1, 3)
    return (base.expand(size[0], -1, -1) @ theta.mT).reshape(size[0], height, width, 2)


def _centres(count: torch.SymInt, align_corners: bool, dtype: torch.dtype) -> torch.Tensor:
    """From -1 to 1: of the first to that of the last of so many pixels, or from edge to edge."""
    found = _spaced(-1, 1, count)
    return (found if align_corners else found * (count - 1) / count).to(dtype)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.linspace: _of_symbolic_steps,
    torch.logspace: _powers,
    F.affine_grid: _affine_grid,
}


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


def _spaced(start: float, end: float, steps: torch.SymInt) -> torch.Tensor:
    """(steps) float64: RangeFactories: from the start in the first half, from the end in the
    second. A symbol is no size of 0 or 1."""
    n, last = torch.arange(steps, dtype=torch.float64), steps - 1
    up = n * (end - start) / last + start
    down = (n - last) * (end - start) / last + end
    return torch.where(n < steps // 2, up, down)
