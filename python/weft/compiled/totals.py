# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled callable has counted and spent, for its `stats()`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Totals:
    graphs: int = 0
    hits: int = 0  # in addition to those that C++ counts
    misses: int = 0
    captures: int = 0
    capture_seconds: float = 0.0
    compile_seconds: float = 0.0
    verify_seconds: float = 0.0
