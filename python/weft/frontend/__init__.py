# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch programs → weft graphs in JSON. Loads torch, never MLIR."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.frontend.lowered import (
    AutogradReach,
    ChosenRows,
    Fallback,
    InputSource,
    Location,
    Lowered,
    OutputTarget,
    SizedLayout,
    Unsupported,
    Valid,
    ViewOf,
    asks_for_values,
    first_line,
)

if TYPE_CHECKING:
    from weft.frontend.exported import AllValues, lower, lower_all_values

__all__ = [
    "AllValues",
    "AutogradReach",
    "ChosenRows",
    "Fallback",
    "InputSource",
    "Location",
    "Lowered",
    "OutputTarget",
    "SizedLayout",
    "Unsupported",
    "Valid",
    "ViewOf",
    "asks_for_values",
    "first_line",
    "lower",
    "lower_all_values",
]


def __getattr__(name: str) -> Any:
    """What needs torch.export comes with it, which takes long to load."""
    if name in ("AllValues", "lower", "lower_all_values"):
        return getattr(importlib.import_module("weft.frontend.exported"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
