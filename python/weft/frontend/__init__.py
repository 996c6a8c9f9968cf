# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch programs → weft graphs in JSON. Loads torch, never MLIR."""

from weft.frontend.exported import AllValues, lower, lower_all_values
from weft.frontend.lowered import (
    Fallback,
    InputSource,
    Location,
    Lowered,
    OutputTarget,
    Unsupported,
    ViewOf,
)

__all__ = [
    "AllValues",
    "Fallback",
    "InputSource",
    "Location",
    "Lowered",
    "OutputTarget",
    "Unsupported",
    "ViewOf",
    "lower",
    "lower_all_values",
]
