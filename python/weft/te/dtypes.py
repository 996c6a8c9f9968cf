# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types of tensor expressions, and the promotion between them, which is PyTorch's."""

from __future__ import annotations

from typing import Any

from weft.te.errors import TEError

FLOATS = ("bfloat16", "float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NAMES = ("bool", *INTEGERS, *FLOATS)
BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}


_OTHERS = {
    "bool_": "bool",
    "int": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}


def named(dtype: Any) -> str:
    """The name of a dtype, which may be given as a dtype of NumPy or PyTorch.

    Raises: TEError for a type that tensors of te cannot have.
    """
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    name = str(name).removeprefix("torch.")
    name = _OTHERS.get(name, name)
    if name not in NAMES:
        raise TEError(f"expected a dtype among {', '.join(NAMES)}; found {dtype!r}")
    return name


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def promoted(a: str, b: str) -> str:
    """The dtype of `a + b` for tensors of these dtypes: `torch.promote_types`."""
    if a == b:
        return a
    if is_float(a) or is_float(b):
        if is_float(a) and is_float(b):
            halves = {a, b} == {"bfloat16", "float16"}
            return "float32" if halves else max(a, b, key=FLOATS.index)
        return a if is_float(a) else b
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=NAMES.index)


def with_number(dtype: str, number: bool | int | float) -> str:
    """The dtype of `tensor + number`. The number changes it only if it is of a higher kind."""
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        return "int64" if dtype == "bool" else dtype
    return dtype if is_float(dtype) else "float32"


def reduced(kind: str, dtype: str) -> str:
    """The dtype of a reduction: sums and products of integers are int64, as in PyTorch."""
    return "int64" if kind in ("sum", "prod") and not is_float(dtype) else dtype
