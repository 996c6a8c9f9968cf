# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing with tensors. torch refuses indices out of range, so the program asserts them.

The dialect clamps indices; negative ones are made positive here where torch allows them.
No check is made where the bounds of the indices are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.dtypes import is_integer
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, dim_of, dims_of, lowers


@lowers("embedding.default")
def embedding(site: Site, weight: Value, indices: Value, *_, **__):
    _check(site, indices, 0, weight.shape[0], "IndexError: index out of range in self")
    return site.builder.gather(weight, [indices], [0])


@lowers("index_select.default")
def index_select(site: Site, x: Value, dim, index: Value):
    b = site.builder
    if not x.rank:
        return x
    dim = dim_of(dim, x.rank)
    _check(site, index, 0, x.shape[dim], "IndexError: index out of range in self")
    rows = b.gather(x, [b.reshape(index, [index.size])], [dim])
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
    dims = [dim for dim, entry in enumerate(indices) if entry is not None]
    given = [indices[dim] for dim in dims]
    if any(not is_integer(entry.dtype) for entry in given):
        raise Decline("an index that is a mask: the result's size depends on data")
    shape = torch.broadcast_shapes(*(entry.shape for entry in given))
    wrapped = []
    for dim, entry in zip(dims, given):
        entry, size = b.convert(entry, torch.int64), x.shape[dim]
        if checked:
            message = f"IndexError: index is out of bounds for dimension {dim} with size {size}"
            _check(site, entry, -size, size, message)
        wrapped.append(b.broadcast(_wrap(site, entry, size), shape))
    result = b.gather(x, wrapped, dims)
    # The dialect puts the indices' dims in front; torch leaves them where adjacent
    # indices stand.
    if dims[-1] - dims[0] + 1 != len(dims):
        return result
    n, before = len(shape), dims[0]
    perm = [*range(n, n + before), *range(n), *range(n + before, result.rank)]
    return b.transpose(result, perm)


@lowers("gather.default", "take_along_dim.default")
def gather(site: Site, x: Value, *args, sparse_grad=False, **kwargs):
    b = site.builder
    if site.target == "aten.gather.default":
        dim, index = args
    else:
        index, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim is None or index.shape[:dim] != x.shape[:dim]:
            raise Decline("take_along_dim of broadcast or flattened operands")
    if not x.rank or not index.rank:
        return b.reshape(
            b.broadcast(b.reshape(x, [1] * max(x.rank, 1)), [max(index.size, 1)]), site.shape
        )
    dim, size = dim_of(dim, x.rank), x.shape[dim_of(dim, x.rank)]
    low = 0 if site.target == "aten.gather.default" else -size
    _check(
        site,
        index,
        low,
        size,
        f"RuntimeError: index is out of bounds for dimension {dim} with size {size}",
    )
    if low:
        index = _wrap(site, index, size)
    index = b.convert(index, torch.int64)
    indices = [index if d == dim else b.iota(torch.int64, index.shape, d) for d in range(x.rank)]
    return b.gather(x, indices, range(x.rank))


@lowers("diagonal.default")
def diagonal(site: Site, x: Value, offset=0, dim1=0, dim2=1):
    b = site.builder
    dims = [dim_of(dim1, x.rank), dim_of(dim2, x.rank)]
    length = site.shape[-1]
    at = b.iota(torch.int64, [length], 0)
    shifted = b.scalar("add", at, abs(offset)) if offset else at
    pair = [at, shifted] if offset >= 0 else [shifted, at]
    result = b.gather(x, pair, dims) if dims[0] < dims[1] else b.gather(x, pair[::-1], dims[::-1])
    return b.transpose(result, [*range(1, result.rank), 0])


@lowers("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(site: Site, x: Value, dim, index: Value, value):
    """Chosen where any of the indices meets the position."""
    b = site.builder
    if not x.rank:
        return site.operand(value, x.dtype)
    (dim,) = dims_of(dim, x.rank)
    size = x.shape[dim]
    _check(
        site,
        index,
        -size,
        size,
        f"IndexError: index is out of bounds for dimension {dim} with size {size}",
    )
    index = _wrap(site, b.convert(b.reshape(index, [index.size]), torch.int64), size)
    table = [index.size, size]
    hit = b.compare("eq", b.along(index, 0, table), b.iota(torch.int64, table, 1))
    chosen = b.along(b.reduce("any", hit, [0]), dim, x.shape)
    return b.select(chosen, site.operand(value, x.dtype), x)


def _check(site: Site, index: Value, low: int, size: int, message: str) -> None:
    """Asserts low <= index < size as far as it is not known."""
    b = site.builder
    known = index.bounds or (-(2**63), 2**63)
    if index.size == 0 or (low <= known[0] and known[1] < size):
        return
    index = b.convert(index, torch.int64)
    tests = []
    if known[0] < low:
        tests.append(b.compare("ge", index, low))
    if known[1] >= size:
        tests.append(b.compare("lt", index, size))
    condition = tests[0] if len(tests) == 1 else b.binary("and", *tests)
    b.check(condition, message)


def _wrap(site: Site, index: Value, size: int) -> Value:
    """Negative indices count from the end."""
    b = site.builder
    if index.bounds is not None and index.bounds[0] >= 0:
        return index
    return b.select(b.compare("lt", index, 0), b.scalar("add", index, size), index)
