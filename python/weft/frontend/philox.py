# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout's masks by a counter-based generator (`rng="philox"`), said in torch and in the graph.

A call draws one key, two numbers of 32 bits, from PyTorch's generator where it first needs one, so
that `torch.manual_seed` fixes its masks. Whether element i in row-major order is kept in the k-th
draw of the call is a function of the key, k and i: no matter how many threads compute it, or how
often. A probability is rounded to a multiple of 2**-32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_MASK, _HALF = 0xFFFFFFFF, 1 << 31
_MULTIPLIER, _WEYL, _ROUNDS = 0xD256D193, 0x9E3779B9, 10

# What draws a key; its results are i32.
KEY = (torch.ops.aten.randint.low, (-_HALF, _HALF, [2]), {"dtype": torch.int32})


def philox(low: torch.Tensor, high: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """The first word of Philox2x32-10 of the counter (low, high), element by element: int32.

    Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    low, high, key = (each.long() & _MASK for each in (low, high, key))
    for number in range(_ROUNDS):
        product = low * _MULTIPLIER  # the bits are right, whatever the sign
        round_key = (key + number * _WEYL) & _MASK
        low, high = ((product >> 32) & _MASK) ^ round_key ^ high, product & _MASK
    return _signed(low).int()


def border(probability: float) -> int:
    """What is kept with this probability: elements whose bits, as a signed number, are smaller."""
    return min(round(probability * (_MASK + 1)), _MASK + 1) - _HALF


def kept(shape: torch.Size, probability: float, key: torch.Tensor, draw: int) -> torch.Tensor:
    """The mask of the draw with this number, bool in row-major order. key: (2,) int32."""
    low = torch.arange(shape.numel())
    high = (key[1] + draw).expand_as(low)
    bits = philox(low, high, key[0].expand_as(low)).long()
    return (bits < border(probability)).view(shape)


class PhiloxDraws(TorchDispatchMode):
    """Within, `bernoulli_` with a number, which is what dropout calls, draws as a program does."""

    def __init__(self) -> None:
        super().__init__()
        self._key: torch.Tensor | None = None
        self._draws = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func is not torch.ops.aten.bernoulli_.float:
            return func(*args, **(kwargs or {}))
        tensor, *probability = args
        if self._key is None:
            function, positional, named = KEY
            self._key = function(*positional, **named)
        given = probability[0] if probability else (kwargs or {}).get("p", 0.5)
        mask = kept(tensor.shape, given, self._key, self._draws)
        self._draws += 1
        return tensor.copy_(mask)


def _signed(bits: torch.Tensor) -> torch.Tensor:
    return (bits ^ _HALF) - _HALF
