# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing with tensors. torch refuses indices out of range, so the program asserts them.

The dialect clamps indices; negative ones are made positive here where torch allows them.
No check is made where the bounds of the indices are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import is_integer
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.table import Site, dim_of, lowers


@lowers("embedding.default")
def embedding(
    site: Site,
    weight: Value,
    indices: Value,
    padding_idx=-1,
    scale_grad_by_freq=False,
    sparse=False,
):
    check_range(site, indices, 0, weight.shape[0], "IndexError: index out of range in self")
    b = site.builder
    rows = b.gather(weight, [indices], [0])
    if not b.graph.training:
        return rows
    if scale_grad_by_freq or sparse:
        raise Unsupported("gradients of an embedding by frequency, or sparse", b.graph.location)
    if padding_idx < 0:
        return rows
    # The row of the padding has no gradient.
    is_padding = b.compare("eq", indices, padding_idx)
    is_padding = b.broadcast_in_dim(is_padding, list(range(indices.rank)), rows.shape)
    return b.select(is_padding, b.detached(rows), rows)


@lowers("index_select.default")
def index_select(site: Site, x: Value, dim, index: Value):
    b = site.builder
    if not x.rank:
        return x
    dim = dim_of(dim, x.rank)
    check_range(site, index, 0, x.shape[dim], "IndexError: index out of range in self")
    return gathered_along(b, x, dim, b.reshape(index, [index.size]))


def gathered_along(b: Builder, x: Value, dim: int, index: Value) -> Value:
    """x with the elements at `index`, a vector, in the place of those of `dim`."""
    rows = b.gather(x, [index], [dim])
    perm = list(range(1, x.rank))
    perm.insert(dim, 0)
    return b.transpose(rows, perm)


@lowers("index.Tensor")
def index(site: Site, x: Value, indices: Sequence[Value | None]):
    return _index(site, x, indices, True)


@lowers("_unsafe_index.Tensor")
def unsafe_index(site: Site, x: Value, indices: Sequence[Value | None]):
    return _index(site, x, indices, False)


def _index(site: Site, x: Value, indices: Sequence[Value | None], checked: bool) -> Value:
    b = site.builder
    dims, places = positions(site, x, indices, checked)
    result = b.gather(x, places, dims)
    n, before = places[0].rank, leading_dims(dims)
    perm = [*range(n, n + before), *range(n), *range(n + before, result.rank)]
    return b.transpose(result, perm)


def positions(
    site: Site, x: Value, indices: Sequence[Value | None], checked: bool
) -> tuple[list[int], list[Value]]:
    """The dims that `indices` index, and for each where: of one shape, none negative."""
    b = site.builder
    dims = [dim for dim, entry in enumerate(indices) if entry is not None]
    given = [indices[dim] for dim in dims]
    if not given:
        raise Decline("no index among the indices")
    if any(not is_integer(entry.dtype) for entry in given):
        raise Decline("an index that is a mask: the result's size depends on data")
    shape = torch.broadcast_shapes(*(entry.shape for entry in given))
    places = []
    for dim, entry in zip(dims, given):
        entry, size = b.convert(entry, torch.int64), x.shape[dim]
        if checked:
            message = f"IndexError: index is out of bounds for dimension {dim} with size {size}"
            check_range(site, entry, -size, size, message)
        places.append(b.broadcast(wrapped(site, entry, size), shape))
    return dims, places


def leading_dims(dims: Sequence[int]) -> int:
    """How many of the dims that are not indexed torch puts ahead of those of the indices: the
    dialect puts the indices' dims in front, torch leaves them where adjacent indices stand.
    """
    return dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0


@lowers("gather.default", "take_along_dim.default")
def gather(site: Site, x: Value, *args, sparse_grad=False, **kwargs):
    b = site.builder
    if site.target == "aten.gather.default":
        dim, index = args
    else:
        index, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim is None:
            x, index, dim = b.reshape(x, [x.size]), b.reshape(index, [index.size]), 0
        elif x.rank:
            index, sizes = b.broadcast(index, site.shape), list(site.shape)
            sizes[dim_of(dim, x.rank)] = x.shape[dim_of(dim, x.rank)]
            x = b.broadcast(x, sizes)
    if not x.rank or not index.rank:
        return b.reshape(b.broadcast(b.reshape(x, [1]), [index.size]), site.shape)
    dim, size = dim_of(dim, x.rank), x.shape[dim_of(dim, x.rank)]
    low = 0 if site.target == "aten.gather.default" else -size
    check_range(
        site,
        index,
        low,
        size,
        f"RuntimeError: index is out of bounds for dimension {dim} with size {size}",
    )
    if low:
        index = wrapped(site, index, size)
    index = b.convert(index, torch.int64)
    indices = [index if d == dim else b.iota(torch.int64, index.shape, d) for d in range(x.rank)]
    return b.gather(x, indices, range(x.rank))


@lowers("unfold.default")
def unfold(site: Site, x: Value, dimension, size, step):
    """Windows along a dim; their elements become the last one."""
    b = site.builder
    if not x.rank:
        return b.reshape(b.slice(b.reshape(x, [1]), 0, 0, size), site.shape)
    dim = dim_of(dimension, x.rank)
    count = site.shape[dim]
    if size == step:
        shape = [*x.shape[:dim], count, size, *x.shape[dim + 1 :]]
        tiles = b.reshape(b.slice(x, dim, 0, count * size), shape)
        others = [d for d in range(x.rank + 1) if d != dim + 1]
        return b.transpose(tiles, [*others, dim + 1])
    table = [count, size]
    starts = b.scalar("mul", b.iota(torch.int64, table, 0), step)
    windows = b.gather(x, [b.binary("add", starts, b.iota(torch.int64, table, 1))], [dim])
    return b.transpose(windows, [*range(2, dim + 2), 0, *range(dim + 2, x.rank + 1), 1])


@lowers("diagonal.default")
def diagonal(site: Site, x: Value, offset=0, dim1=0, dim2=1):
    b = site.builder
    dims = [dim_of(dim1, x.rank), dim_of(dim2, x.rank)]
    result = b.gather(x, diagonal_places(site, offset, site.shape[-1]), dims)
    return b.transpose(result, [*range(1, result.rank), 0])


def diagonal_places(site: Site, offset: int, length: int) -> list[Value]:
    """The indices, along both its dims, at which the elements of a diagonal stand."""
    b = site.builder
    at = b.iota(torch.int64, [length], 0)
    shifted = b.scalar("add", at, abs(offset)) if offset else at
    return [at, shifted] if offset >= 0 else [shifted, at]


def check_range(site: Site, index: Value, low: int, size: int, message: str) -> None:
    """Asserts low <= index < size as far as it is not known."""
    b = site.builder
    known = index.bounds or (-(2**63), 2**63)
    if index.size == 0 or (low <= known[0] and known[1] < size):
        return
    if index.bounds is not None:
        b.graph.excess = max(b.graph.excess, known[1] - size + 1)
    index = b.convert(index, torch.int64)
    tests = []
    if known[0] < low:
        tests.append(b.compare("ge", index, low))
    if known[1] >= size:
        tests.append(b.compare("lt", index, size))
    condition = tests[0] if len(tests) == 1 else b.binary("and", *tests)
    b.check(condition, message)


def wrapped(site: Site, index: Value, size: int) -> Value:
    """Negative indices count from the end."""
    b = site.builder
    if index.bounds is not None and index.bounds[0] >= 0:
        return index
    return b.select(b.compare("lt", index, 0), b.scalar("add", index, size), index)
