# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of float32 functions in units in the last place, over the bit patterns of float32."""

from collections.abc import Callable, Iterator

import numpy as np
import torch

# Name, function, bound in ULP. 1 / (1 + exp(-x)) itself loses 2.34 with a perfect exp.
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "exp": (torch.exp, 1.0),
    "exp2": (torch.exp2, 1.0),
    "expm1": (torch.expm1, 2.0),
    "log": (torch.log, 1.0),
    "log2": (torch.log2, 1.0),
    "log10": (torch.log10, 0.51),
    "sqrt": (torch.sqrt, 0.6),
    "log1p": (torch.log1p, 2.0),
    "tanh": (torch.tanh, 2.0),
    "erf": (torch.erf, 2.0),
    "erfc": (torch.erfc, 2.0),
    "sin": (torch.sin, 1.0),
    "cos": (torch.cos, 1.0),
    "tan": (torch.tan, 3.0),
    "asin": (torch.asin, 2.0),
    "acos": (torch.acos, 2.0),
    "atan": (torch.atan, 2.0),
    "sinh": (torch.sinh, 2.0),
    "cosh": (torch.cosh, 2.0),
    "asinh": (torch.asinh, 2.0),
    "acosh": (torch.acosh, 2.5),
    "atanh": (torch.atanh, 2.0),
    "sigmoid": (torch.sigmoid, 2.0),
}


def bit_patterns(stride: int, chunk: int) -> Iterator[torch.Tensor]:
    """Every `stride`-th float32 in the order of its bits, as tensors of `chunk` elements;
    the last one starts over."""
    count = -(-(2**32) // stride)
    for start in range(0, count, chunk):
        bits = np.arange(start, start + chunk, dtype=np.uint64) % count * stride
        yield torch.from_numpy(bits.astype(np.uint32).view(np.float32))


def worst_error(name: str, x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """The largest error of `y` (float32) as the function `name` of `x`, in ULP, and where."""
    error = errors(FUNCTIONS[name][0](x.double()), y)
    worst = error.argmax()
    return error[worst].item(), x[worst].item()


def errors(exact: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The errors of `y` (float32) against `exact` (float64) in ULP. They are infinite where zeros
    or infinities differ in kind or sign, or where NaN is missing."""
    nearest = exact.float()
    exponent = torch.frexp(exact).exponent.clamp(min=-125).double()
    error = (y.double() - exact).abs() / torch.exp2(exponent - 24)
    signs_differ = y.signbit() != nearest.signbit()
    same = (y == nearest) & ~signs_differ | y.isnan() & nearest.isnan()
    special = ~nearest.isfinite() | (exact == 0) | ~y.isfinite() | signs_differ
    return torch.where(special, torch.where(same, 0.0, torch.inf), error)
