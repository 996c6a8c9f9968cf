# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neutral values of reductions, and types and constants as MLIR writes them."""

from __future__ import annotations

import math
import struct

from weft.te import dtypes

_BITS = {"bool": 1, "uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
_FLOAT_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}


def neutral(kind: str, dtype: str) -> bool | int | float:
    """The result of reducing no elements."""
    if kind in ("sum", "prod"):
        number = 0 if kind == "sum" else 1
        return float(number) if dtypes.is_float(dtype) else number
    if dtypes.is_float(dtype):
        return -math.inf if kind == "max" else math.inf
    if dtype == "bool":
        return kind == "min"
    if dtype == "uint8":
        return 0 if kind == "max" else 255
    top = 2 ** (_BITS[dtype] - 1)
    return -top if kind == "max" else top - 1


def stored_type(dtype: str) -> str:
    """The type of elements in memory, where a bool is a byte."""
    return _FLOAT_TYPES.get(dtype) or f"i{max(_BITS[dtype], 8)}"


def logical_type(dtype: str) -> str:
    """The type of elements in signatures."""
    if dtype in _FLOAT_TYPES:
        return _FLOAT_TYPES[dtype]
    return "ui8" if dtype == "uint8" else f"i{_BITS[dtype]}"


def computed_type(dtype: str) -> str:
    """The type of values in registers: half-precision types are float32, rounded after each
    operation."""
    if dtype in ("bfloat16", "float16"):
        return "f32"
    return _FLOAT_TYPES.get(dtype) or f"i{_BITS[dtype]}"


def of_lanes(element: str, lanes: int) -> str:
    """The type of a vector of this number of lanes, or of a scalar for 0."""
    return f"vector<{lanes}x{element}>" if lanes else element


def literal(value: bool | int | float, dtype: str) -> str:
    """A constant of `computed_type(dtype)`; floats by their bits."""
    if dtypes.is_float(dtype):
        if dtype == "float64":
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        try:
            bits = struct.pack("<f", value)
        except OverflowError:
            bits = struct.pack("<f", math.copysign(math.inf, value))
        return f"0x{struct.unpack('<I', bits)[0]:08X}"
    if dtype == "bool":
        return "true" if value else "false"
    width = _BITS[dtype]
    number = int(value) % 2**width
    return str(number - 2**width if number >= 2 ** (width - 1) else number)
