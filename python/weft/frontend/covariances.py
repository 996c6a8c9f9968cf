# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.cov` and `torch.corrcoef` in ops of the table: torch's own C++ asks whether there are
degrees of freedom, as an element of a tensor."""

from __future__ import annotations

import torch


def covariance(
    x: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """x: (variables, observations), or one variable. To (variables, variables), squeezed."""
    if fweights is not None or aweights is not None:
        raise RuntimeError("a covariance with weights looks at their values")
    if x.dim() > 2 or x.dtype == torch.bool or x.is_complex():
        raise RuntimeError(f"a covariance of {x.dtype} with {x.dim()} dims")
    rows = x.view(1, -1) if x.dim() < 2 else x
    count = rows.shape[1]
    if count <= correction:
        raise RuntimeError("PyTorch warns of a covariance of too few observations")
    centred = rows - (rows.sum(1) / count).unsqueeze(1)
    return torch.true_divide(torch.mm(centred, centred.t()), count - correction).squeeze()


def correlation(x: torch.Tensor) -> torch.Tensor:
    """x: as above."""
    found = covariance(x)
    if not found.dim():
        return found / found
    deviation = found.diag().sqrt()
    return (found / deviation.view(-1, 1) / deviation.view(1, -1)).clip(-1, 1)
