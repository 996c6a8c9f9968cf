# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear interpolation along the last dims (aten/src/ATen/native/cpu/UpSampleKernel.cpp).

torch weighs both neighbours; its decomposition adds a part of their difference instead, which
is no number between two infinite elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.index import gathered_along
from weft.frontend.table import Site, lowers

_FAMILY = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")


@lowers(*(f"{name}.vec" for name in _FAMILY))
def upsample_linear(site: Site, x: Value, output_size, align_corners, scale_factors):
    return _interpolate(site, x, align_corners, scale_factors)


@lowers(*(f"{name}.default" for name in _FAMILY))
def upsample_linear_to(site: Site, x: Value, output_size, align_corners, *scales):
    return _interpolate(site, x, align_corners, scales)


@dataclass(frozen=True)
class _Neighbours:
    """Along one dim, for each result: where both stand, and their weights."""

    places: tuple[Value, Value]
    weights: tuple[Value, Value]


def _interpolate(site: Site, x: Value, align_corners: bool, scales: Sequence | None) -> Value:
    if not is_float(x.dtype):
        raise Decline(f"linear interpolation of {x.dtype}")
    b, n = site.builder, x.rank - 2
    scales = list(scales or ()) + [None] * (n - len(scales or ()))
    along = [_neighbours(site, x, 2 + i, align_corners, scale) for i, scale in enumerate(scales)]
    result = b.convert(x, opmath(x.dtype))
    # One dim at a time, the innermost first: what the others read was blended once.
    for dim in reversed(range(2, x.rank)):
        terms = []
        for at, weight in zip(along[dim - 2].places, along[dim - 2].weights):
            found = gathered_along(b, result, dim, at)
            terms.append(b.binary("mul", found, b.along(weight, dim, found.shape)))
        result = b.binary("add", *terms)
    return site.finish(result)


def _neighbours(
    site: Site, x: Value, dim: int, align_corners: bool, scale: float | None
) -> _Neighbours:
    b, size, count = site.builder, x.shape[dim], site.shape[dim]
    dtype = opmath(x.dtype)
    at = b.convert(b.iota(torch.int64, [count], 0), dtype)
    if align_corners:
        at = b.scalar("mul", at, (size - 1) / (count - 1) if count > 1 else 0)
    else:
        step = 1 / scale if scale else size / count
        at = b.scalar("sub", b.scalar("mul", b.scalar("add", at, 0.5), step), 0.5)
        at = b.scalar("max", at, 0)
    last = b.constant(size - 1, torch.int64, [count])
    low = b.binary("min", b.convert(at, torch.int64), last)
    high = b.binary("min", b.scalar("add", low, 1), last)
    part = b.scalar("min", b.binary("sub", at, b.convert(low, dtype)), 1)
    rest = b.binary("sub", b.constant(1, dtype, [count]), part)
    return _Neighbours((low, high), (rest, part))
