# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of values, and where IR comes from in the user's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from weft import errors
from weft.frontend.dtypes import DTYPES, NAMES

_WRITTEN = {"bool": "i1", "u8": "ui8"}


@dataclass(frozen=True)
class TensorType:
    """A tensor's shape and element type ("f32", "bf16", "i64", "bool", …).

    layout: where the elements lie, as MLIR writes it; empty for row-major.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    def __str__(self) -> str:
        sizes = "".join(f"{size}x" for size in self.shape)
        layout = f", {self.layout}" if self.layout else ""
        return f"tensor<{sizes}{_WRITTEN.get(self.dtype, self.dtype)}{layout}>"


@dataclass(frozen=True)
class OtherType:
    """A type that the graph does not have, such as a memref of a later stage."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Location:
    """A line of Python that made an op. function: the name of the one it stands in, if known."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        inside = f" ({self.function})" if self.function else ""
        return f"{self.file}:{self.line}{inside}"


def tensor(*shape: int, dtype: str | torch.dtype = "f32") -> TensorType:
    """The type of a row-major tensor: `weft.ir.tensor(3, 4)`, `weft.ir.tensor(8, dtype="i64")`.

    Raises: errors.IRError for an element type or a size that no tensor has.
    """
    name = NAMES.get(dtype) if isinstance(dtype, torch.dtype) else dtype
    if name not in DTYPES:
        raise errors.IRError(f"expected a dtype among {sorted(DTYPES)}, found {dtype!r}")
    if any(not isinstance(size, int) or size < 0 for size in shape):
        raise errors.IRError(f"expected sizes that are whole numbers, found {list(shape)}")
    return TensorType(tuple(shape), name)


def type_of(description: tuple[str, str, str, tuple[int, ...]]) -> TensorType | OtherType:
    """The type that the session's description says."""
    text, dtype, layout, shape = description
    return TensorType(shape, dtype, layout) if dtype else OtherType(text)


def written(type_: Any) -> str:
    """A type as MLIR writes it; text is taken as it is.

    Raises: errors.IRError, if it is no type.
    """
    if isinstance(type_, (TensorType, OtherType, str)):
        return str(type_)
    raise errors.IRError(f"expected a type such as weft.ir.tensor(3, 4), found {type_!r}")
