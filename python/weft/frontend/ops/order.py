# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting and what is made of it. Sorts are stable, so that the places of equal elements are
PyTorch's only where its own sort is stable, too."""

from __future__ import annotations

import math

import torch

from weft.frontend.dtypes import is_float
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, dim_of, lowers

# std::sort leaves equal elements of so few in their order.
_FEW = 16
# PyTorch selects from rows that are so many times longer by a heap, whose order is that of sorting.
_HEAP_FACTOR = 64
# Levels of a bisection come in so many, where rows of several lengths share a program.
_LEVELS_AT_ONCE = 8


@lowers("sort.default")
def sort(site: Site, x: Value, dim=-1, descending=False):
    return stable_sort(site, x, dim=dim, descending=descending)


@lowers("sort.stable")
def stable_sort(site: Site, x: Value, *, stable=None, dim=-1, descending=False):
    if not stable and _size(x, dim) > _FEW:
        _only_values(site)
    return _sort(site, x, dim, descending)


@lowers("argsort.default")
def argsort(site: Site, x: Value, dim=-1, descending=False):
    return stable_argsort(site, x, stable=False, dim=dim, descending=descending)


@lowers("argsort.stable")
def stable_argsort(site: Site, x: Value, *, stable, dim=-1, descending=False):
    if not stable and _size(x, dim) > _FEW:
        raise Decline(_UNSTABLE)
    return _sort(site, x, dim, descending)[1]


@lowers("msort.default")
def msort(site: Site, x: Value):
    return sort(site, x, 0)[0]


@lowers("topk.default")
def topk(site: Site, x: Value, k, dim=-1, largest=True, sorted=True):
    size = _size(x, dim)
    by_heap = k * _HEAP_FACTOR <= size
    if size > 1 and not sorted and not by_heap:
        raise Decline("the order in which PyTorch's selection leaves elements")
    if size > 1 and not (k == 1 and by_heap):
        _only_values(site)
    return _sort(site, x, dim, largest, k)


@lowers("kthvalue.default")
def kthvalue(site: Site, x: Value, k, dim=-1, keepdim=False):
    return _nth(site, x, k, dim)


_UNSTABLE = "the places of equal elements, which PyTorch's kernel orders in its own way"


def _only_values(site: Site) -> None:
    """Gradients of the values go to their places."""
    if 1 in site.used or (site.builder.graph.training and is_float(site.dtype)):
        raise Decline(_UNSTABLE)


def _size(x: Value, dim: int) -> int:
    return x.shape[dim_of(dim, x.rank)] if x.rank else 1


@lowers("median.dim")
def median(site: Site, x: Value, dim, keepdim=False):
    """The lower of the two middle elements; the first NaN if there is one."""
    b = site.builder
    value, index = _nth(site, x, (_size(x, dim) + 1) // 2, dim)
    if not is_float(x.dtype) or not x.rank:
        return value, index
    dim = dim_of(dim, x.rank)
    first = b.arg_reduce("max", x, dim)
    holds = b.reduce("any", b.compare("ne", x, x), [dim])
    holds, first = b.reshape(holds, site.shape), b.reshape(first, site.shape)
    nan = b.reshape(b.reduce("max", x, [dim], subgradient="first"), site.shape)
    return b.select(holds, nan, value), b.select(holds, first, index)


@lowers("median.default")
def median_of_all(site: Site, x: Value):
    b = site.builder
    if not x.size:
        return b.constant(math.nan, x.dtype)
    flat = b.reshape(x, [x.size])
    value, _ = _nth(site, flat, (x.size + 1) // 2, 0)
    if not is_float(x.dtype):
        return value
    holds = b.reduce("any", b.compare("ne", flat, flat), [0])
    value = b.select(holds, b.reduce("max", flat, [0]), value)
    if b.graph.training:
        # Equal elements share it, and NaNs: evenly_distribute_backward of torch's FunctionsManual.
        whole = b.broadcast(value, flat.shape)
        are_none = b.binary("and", b.compare("ne", flat, flat), b.compare("ne", whole, whole))
        found = b.convert(b.binary("or", b.compare("eq", flat, whole), are_none), x.dtype)
        count = b.broadcast(b.reduce("sum", found, [0]), flat.shape)
        share = b.binary("div", found, count)
        value = b.with_slopes(value, (flat, share), dims=[0], subgradient="zero")
    return value


@lowers("nanmedian.dim")
def nanmedian(site: Site, x: Value, dim, keepdim=False):
    """The lower of the two middle numbers. NaNs are ordered behind all numbers."""
    if not is_float(x.dtype) or not x.rank:
        return median(site, x, dim, keepdim)
    b = site.builder
    dim = dim_of(dim, x.rank)
    if x.shape[dim] > 1:
        _only_values(site)
    values, indices = _sort(site, x, dim, False)
    numbers = b.convert(b.compare("eq", x, x), torch.int64)
    last = b.scalar("sub", b.reduce("sum", numbers, [dim], keep=True), 1)
    at = b.scalar("div", b.scalar("max", last, 0), 2)
    places = [at if d == dim else b.iota(torch.int64, at.shape, d) for d in range(x.rank)]
    found = [b.gather(each, places, range(x.rank)) for each in (values, indices)]
    return tuple(b.reshape(each, site.shape) for each in found)


@lowers("mode.default")
def mode(site: Site, x: Value, dim=-1, keepdim=False):
    """The least of the values that stand most often, and the last place of it."""
    b = site.builder
    if not x.rank:
        return x, b.constant(0, torch.int64)
    if is_float(x.dtype):
        raise Decline("the mode of floats, whose NaNs PyTorch sorts in an order of its own")
    dim = dim_of(dim, x.rank)
    size = x.shape[dim]
    if size > _FEW:
        raise Decline(_UNSTABLE if 1 in site.used else "the mode of rows that PyTorch sorts sooner")
    values, places = _sort(site, x, dim, False)
    here, ahead = (b.slice(values, dim, start, size - 1 + start) for start in (1, 0))
    changes = b.convert(b.compare("ne", here, ahead), torch.int32)
    number = b.iota(torch.int64, x.shape, dim)
    begins, ends = (
        b.compare("ne", b.pad(changes, *(_at(x.rank, dim, n) for n in (low, 1 - low)), 1), 0)
        for low in (1, 0)
    )
    outside = b.constant(0, torch.int64, x.shape)
    begin = b.cumulative("max", b.select(begins, number, outside), dim)
    count = b.scalar("add", b.binary("sub", number, begin), 1)
    last = b.arg_reduce("max", b.select(ends, count, outside), dim)
    last = b.reshape(last, [1 if d == dim else n for d, n in enumerate(x.shape)])
    found = [last if d == dim else b.iota(torch.int64, last.shape, d) for d in range(x.rank)]
    results = (b.gather(each, found, range(x.rank)) for each in (values, places))
    return tuple(b.reshape(each, site.shape) for each in results)


def _at(rank: int, dim: int, number: int) -> list[int]:
    """Zeros, but the number for one dim."""
    return [number if d == dim else 0 for d in range(rank)]


def _sort(
    site: Site, x: Value, dim: int, descending: bool, count: int | None = None
) -> tuple[Value, Value]:
    b = site.builder
    to, dim = b.reshape(x, x.shape or [1]), dim_of(dim, x.rank)
    # Of no dims there is one element, however many are asked for.
    count = to.shape[dim] if count is None or not x.rank else count
    # The dialect orders signed integers.
    wide = b.convert(to, torch.int16) if x.dtype == torch.uint8 else to
    values, indices = b.sort(wide, dim, bool(descending), count)
    shape = values.shape if x.rank else x.shape
    return b.reshape(b.convert(values, x.dtype), shape), b.reshape(indices, shape)


def sorted_with_places(site: Site, x: Value) -> tuple[Value, Value]:
    """All elements of x in order, and where in the flattened x they stood."""
    return _sort(site, site.builder.reshape(x, [x.size]), 0, False)


def _nth(site: Site, x: Value, k: int, dim: int) -> tuple[Value, Value]:
    """The k-th smallest element, counted from 1, in the shape of the call's results."""
    b = site.builder
    if not x.rank:
        return x, b.constant(0, torch.int64)
    dim = dim_of(dim, x.rank)
    if _size(x, dim) > 1:
        _only_values(site)
    values, indices = _sort(site, x, dim, False, k)
    return tuple(b.reshape(b.slice(each, dim, k - 1, k), site.shape) for each in (values, indices))


# Searches


@lowers("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    site: Site, sequence: Value, x, *, out_int32=False, right=False, side=None, sorter=None
):
    b = site.builder
    if sorter is not None:
        rows = [b.iota(torch.int64, sorter.shape, d) for d in range(sorter.rank - 1)]
        places = [*rows, b.convert(sorter, torch.int64)]
        sequence = b.gather(sequence, places, range(sequence.rank))
    return _search(site, sequence, x, right or side == "right", sequence.rank - 1 in site.varying)


@lowers("bucketize.Tensor", "bucketize.Scalar")
def bucketize(site: Site, x, boundaries: Value, *, out_int32=False, right=False):
    return _search(site, boundaries, x, right)


def _search(site: Site, sequence: Value, x, right: bool, is_varying: bool = False) -> Value:
    """How many elements of a row stand ahead of x, by torch's own bisection: where NaNs stand, or
    rows are not sorted, the answer hangs on the elements that it looks at.

    is_varying: rows of other lengths, up to the next power of two, take as many steps.
    """
    b = site.builder
    dtype = sequence.dtype
    if isinstance(x, Value):
        dtype = torch.promote_types(dtype, x.dtype)
    sequence, x = b.convert(sequence, dtype), site.operand(x, dtype)
    size = sequence.shape[-1]
    low = b.constant(0, torch.int64, site.shape)
    high = b.constant(size, torch.int64, site.shape)
    rows = [b.iota(torch.int64, site.shape, d) for d in range(sequence.rank - 1)]
    levels = size.bit_length()
    if is_varying:
        levels = -(-((size - 1).bit_length() + 1) // _LEVELS_AT_ONCE) * _LEVELS_AT_ONCE
    for level in range(levels):
        middle = b.scalar("div", b.binary("add", low, high), 2)
        element = b.gather(sequence, [*rows, middle], range(sequence.rank))
        behind = b.compare("gt" if right else "ge", element, x)
        ahead = b.unary("not", behind)
        # Only on the last level, or behind it, can nothing be left between them, and neither may
        # move then.
        if is_varying or level + 1 == levels:
            ahead = b.binary("and", b.compare("lt", low, high), ahead)
        high = b.select(behind, middle, high)
        low = b.select(ahead, b.scalar("add", middle, 1), low)
    return site.finish(low)
