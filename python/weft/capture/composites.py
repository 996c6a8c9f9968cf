# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Composite operations whose C++ asks for values of tensors, such as whether weights are positive,
written without those questions, and without writes where a program need not have any. For a process
that traces and ends: they replace torch's own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import torch
from torch.nn.utils import rnn


@contextlib.contextmanager
def composites_written_out() -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL", "CompositeImplicitAutograd")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*[Oo]verrid")
        library.impl("cov", _cov, allow_override=True)
    inverted = rnn.invert_permutation
    rnn.invert_permutation = _invert_permutation
    try:
        yield
    finally:
        library._destroy()
        rnn.invert_permutation = inverted


def _invert_permutation(permutation: torch.Tensor | None) -> torch.Tensor | None:
    """No two elements are equal, so that there is one order."""
    return None if permutation is None else torch.argsort(permutation, stable=True)


def _cov(
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
