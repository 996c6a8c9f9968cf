# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The relations between the loops of a schedule and the loops they were made from."""

from __future__ import annotations

from dataclasses import dataclass

from weft.te.expressions import Axis


@dataclass(frozen=True)
class Split:
    """parent = outer * factor + inner. If `parts` is given, the factor follows from that number."""

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
