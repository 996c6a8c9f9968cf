# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padded tensors in PyTorch's ops, and what of them counts: see `lowered.Valid`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

# Of each dim its factors: (size, coefficients, constant), all of which count where there are no
# coefficients, else the first coefficients * symbols + constant.
PaddedDims = Sequence[Sequence[tuple[int, Sequence[int] | None, int]]]


def counting(dims: PaddedDims, symbols: Sequence[int]) -> list[list[int]]:
    """How many elements count along each factor of each dim."""
    return [
        [
            size if of is None else sum(c * n for c, n in zip(of, symbols)) + constant
            for size, of, constant in dim
        ]
        for dim in dims
    ]


def part_of_padded(padded: torch.Tensor, dims: PaddedDims, symbols: Sequence[int]) -> torch.Tensor:
    """What counts."""
    counts = counting(dims, symbols)
    part = padded.reshape([size for dim in dims for size, *_ in dim])
    for place, count in enumerate(count for dim in counts for count in dim):
        part = part.narrow(place, 0, count)
    return part.reshape([math.prod(each) for each in counts])


def padded_with_zeros(part: torch.Tensor, dims: PaddedDims, symbols: Sequence[int]) -> torch.Tensor:
    """The padded tensor of which `part` is what counts."""
    whole = [size for dim in dims for size, *_ in dim]
    counts = [count for dim in counting(dims, symbols) for count in dim]
    behind = [n for size, count in zip(whole[::-1], counts[::-1]) for n in (0, size - count)]
    shape = [math.prod(size for size, *_ in dim) for dim in dims]
    return F.pad(part.reshape(counts), behind).reshape(shape)
