# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the rules of special functions share."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Promotion, Site

# Elements that a rule computes in less time than a call of PyTorch's kernel takes beyond its own.
FEW = 1 << 11


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial by Horner's scheme, each step rounded once. The first coefficient is that of
    1."""
    value = b.constant(coefficients[-1], x.dtype, x.shape)
    for coefficient in reversed(coefficients[:-1]):
        value = b.fma(value, x, b.constant(coefficient, x.dtype, x.shape))
    return value


def single_operand(site: Site, x: Value, most: int | None = None) -> Value:
    """x in the type in which PyTorch computes, which is float32.

    Raises: Decline for float64, whose last digits these rules have not; and of more elements than
    `most`, where PyTorch's own vectors are faster than its calls are slow."""
    (x,) = site.promoted(x, kind=Promotion.INT_TO_FLOAT)
    if most is not None and x.size > most:
        raise Decline(f"{site.target} of {x.size} elements, for which PyTorch has vectors")
    if x.dtype != torch.float32:
        raise Decline(f"{site.target} of {x.dtype}")
    return x
