# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The element types that the graph dialect has, and their names in JSON."""

from __future__ import annotations

import torch

NAMES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
DTYPES: dict[str, torch.dtype] = {name: dtype for dtype, name in NAMES.items()}


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def is_integer(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and dtype != torch.bool


def opmath(dtype: torch.dtype) -> torch.dtype:
    """The type in which torch's kernels compute on elements of `dtype`."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def identity(kind: str, dtype: torch.dtype) -> bool | int | float:
    """What changes no sum, prod, max or min that it is part of."""
    if kind in ("sum", "prod"):
        return int(kind == "prod")
    if dtype == torch.bool:
        return kind == "min"
    if is_float(dtype):
        return float("-inf" if kind == "max" else "inf")
    limits = torch.iinfo(dtype)
    return limits.min if kind == "max" else limits.max
