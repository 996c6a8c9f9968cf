# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padded tensors, the arguments and results of a program for a range of sizes, and what of them
counts, as autograd sees them: gradients of padding are zero, and those that come to it are lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft import _core
from weft.frontend.lowered import Valid
from weft.frontend.padded import padded_with_zeros


def connected(leaves: Sequence[Any], padded: tuple) -> tuple:
    """The arguments of a range's program, of which gradients come to those of the call.

    leaves: of the call. padded: its tensors in their order, copied where they are padded.
    """
    tensors = [each for each in leaves if isinstance(each, torch.Tensor)]
    if not any(each.requires_grad for each in tensors):
        return padded
    made = list(padded)
    for place, (own, copy) in enumerate(zip(tensors, padded)):
        if own is not copy and own.requires_grad:
            made[place] = _Padded.apply(own, copy)
            if (original := copy.__dict__.get("weft_valid_part")) is not None:
                made[place].weft_valid_part = original
    return tuple(made)


def part_of(padded: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The first elements of a tensor along each dim."""
    for dim, size in enumerate(shape):
        padded = padded.narrow(dim, 0, size)
    return padded


def valid_part(padded: torch.Tensor, valid: Valid, sizes: torch.Tensor) -> torch.Tensor:
    """What counts of a result, in memory of its own. sizes: int64 (symbols)."""
    if padded.requires_grad and torch.is_grad_enabled():
        return _ValidPart.apply(padded, valid, sizes)
    return _core.ValidPart(valid).of(padded, sizes)


class _Padded(torch.autograd.Function):
    """A padded copy of a tensor."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
        ctx.shape = own.shape
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return part_of(gradient, ctx.shape).contiguous(), None


class _ValidPart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, padded: torch.Tensor, valid: Valid, sizes: torch.Tensor) -> torch.Tensor:
        ctx.valid, ctx.sizes = valid, sizes
        return _core.ValidPart(valid).of(padded, sizes)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        gradient = padded_with_zeros(gradient, ctx.valid.dims, ctx.sizes.tolist())
        return gradient, None, None
