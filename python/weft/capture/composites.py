# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Composite operations whose C++ asks for values of tensors, such as whether weights are positive,
or makes symbolic sizes numbers, written without that, and without writes where a program need not
have any. For a process that traces and ends: they replace torch's own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.utils import rnn

from weft.frontend.covariances import covariance


@contextlib.contextmanager
def composites_written_out() -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL", "CompositeImplicitAutograd")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*[Oo]verrid")
        for name, kernel in _WRITTEN_OUT.items():
            library.impl(name, kernel, allow_override=True)
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


def _kron(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rank = max(x.dim(), y.dim())
    one, other = ((*[1] * (rank - each.dim()), *each.shape) for each in (x, y))
    apart = x.reshape([n for size in one for n in (size, 1)])
    within = y.reshape([n for size in other for n in (1, size)])
    return (apart * within).reshape([a * b for a, b in zip(one, other)])


def _take_along_dim(x: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """x, indices: of one rank, broadcast along all dims but `dim`."""
    if indices.dtype != torch.int64 or (dim is not None and x.dim() != indices.dim()):
        raise RuntimeError("elements along a dim by what are no indices of them")
    if dim is None:
        return x.view(-1).gather(0, indices.view(-1))
    along = range(x.dim())[dim]
    sizes, taken = list(x.shape), list(indices.shape)
    sizes[along], taken[along] = taken[along], sizes[along]
    indices = torch.where(indices < 0, indices + taken[along], indices)
    indices = indices.expand(torch.broadcast_shapes(sizes, indices.shape))
    return x.expand(torch.broadcast_shapes(x.shape, taken)).gather(along, indices)


def _max_pool1d(*args: Any, **kwargs: Any) -> torch.Tensor:
    return _max_pool1d_with_indices(*args, **kwargs)[0]


def _max_pool1d_with_indices(
    x: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (batch, channels, time), or (channels, time)."""
    stride = stride or kernel
    if x.dim() not in (2, 3) or any(len(each) != 1 for each in (kernel, stride, padding, dilation)):
        raise RuntimeError("a pool along time whose windows have several dims")
    settings = ((1, *kernel), (1, *stride), (0, *padding), (1, *dilation), ceil_mode)
    both = torch.ops.aten.max_pool2d_with_indices(x.unsqueeze(-2), *settings)
    return both[0].squeeze(-2), both[1].squeeze(-2)


_WRITTEN_OUT = {
    "cov": covariance,
    "kron": _kron,
    "take_along_dim": _take_along_dim,
    "max_pool1d": _max_pool1d,
    "max_pool1d_with_indices": _max_pool1d_with_indices,
}
