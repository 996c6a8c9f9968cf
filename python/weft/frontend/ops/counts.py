# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often each number stands in a tensor."""

from __future__ import annotations

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.index import check_range
from weft.frontend.table import Site, lowers


@lowers("bincount.default")
def bincount(site: Site, x: Value, weights: Value | None = None, minlength: int = 0):
    """Of as many numbers as are asked for. A call with larger ones, whose result is longer, PyTorch
    runs."""
    b = site.builder
    if x.rank != 1 or x.dtype == torch.bool or (weights is not None and weights.shape != x.shape):
        raise Decline(f"{site.target} of {x.dtype} and {x.rank} dims")
    check_range(site, x, 0, minlength, f"bincount: a number is not in [0, {minlength})")
    places = b.convert(x, torch.int64)
    amounts = site.operand(1 if weights is None else weights, site.dtype, x.shape)
    return b.scatter(b.constant(0, site.dtype, site.shape), amounts, [places], [0], "sum")
