# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.cov` and `torch.corrcoef` of a symbolic number of variables or observations: PyTorch
compares elements there, which a trace does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _is_written_out(x: Any) -> bool:
    return (
        isinstance(x, torch.Tensor)
        and x.dim() == 2
        and x.is_floating_point()
        and any(isinstance(size, torch.SymInt) for size in x.shape)
        and x.shape[0] != 1  # of one variable it is a scalar
    )


def _covariance(args: tuple, kwargs: dict[str, Any]) -> Any:
    """(variables, variables), of (variables, observations)."""
    if len(args) != 1:
        return NotImplemented
    given = {"correction": 1, "input": args[0], **kwargs}
    x, correction = given.get("input"), given["correction"]
    weights = [given.get("fweights"), given.get("aweights")]
    if not _is_written_out(x) or any(each is not None for each in weights):
        return NotImplemented
    # PyTorch warns of fewer observations than it takes off.
    if type(correction) is not int or correction not in (0, 1):
        return NotImplemented
    centred = x - x.mean(1, keepdim=True)
    return (centred @ centred.mT) / (x.shape[1] - correction)


def _correlation(args: tuple, kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs or not _is_written_out(args[0]):
        return NotImplemented
    covariance = _covariance(args, {})
    deviation = covariance.diagonal().sqrt()
    scaled = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return scaled.clamp(-1, 1)


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.cov: _covariance,
    torch.Tensor.cov: _covariance,
    torch.corrcoef: _correlation,
    torch.Tensor.corrcoef: _correlation,
}
