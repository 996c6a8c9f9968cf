# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch programs → weft graphs in JSON. Loads torch, never MLIR."""

from weft.frontend.exported import lower
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
    "Fallback",
    "InputSource",
    "Location",
    "Lowered",
    "OutputTarget",
    "Unsupported",
    "ViewOf",
    "lower",
]
