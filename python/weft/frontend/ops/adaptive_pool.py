# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adaptive pooling: windows of about the same size, one for each element of the result."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import is_float
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.pool import MOST_STEPS, WindowGeometry, largest_with_places
from weft.frontend.ops.reduce import accumulated, mean_of
from weft.frontend.table import Site, lowers


@lowers(
    *("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default"),
    *("_adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default"),
    "_adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(site: Site, x: Value, output_size):
    if 0 in site.shape:
        return site.builder.constant(0, site.dtype, site.shape)
    x = accumulated(site, x)
    dims = list(range(x.rank - len(output_size), x.rank))
    if all(site.shape[dim] == 1 for dim in dims):
        return site.finish(mean_of(site, x, dims, True))
    if _has_uneven(site, x, dims):
        for dim in dims:
            x = _mean_of_uneven(site, x, dim)
        return site.finish(x)
    windows = _divisible(site, x, dims)
    total = site.builder.reduce_window("sum", x, windows, windows, [1] * x.rank)
    return site.finish(site.builder.scalar("div", total, math.prod(windows)))


@lowers(
    *("adaptive_max_pool1d.default", "adaptive_max_pool2d.default"),
    "adaptive_max_pool3d.default",
)
def adaptive_max_pool(site: Site, x: Value, output_size):
    if 0 in site.shape:
        b = site.builder
        return b.constant(0, site.dtype, site.shape), b.constant(0, torch.int64, site.shape)
    dims = list(range(x.rank - len(output_size), x.rank))
    if site.used - {0}:
        if any(x.shape[dim] % site.shape[dim] for dim in dims):
            return _largest_of_uneven_with_places(site, x, dims)
        windows = [_divisible(site, x, dims)[dim] for dim in dims]
        return largest_with_places(WindowGeometry(site, x, windows, (), 0, 1), x)
    if all(site.shape[dim] == 1 for dim in dims):
        # As one dim, since the first of equal ones has the slope.
        flat = site.builder.reshape(x, [*x.shape[: dims[0]], math.prod(x.shape[dims[0] :])])
        largest = site.builder.reduce("max", flat, [dims[0]], subgradient="first")
        largest = site.builder.graph.with_level_slope(largest)
        return site.builder.reshape(largest, site.shape), None
    if _has_uneven(site, x, dims):
        # The last dim first: of equal ones the first in memory has the slope.
        for dim in reversed(dims):
            x = _max_of_uneven(site, x, dim)
        return x, None
    windows = _divisible(site, x, dims)
    largest = site.builder.reduce_window("max", x, windows, windows, [1] * x.rank)
    return site.builder.graph.with_level_slope(largest), None


def _largest_of_uneven_with_places(
    site: Site, x: Value, dims: Sequence[int]
) -> tuple[Value, Value]:
    """Dim by dim: of equal elements the first in memory, of NaNs the last. A short window sees its
    last element again, at the same place."""
    b, outer = site.builder, x.rank - len(dims)
    if not site.varying.isdisjoint(dims):
        raise Decline("the places of the largest elements in windows of different sizes")
    if math.prod(x.shape[outer:]) >= 2**31:
        raise Decline(f"places among {x.shape[outer:]} elements")
    with b.graph.constant_to_derivative():
        value, places = x, None
        for dim in dims:
            value, places = _larger_along(site, value, places, dim, math.prod(x.shape[dim + 1 :]))
        places = b.convert(places, torch.int64)
    if b.graph.training:
        # The slope of an element that several windows choose is a sum over them.
        rows = [b.iota(torch.int64, site.shape, d) for d in range(outer)]
        flat = b.reshape(x, [*x.shape[:outer], math.prod(x.shape[outer:])])
        value = b.gather(flat, [*rows, places], range(flat.rank))
    return value, places


def _larger_along(
    site: Site, x: Value, places: Value | None, dim: int, weight: int
) -> tuple[Value, Value]:
    """The largest elements of windows along `dim`, and their places, int32: `places` of the
    elements of x along the dims ahead, and `weight` times that along `dim`."""
    b = site.builder
    at, last, _ = _places_of_uneven(site, x, dim)
    out, longest = at.shape
    if longest > MOST_STEPS:
        raise Decline(f"places in windows of {longest} elements along dim {dim}")
    # Windows side by side, of which a step takes one element each.
    at = b.reshape(b.binary("min", at, last), [out * longest])
    side_by_side = [_in_place(site, b.gather(x, [at], [dim]), dim)]
    if places is not None:
        side_by_side.append(_in_place(site, b.gather(places, [at], [dim]), dim))
    at = b.scalar("mul", b.convert(at, torch.int32), weight)
    value = chosen = None
    for step in range(longest):
        element, *ahead = (
            b.slice(each, dim, step, out * longest, longest) for each in side_by_side
        )
        place = b.along(b.slice(at, 0, step, out * longest, longest), dim, element.shape)
        place = b.total([place, *ahead])
        if value is None:
            value, chosen = element, place
            continue
        above = _stands_above(b, element, place, value, chosen)
        value, chosen = b.select(above, element, value), b.select(above, place, chosen)
    return value, chosen


def _stands_above(b: Builder, x: Value, place: Value, value: Value, chosen: Value) -> Value:
    """Whether an element is taken instead of the one that was chosen before."""
    is_equal = b.compare("eq", x, value)
    above = b.compare("gt", x, value)
    above = b.binary("or", above, b.binary("and", is_equal, b.compare("lt", place, chosen)))
    if not is_float(x.dtype):
        return above
    is_later = b.binary("or", b.compare("eq", value, value), b.compare("gt", place, chosen))
    return b.binary("or", above, b.binary("and", b.compare("ne", x, x), is_later))


def _has_uneven(site: Site, x: Value, dims: Sequence[int]) -> bool:
    """Whether windows may differ, at these sizes or at others."""
    return not site.varying.isdisjoint(dims) or any(x.shape[d] % site.shape[d] for d in dims)


def _max_of_uneven(site: Site, x: Value, dim: int) -> Value:
    """A short window sees its last element again."""
    windows, _, _ = _uneven(site, x, dim)
    largest = site.builder.reduce("max", windows, [1], subgradient="first")
    return _in_place(site, site.builder.graph.with_level_slope(largest), dim)


def _mean_of_uneven(site: Site, x: Value, dim: int) -> Value:
    b = site.builder
    windows, within, lengths = _uneven(site, x, dim)
    within = b.broadcast_in_dim(within, [0, 1], windows.shape)
    zero = b.constant(0, x.dtype, windows.shape)
    total = b.reduce("sum", b.select(within, windows, zero), [1])
    lengths = b.convert(b.along(lengths, 0, total.shape), x.dtype)
    return _in_place(site, b.binary("div", total, lengths), dim)


def _uneven(site: Site, x: Value, dim: int) -> tuple[Value, Value, Value]:
    """Windows of different sizes along `dim`, (windows, longest, other dims of x), a short one
    filled with its last element; which elements are within, (windows, longest); the sizes."""
    b = site.builder
    at, last, lengths = _places_of_uneven(site, x, dim)
    windows = b.gather(x, [b.binary("min", at, last)], [dim])
    return windows, b.compare("le", at, last), lengths


def _places_of_uneven(site: Site, x: Value, dim: int) -> tuple[Value, Value, Value]:
    """Of windows of different sizes along `dim`: places from the first on, as many as the longest
    has, (windows, longest); the last place, in the same shape; the sizes, (windows)."""
    b = site.builder
    size, out = x.shape[dim], site.shape[dim]
    if dim not in site.varying:
        windows = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
        longest = max(end - start for start, end in windows)
        at = torch.tensor([range(start, start + longest) for start, _ in windows])
        last = torch.tensor([[end - 1] * longest for _, end in windows])
        lengths = torch.tensor([end - start for start, end in windows])
        return b.dense(at), b.dense(last), b.dense(lengths)
    longest = (size - 1) // out + 2  # none is longer at any size, and this is a quotient
    window, place = (b.iota(torch.int64, [out, longest], d) for d in (0, 1))
    first = b.scalar("div", b.scalar("mul", window, size), out)
    above = b.scalar("add", b.scalar("mul", window, size), size + out - 1)
    last = b.scalar("sub", b.scalar("div", above, out), 1)
    lengths = b.scalar("add", b.binary("sub", last, first), 1)
    return b.binary("add", first, place), last, b.reshape(b.slice(lengths, 1, 0, 1), [out])


def _in_place(site: Site, x: Value, dim: int) -> Value:
    """The tensor with its first dim moved to where it belongs."""
    return site.builder.transpose(x, [*range(1, dim + 1), 0, *range(dim + 1, x.rank)])


def _divisible(site: Site, x: Value, dims: list[int]) -> list[int]:
    if any(x.shape[dim] % site.shape[dim] for dim in dims):
        raise Decline("adaptive pooling with windows of different sizes")
    return [x.shape[d] // site.shape[d] if d in dims else 1 for d in range(x.rank)]
