# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a row of `make bench-ops` measures, and the tensors that rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Op:
    """group, name: what the row is called. make: the call and its arguments, anew each time; a
    module is in evaluation mode. The arguments of a composition (an nn.Sequential) go to its
    first part."""

    group: str
    name: str
    make: Callable[[], tuple[Callable[..., object], tuple[torch.Tensor, ...]]]


class Apply(nn.Module):
    """A function as a part of a composition. held: further arguments, which stay the same."""

    def __init__(self, function: Callable[..., object], *held: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for number, tensor in enumerate(held):
            self.register_buffer(f"held{number}", tensor)

    def forward(self, x: object) -> object:
        given = x if isinstance(x, tuple) else (x,)
        return self.function(*given, *self.buffers())


def op(group: str, name: str, call: Callable[..., object], *args: Callable[[], object]) -> Op:
    """args: what makes each argument."""
    return Op(group, name, lambda: (call, tuple(make() for make in args)))


def module(group: str, name: str, make: Callable[[], nn.Module], *args: Callable[[], object]) -> Op:
    return Op(group, name, lambda: (make().eval(), tuple(each() for each in args)))


# What makes tensors, each of a shape.


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape).to(dtype)


def uniform(
    low: float, high: float, *shape: int, dtype: torch.dtype = torch.float32
) -> Callable[[], torch.Tensor]:
    return lambda: torch.empty(shape, dtype=dtype).uniform_(low, high)


def integers(
    low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64
) -> Callable[[], torch.Tensor]:
    """low: included; high: not."""
    return lambda: torch.randint(low, high, shape, dtype=dtype)


def flags(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.rand(shape) < 0.5


def channels_last(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape).to(memory_format=torch.channels_last)
