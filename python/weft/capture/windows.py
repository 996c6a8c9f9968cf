# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of a symbolic length, such as `torch.hann_window(n)`: the length is an int to PyTorch,
and a symbol would become one. They are written as PyTorch's factories are, by an `arange`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

_DTYPES = (torch.float32, torch.float64)
_PARAMETERS = ("window_length", "periodic", "alpha", "beta")


def _cosines(default: Sequence[float], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The sum of the coefficients, of alternating sign, times the cosines of 0, 1, 2, … times the
    angle. default: for those of them that are no arguments."""
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    length, periodic = given.pop("window_length", None), given.pop("periodic", True)
    dtype = given.pop("dtype", None) or torch.get_default_dtype()
    coefficients = list(default)
    for place, name in enumerate(("alpha", "beta")):
        coefficients[place] = given.pop(name, coefficients[place])
    others = all(name == "device" and str(each) == "cpu" for name, each in given.items() if each)
    is_plain = others and dtype in _DTYPES and type(periodic) is bool
    is_plain = is_plain and all(type(each) in (int, float) for each in coefficients)
    if not isinstance(length, torch.SymInt) or not is_plain:
        return NotImplemented
    # A symbol is no size of 0 or 1.
    angle = torch.arange(length, dtype=torch.float64) * (2 * math.pi)
    angle = angle / (length if periodic else length - 1)
    window = coefficients[0] - coefficients[1] * angle.cos()
    for times, each in enumerate(coefficients[2:], 2):
        window = window + (-1) ** times * each * (angle * times).cos()
    return window.to(dtype)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.hann_window: functools.partial(_cosines, (0.5, 0.5)),
    torch.hamming_window: functools.partial(_cosines, (0.54, 0.46)),
    torch.blackman_window: functools.partial(_cosines, (0.42, 0.5, 0.08)),
}
