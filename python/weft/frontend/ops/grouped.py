# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of rows in groups, each with a matrix of its own: mixtures of experts."""

from __future__ import annotations

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers

_FEWEST_COLUMNS = 48  # compiler/Kernels/DotProduct/GroupedMatmul.cpp


@lowers("transformers.grouped_mm_fallback.default", "_grouped_mm.default")
def grouped_mm(site: Site, x: Value, weights: Value, offs: Value | None = None, *_):
    """x: (rows, k); weights: (groups, k, n), the transpose of (groups, n, k); offs: (groups).

    The former is what transformers (integrations/moe.py) defines for torch's older versions.
    """
    if not x.dtype == weights.dtype == site.dtype == torch.float32:
        raise Decline(f"groups of {x.dtype} and {weights.dtype}")
    if (x.rank, weights.rank) != (2, 3):
        raise Decline(f"groups of {x.rank} and {weights.rank} dims")
    lying, perm = site.builder.transpose_of(weights)
    if perm != [0, 2, 1]:
        raise Decline("matrices that lie (groups, in, out)")
    if lying.shape[1] < _FEWEST_COLUMNS or x.size * lying.size == 0:
        raise Decline(f"matrices of {lying.shape[1]} columns for {x.shape[0]} rows")
    return site.builder.grouped_dot(x, lying, offs)
