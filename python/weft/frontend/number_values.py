# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of Python as values of a graph that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.numbers import Number

if TYPE_CHECKING:
    from weft.frontend.builder import Builder


def number_value(
    builder: Builder, number: Number, dtype: torch.dtype, shape: Sequence[int]
) -> Value:
    """As `Builder.constant` has it. PyTorch makes float32 of one on the way to half precision. Of a
    graph that takes none it is a constant."""
    given = builder.graph.numbers
    if given is None or 0 in shape or dtype == torch.bool:
        value = bool(number) if dtype == torch.bool else number.fixed()
        return builder.constant(value, dtype, shape)
    place = number.numbers.input_of(number, dtype)
    element = builder.reshape(builder.slice(given, 0, place, place + 1), ())
    wide = builder.convert(element, opmath(dtype))
    return builder.broadcast(builder.convert(wide, dtype), shape)
