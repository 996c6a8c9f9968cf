# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of random programs, line by line: as PyTorch computes, in float64, and with rounding."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from random_lines import FLOATS, INTEGERS, Line

LAYOUTS = ("contiguous", "contiguous", "transposed", "strided", "expanded")
_SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.0, 3.0)
# Multiples of 1/64 up to this can be added in any order without rounding.
_MOST_EXACT = 256
_GRAIN = 64


@dataclass
class Argument:
    """A tensor of multiples of 1/8; or of indices below `places`; or, if `special`, also of zeros
    of both signs, infinities, NaN and the least normal number."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: str
    seed: int
    places: int | None = None
    special: bool = False

    def make(self, double: bool = False) -> torch.Tensor:
        """Makes the tensor. double: as float64, which has the same multiples of 1/8."""
        dtype = torch.float64 if double and self.dtype in FLOATS else self.dtype
        generator = torch.Generator().manual_seed(self.seed)
        base = _laid_out(self.shape, self.layout)
        if self.places is not None:
            drawn = torch.randint(self.places, base, generator=generator)
        elif self.special and self.dtype in FLOATS:
            least = torch.finfo(self.dtype).smallest_normal
            values = torch.tensor([*_SPECIAL, least, -least], dtype=torch.float64)
            drawn = values[torch.randint(len(values), base, generator=generator)]
        elif self.dtype in FLOATS:
            drawn = torch.randint(-32, 33, base, generator=generator) / 8
        elif self.dtype in INTEGERS:
            drawn = torch.randint(0, 9, base, generator=generator)
        else:
            drawn = torch.randint(2, base, generator=generator)
        return _shaped(drawn.to(dtype), self.shape, self.layout)


def _laid_out(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    match layout:
        case "transposed":
            return tuple(reversed(shape))
        case "strided":
            return (*shape[:-1], shape[-1] * 2) if shape else shape
        case "expanded":
            return (1, *shape[1:]) if shape else shape
    return shape


def _shaped(tensor: torch.Tensor, shape: tuple[int, ...], layout: str) -> torch.Tensor:
    match layout:
        case "transposed":
            return tensor.permute(list(reversed(range(tensor.dim()))))
        case "strided":
            return tensor[..., ::2] if shape else tensor
        case "expanded":
            return tensor.expand(shape)
    return tensor


class Run:
    """The values of a program's names.

    double: whether floats of every width are float64. rounding: adds rounding errors, None for
    none.
    """

    def __init__(self, double: bool, rounding: torch.Generator | None = None) -> None:
        self.double, self.rounding = double, rounding
        self.names: dict[str, Any] = {"torch": torch, "F": F}

    def give(self, argument: Argument) -> None:
        self.names[argument.name] = argument.make(self.double)

    def line(self, target: str | None, line: Line) -> None:
        text = written(line, self.double)
        before = torch.get_default_dtype()
        # The default type is that of operations on integers.
        torch.set_default_dtype(torch.float64 if self.double else torch.float32)
        try:
            if target is None:
                exec(text, self.names)
            else:
                self.names[target] = eval(text, self.names)
        finally:
            torch.set_default_dtype(before)

    def rounded(self, target: str | None, line: Line, eps: float, exact: torch.Tensor) -> None:
        """Runs the line with operands and results that are off by `eps` at random, except where
        `exact`."""
        assert self.rounding is not None
        if target is None:
            self.line(None, line)
            changed = self.names[line.operands[0]]
            if changed.is_floating_point():
                changed.copy_(torch.where(exact, changed, self._off(changed, eps)))
            return
        before = {name: self.names[name] for name in line.operands}
        self.line(target, line)
        as_it_is = self.names[target]
        if not as_it_is.is_floating_point():
            return
        for name, value in before.items():
            if value.is_floating_point():
                self.names[name] = self._off(value, eps)
        self.line(target, line)
        self.names.update(before)
        off = self._off(self.names[target], eps)
        self.names[target] = torch.where(exact, as_it_is, off)

    def _off(self, value: torch.Tensor, eps: float) -> torch.Tensor:
        """The value changed by one to two eps, so that no element stays the same, even in
        float64."""
        by = torch.rand(value.shape, generator=self.rounding, dtype=torch.float64) + 1
        signs = torch.randint(2, value.shape, generator=self.rounding) * 2 - 1
        return value * (1 + eps * by * signs)


def written(line: Line, double: bool) -> str:
    text = line.expression.format(*line.operands)
    return re.sub(
        "<(.*?)>",
        lambda kind: "torch.float64" if double and "float" in kind[1] else f"torch.{kind[1]}",
        text,
    )


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def is_short(numbers: torch.Tensor) -> torch.Tensor:
    grains = numbers * _GRAIN
    return (numbers.abs() <= _MOST_EXACT) & (grains == grains.round())


def share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
