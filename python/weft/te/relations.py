# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the loops of a schedule come from one another."""

from __future__ import annotations

from dataclasses import dataclass

from weft.te.expressions import Axis


@dataclass(frozen=True)
class Split:
    """parent = outer * factor + inner; if `parts`, the factor follows from so many of them."""

    parent: Axis
    outer: Axis
    inner: Axis
    factor: int
    parts: int = 0


@dataclass(frozen=True)
class Fuse:
    """fused = outer * (extent of inner) + inner."""

    outer: Axis
    inner: Axis
    fused: Axis
