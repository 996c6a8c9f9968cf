# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`F.embedding_bag` of as many indices in each bag, with a symbolic number of them or of bags:
PyTorch makes one row of all indices, in which bags begin at multiples of a size. It is an embedding
and a sum of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

_PARAMETERS = ("input", "weight", "offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode")
_PARAMETERS += ("sparse", "per_sample_weights", "include_last_offset", "padding_idx")
_SUMS: dict[str, Callable] = {"sum": torch.Tensor.sum, "mean": torch.Tensor.mean}


def _embedding_bag(args: tuple, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(_PARAMETERS, args)), **kwargs}
    indices, weights = given.get("input"), given.get("per_sample_weights")
    others = ("offsets", "max_norm", "scale_grad_by_freq", "sparse", "padding_idx")
    if (
        not isinstance(indices, torch.Tensor)
        or indices.dim() != 2
        or not any(isinstance(size, torch.SymInt) for size in indices.shape)
        or any(given.get(name) is not None and given[name] is not False for name in others)
        or given.get("mode", "mean") not in _SUMS
    ):
        return NotImplemented
    rows = F.embedding(indices, given["weight"])
    if weights is not None:
        rows = rows * weights.unsqueeze(-1)
    return _SUMS[given.get("mode", "mean")](rows, 1)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {F.embedding_bag: _embedding_bag}
