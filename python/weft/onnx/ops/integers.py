# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of the unsigned integers that torch stores and hardly computes with.

uint16 and uint32 go through int64, which holds all their values. uint64 is looked at as int64:
sums, products and bits are the same, and order is with the first bit flipped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

_NARROW = {torch.uint16: 0xFFFF, torch.uint32: 0xFFFFFFFF}
_FLIP = -(1 << 63)


def ring(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wraps functions of sums, products and bits."""

    @functools.wraps(function)
    def computed(a: Tensor, b: Tensor) -> Tensor:
        if a.dtype in _NARROW:
            found = function(a.to(torch.int64), b.to(torch.int64)) & _NARROW[a.dtype]
            return found.to(a.dtype)
        if a.dtype == torch.uint64:
            return function(a.view(torch.int64), b.view(torch.int64)).view(torch.uint64)
        return function(a, b)

    return computed


def ordered(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wraps comparisons, and functions that pick one of two."""

    @functools.wraps(function)
    def computed(a: Tensor, b: Tensor) -> Tensor:
        if a.dtype in _NARROW:
            found = function(a.to(torch.int64), b.to(torch.int64))
            return found if found.dtype == torch.bool else found.to(a.dtype)
        if a.dtype == torch.uint64:
            found = function(a.view(torch.int64) ^ _FLIP, b.view(torch.int64) ^ _FLIP)
            return found if found.dtype == torch.bool else (found ^ _FLIP).view(torch.uint64)
        return function(a, b)

    return computed
