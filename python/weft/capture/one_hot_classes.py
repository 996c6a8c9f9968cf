# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`F.one_hot` of a symbolic number of classes, which PyTorch compares with the largest class. Here
a class that is too large fails the check of indices, and PyTorch runs the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

_PARAMETERS = ("input", "num_classes")


def _one_hot(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    x, classes = given.pop("input", None), given.pop("num_classes", -1)
    if given or len(args) > len(_PARAMETERS) or not isinstance(classes, torch.SymInt):
        return NotImplemented
    if not isinstance(x, torch.Tensor) or x.dtype != torch.int64:
        return NotImplemented
    return torch.zeros(*x.shape, classes, dtype=torch.int64).scatter(-1, x.unsqueeze(-1), 1)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {F.one_hot: _one_hot}
