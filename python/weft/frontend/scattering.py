# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the op `scatter` means, said in torch, with the gradients that PyTorch's ops have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

_REDUCTIONS = {"prod": "prod", "max": "amax", "min": "amin"}


def scattered(
    kind: str,
    x: torch.Tensor,
    updates: torch.Tensor,
    indices: Sequence[torch.Tensor],
    dims: Sequence[int],
) -> torch.Tensor:
    """x with `updates` (indices' shape, then the dims that `dims` leaves) at `indices` of `dims`.

    kind: set, where the last of several counts, sum, prod, max or min. Updates outside are none.
    """
    kept = [d for d in range(x.dim()) if d not in dims]
    order, sizes = [*dims, *kept], [x.shape[d] for d in dims]
    table = x.permute(order)
    columns = table.shape[len(dims) :]
    rows, width = math.prod(sizes), math.prod(columns)
    at = torch.zeros_like(indices[0], dtype=torch.int64)
    inside = torch.ones_like(indices[0], dtype=torch.bool)
    for index, size in zip(indices, sizes, strict=True):
        at = at * size + index
        inside = inside & (index >= 0) & (index < size)
    at = torch.where(inside, at, rows).flatten()
    flat = table.reshape(rows, width)
    # Updates outside go to a row that is cut off.
    flat = torch.cat([flat, flat.new_zeros(1, width)])
    given = updates.reshape(at.numel(), width)
    result = _written(kind, flat, given, at)[:rows].reshape(*sizes, *columns)
    return result.permute([order.index(d) for d in range(x.dim())])


def _written(kind: str, x: torch.Tensor, updates: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    if kind == "set":
        return _Set.apply(x, updates, at)
    if kind == "sum":
        return x.index_add(0, at, updates)
    places = at[:, None].expand_as(updates)
    if x.dtype == torch.bool:
        number = x.to(torch.uint8)
        reduced = number.scatter_reduce(0, places, updates.to(torch.uint8), _REDUCTIONS[kind])
        return reduced.to(torch.bool)
    return x.scatter_reduce(0, places, updates, _REDUCTIONS[kind])


class _Set(torch.autograd.Function):
    """The gradient of an update is that of the place, whether another one overwrites it or not, as
    of PyTorch's scatter; which one stays is not left to the threads."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, updates: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        numbers = torch.arange(1, at.numel() + 1)
        last = torch.zeros(len(x), dtype=torch.int64).scatter_reduce(0, at, numbers, "amax")
        if not at.numel():
            return x.clone()
        return torch.where((last > 0)[:, None], updates[(last - 1).clamp(min=0)], x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        (at,) = ctx.saved_tensors
        return gradient.index_fill(0, at, 0), gradient[at], None
