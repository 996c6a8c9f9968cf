# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samples of images at points (aten/src/ATen/native/cpu/GridSamplerKernel.cpp).

Places and weights are those of points, which all channels share.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.interpolate import cubic_weights
from weft.frontend.table import Site, lowers

_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_MOST_PLACES = 2**24  # float32 counts up to there


@lowers("grid_sampler.default", "grid_sampler_2d.default")
def grid_sample(
    site: Site, x: Value, grid: Value, interpolation: int, padding: int, align_corners: bool
):
    """x: (n, c, h, w); grid: (n, ..., 2), points (across, down) between -1 and 1."""
    if x.rank != 4:
        raise Decline(f"points in {x.rank - 2} dims")
    height, width = x.shape[2:]
    if x.dtype not in (torch.float32, torch.float64) or height * width > _MOST_PLACES:
        raise Decline(f"samples of {x.dtype} {x.shape}")
    if 0 in site.shape:
        return site.builder.constant(0, x.dtype, site.shape)
    b, taps = site.builder, _TAPS[interpolation]
    points = b.reshape(grid, [x.shape[0], grid.size // x.shape[0] // 2, 2])
    across, down = (
        taps(site, _coordinate(site, points, number, along), along)
        for number, along in enumerate(
            _Axis(extent, padding, align_corners) for extent in (width, height)
        )
    )
    flat = b.reshape(x, [*x.shape[:2], height * width])
    images = b.iota(torch.int32, points.shape[:2], 0)
    terms = []
    for row, of_row in down:
        for column, of_column in across:
            inside = b.binary("and", _within(site, row, height), _within(site, column, width))
            place = b.binary("add", b.scalar("mul", row, width), column)
            place = b.select(inside, place, b.constant(0, place.dtype, place.shape))
            found = b.gather(flat, [images, b.convert(place, torch.int32)], [0, 2])
            # What is not there is no number times zero.
            zeros = b.constant(0, found.dtype, found.shape)
            found = b.select(b.broadcast_in_dim(inside, [0, 1], found.shape), found, zeros)
            weight = b.binary("mul", of_column, of_row)
            weight = b.broadcast_in_dim(weight, [0, 1], found.shape)
            terms.append(b.binary("mul", found, weight))
    return b.reshape(b.transpose(b.total(terms), [0, 2, 1]), site.shape)


@dataclass(frozen=True)
class _Axis:
    """extent: elements along it. padding: what stands for those beyond."""

    extent: int
    padding: int
    align_corners: bool


def _coordinate(site: Site, points: Value, number: int, axis: _Axis) -> Value:
    """Number `number` of each point, in elements: (n, points)."""
    b = site.builder
    at = b.reshape(b.slice(points, 2, number, number + 1), points.shape[:2])
    at = b.scalar("add", at, 1)
    if axis.align_corners:
        return b.scalar("mul", at, (axis.extent - 1) / 2)
    return b.scalar("sub", b.scalar("mul", at, axis.extent / 2), 0.5)


def _padded(site: Site, at: Value, axis: _Axis) -> Value:
    """The indices at which elements beyond the first and the last one are found."""
    if axis.padding == _ZEROS:
        return at
    if axis.padding == _REFLECTION:
        at = _reflected(site, at, axis)
    b = site.builder
    # What is no number comes to lie at 0.
    at = b.select(b.compare("gt", at, 0), at, b.constant(0, at.dtype, at.shape))
    return b.scalar("min", at, axis.extent - 1)


def _reflected(site: Site, at: Value, axis: _Axis) -> Value:
    """Between the first and the last element, or their outer edges."""
    b = site.builder
    low, span = (0.0, axis.extent - 1) if axis.align_corners else (-0.5, axis.extent)
    away = b.unary("abs", b.scalar("sub", at, low))
    turns = b.unary("trunc", b.scalar("div", away, 2 * span))
    rest = b.binary("sub", away, b.scalar("mul", turns, 2 * span))
    back = b.binary("sub", b.constant(2 * span, at.dtype, at.shape), rest)
    return b.scalar("add", b.binary("min", rest, back), low)


def _within(site: Site, at: Value, extent: int) -> Value:
    b = site.builder
    return b.binary("and", b.compare("ge", at, 0), b.compare("lt", at, extent))


# What an interpolation takes along an axis: whole numbers, and their weights.
_Taps = list[tuple[Value, Value]]


def _linear(site: Site, at: Value, axis: _Axis) -> _Taps:
    b, at = site.builder, _padded(site, at, axis)
    low = b.unary("floor", at)
    high = b.scalar("add", low, 1)
    return [(low, b.binary("sub", high, at)), (high, b.binary("sub", at, low))]


def _nearest(site: Site, at: Value, axis: _Axis) -> _Taps:
    b, at = site.builder, _padded(site, at, axis)
    return [(b.unary("round_even", at), b.constant(1, at.dtype, at.shape))]


def _cubic(site: Site, at: Value, axis: _Axis) -> _Taps:
    """Padded one by one."""
    b = site.builder
    low = b.unary("floor", at)
    part = b.binary("sub", at, low)
    # Reflected from afar, where float32 has no halves, they are whole once more.
    places = [
        b.unary("trunc", _padded(site, b.scalar("add", low, offset), axis))
        for offset in (-1, 0, 1, 2)
    ]
    return list(zip(places, cubic_weights(site, part), strict=True))


# By torch's interpolation modes.
_TAPS = [_linear, _nearest, _cubic]
