# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of random programs, the table of ops that write them, and the values that they accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from random_programs import Writer

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16)
# Integers that fit every integer type.
MOST_TO_INTEGER = 100


class Draw(Protocol):
    def integer(self, least: int, most: int) -> int: ...
    def choice(self, options): ...


@dataclass(frozen=True)
class Line:
    """A line: `expression` of the names in `operands`. arithmetic: whether it may round. changes:
    whether it is a statement that changes its first operand in place. by_chance: whether an element
    of PyTorch's without a visible rounding error may nevertheless be inexact."""

    expression: str
    operands: tuple[str, ...]
    arithmetic: bool = True
    changes: bool = False
    by_chance: bool = False


Op = Callable[["Writer", Draw], Line | None]
OPS: list[Op] = []


def op(function: Op) -> Op:
    OPS.append(function)
    return function


def floats(tensor: torch.Tensor) -> bool:
    return tensor.dtype in FLOATS


def integers(tensor: torch.Tensor) -> bool:
    return tensor.dtype in INTEGERS


def numbers(tensor: torch.Tensor) -> bool:
    return tensor.dtype != torch.bool


def any_type(tensor: torch.Tensor) -> bool:
    return True


def dimmed(kind: Callable[[torch.Tensor], bool], least: int = 1):
    return lambda tensor: kind(tensor) and tensor.dim() >= least


def drawn_dim(writer: Writer, draw: Draw, name: str) -> int:
    dims = writer.value(name).dim()
    return draw.integer(-dims, dims - 1)
