# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of integers, which tell what checks of indices can be left out."""

from __future__ import annotations

import torch

from weft.frontend.graph import Value

Bounds = tuple[int, int]  # the least and the largest


def interval(op: str, x: Value, y: Value) -> Bounds | None:
    """The bounds of the op's result, if its operands' are known and its type holds them."""
    if x.bounds is None or y.bounds is None:
        return None
    (a, b), (c, d) = x.bounds, y.bounds
    match op:
        case "add":
            bounds = a + c, b + d
        case "sub":
            bounds = a - d, b - c
        case "mul":
            products = a * c, a * d, b * c, b * d
            bounds = min(products), max(products)
        case "max":
            bounds = max(a, c), max(b, d)
        case "min":
            bounds = min(a, c), min(b, d)
        case _:
            return None
    return bounds if fits(bounds, x.dtype) else None


def hull(*values: Value) -> Bounds | None:
    """Around all of them."""
    if any(value.bounds is None for value in values):
        return None
    return min(v.bounds[0] for v in values), max(v.bounds[1] for v in values)


def fits(bounds: Bounds | None, dtype: torch.dtype) -> bool:
    if bounds is None:
        return False
    limits = torch.iinfo(dtype)
    return limits.min <= bounds[0] and bounds[1] <= limits.max
