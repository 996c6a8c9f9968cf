# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.bincount` with a least number of bins. How many there are depends on data; here there are
as many as that. An element that has no bin fails the check of indices, and PyTorch runs the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_PARAMETERS = ("input", "weights", "minlength")


def _counted(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    x, weights, bins = given.get("input"), given.get("weights"), given.get("minlength", 0)
    if len(args) > len(_PARAMETERS) or given.keys() - {*_PARAMETERS}:
        return NotImplemented
    if not isinstance(x, torch.Tensor) or x.dim() != 1 or x.dtype not in (torch.int64, torch.int32):
        return NotImplemented
    if type(bins) is not int or bins < 1 or not isinstance(x.shape[0], torch.SymInt):
        return NotImplemented
    if weights is None:
        dtype = torch.int64
        weights = torch.ones(x.shape, dtype=dtype)
    elif isinstance(weights, torch.Tensor) and weights.dim() == 1:
        if weights.requires_grad:  # PyTorch's counts have no derivative
            return NotImplemented
        dtype = weights.dtype if weights.dtype == torch.float32 else torch.float64
    else:
        return NotImplemented
    return torch.zeros(bins, dtype=dtype).index_add(0, x.long(), weights.to(dtype))


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.bincount: _counted,
    torch.Tensor.bincount: _counted,
}
