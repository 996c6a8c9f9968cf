# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes where tensors of indices say, and what is made of them.

The dialect leaves out updates whose indices are out of range; torch refuses them, so the
program asserts them as it does when it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.dtypes import identity, is_float, is_integer
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.index import (
    check_range,
    diagonal_places,
    leading_dims,
    positions,
    wrapped,
)
from weft.frontend.table import Site, dim_of, lowers

# Bools have no sums.
_LOGICAL = {"sum": "max", "prod": "min"}


def _write(
    site: Site,
    x: Value,
    updates: Value,
    places: Sequence[Value],
    dims: Sequence[int],
    kind: str,
) -> Value:
    b = site.builder
    if x.dtype == torch.bool:
        kind = _LOGICAL.get(kind, kind)
    if kind in ("max", "min") and x.dtype == torch.uint8:
        x, updates = b.convert(x, torch.int16), b.convert(updates, torch.int16)
    return b.convert(b.scatter(x, updates, places, dims, kind), site.dtype)


# One index per element


@lowers("scatter.src", "scatter.value")
def scatter(site: Site, x: Value, dim, index: Value, source):
    return _scatter(site, x, dim, index, source, "set")


@lowers("scatter.reduce", "scatter.value_reduce")
def scatter_with(site: Site, x: Value, dim, index: Value, source, *, reduce):
    return _scatter(site, x, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


@lowers("scatter_add.default")
def scatter_add(site: Site, x: Value, dim, index: Value, source: Value):
    return _scatter(site, x, dim, index, source, "sum")


@lowers("scatter_reduce.two")
def scatter_reduce(site, x: Value, dim, index: Value, source: Value, reduce, *, include_self=True):
    def write(into: Value, updates, kind):
        return _scatter(site, into, dim, index, updates, kind)

    return _reduce(site, x, source, reduce, include_self, write)


def _scatter(site: Site, x: Value, dim, index: Value, source, kind: str) -> Value:
    """`source`: a number, or a tensor that is at least as large as the index in every dim."""
    b = site.builder
    if index.size == 0:
        return x
    rank = max(x.rank, 1)
    index = b.reshape(index, index.shape or [1])
    if isinstance(source, Value):
        source = b.reshape(source, source.shape or [1])
        for d, size in enumerate(index.shape):
            source = b.slice(source, d, 0, size)
    updates = site.operand(source, x.dtype, index.shape)
    to = b.reshape(x, x.shape or [1])
    dim = dim_of(dim, rank)
    size = to.shape[dim]
    message = f"RuntimeError: index is out of bounds for dimension {dim} with size {size}"
    check_range(site, index, 0, size, message)
    index = b.convert(index, torch.int64)
    places = [index if d == dim else b.iota(torch.int64, index.shape, d) for d in range(rank)]
    return b.reshape(_write(site, to, updates, places, range(rank), kind), x.shape)


def _reduce(site: Site, x: Value, source, reduce: str, include_self: bool, write) -> Value:
    """write(into, updates, kind) writes at the indices of the call; updates: tensor or number."""
    b = site.builder
    kind = {"mean": "sum", "amax": "max", "amin": "min"}.get(reduce, reduce)
    into = x if include_self else write(x, identity(kind, x.dtype), "set")
    result = write(into, source, kind)
    if reduce != "mean":
        return result
    ones = b.constant(1, x.dtype, x.shape)
    count = write(ones if include_self else write(ones, 0, "set"), 1, "sum")
    if is_float(x.dtype):
        return b.binary("div", result, count)
    # Integers: rounded down.
    quotient = b.binary("div", result, count)
    remainder = b.binary("rem", result, count)
    down = b.convert(b.compare("lt", remainder, 0), x.dtype)
    return b.binary("sub", quotient, down)


# One index per slice along a dim


@lowers("index_add.default")
def index_add(site: Site, x: Value, dim, index: Value, source: Value, *, alpha=1):
    if alpha != 1:
        source = site.builder.scalar("mul", source, alpha)
    message = "RuntimeError: index is out of bounds for dimension {} with size {}"
    return _by_slices(site, x, dim, index, source, "sum", message)


@lowers("index_copy.default")
def index_copy(site: Site, x: Value, dim, index: Value, source: Value):
    message = "IndexError: index_copy_(): index is out of bounds for dimension {} with size {}"
    return _by_slices(site, x, dim, index, source, "set", message)


@lowers("index_reduce.default")
def index_reduce(site, x: Value, dim, index: Value, source: Value, reduce, *, include_self=True):
    def write(into: Value, updates, kind):
        message = "IndexError: index out of range in self"
        return _by_slices(site, into, dim, index, updates, kind, message)

    return _reduce(site, x, source, reduce, include_self, write)


@lowers("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(site: Site, x: Value, dim, index: Value, value):
    size = x.shape[dim_of(dim, x.rank)] if x.rank else 1
    message = "IndexError: index is out of bounds for dimension {} with size {}"
    check_range(site, index, -size, size, message.format(dim_of(dim, x.rank), size))
    index = wrapped(site, site.builder.convert(index, torch.int64), size)
    return _by_slices(site, x, dim, index, value, "set", None)


def _by_slices(
    site: Site, x: Value, dim, index: Value, source, kind: str, message: str | None
) -> Value:
    """`source`: a number or 0-d tensor for all elements, or x's shape with one slice for each
    index. No message: the indices are known to be in range."""
    b = site.builder
    if index.size == 0:
        return x
    to, index = b.reshape(x, x.shape or [1]), b.reshape(index, [index.size])
    dim = dim_of(dim, to.rank)
    if message is not None:
        check_range(site, index, 0, to.shape[dim], message.format(dim, to.shape[dim]))
    shape = [index.size if d == dim else n for d, n in enumerate(to.shape)]
    if isinstance(source, Value) and source.size == index.size * x.size // max(to.shape[dim], 1):
        source = b.reshape(source, shape)
    updates = b.transpose(
        site.operand(source, x.dtype, shape), [dim, *(d for d in range(to.rank) if d != dim)]
    )
    places = [b.convert(index, torch.int64)]
    return b.reshape(_write(site, to, updates, places, [dim], kind), x.shape)


# One index per dim


@lowers("index_put.default")
def index_put(site: Site, x: Value, indices, values: Value, accumulate=False):
    return _index_put(site, x, indices, values, accumulate, True)


@lowers("_unsafe_index_put.default")
def unsafe_index_put(site: Site, x: Value, indices, values: Value, accumulate=False):
    return _index_put(site, x, indices, values, accumulate, False)


def _index_put(site: Site, x: Value, indices, values: Value, accumulate: bool, checked: bool):
    b = site.builder
    given = [entry for entry in indices if entry is not None]
    if any(not is_integer(entry.dtype) for entry in given):
        return _masked_put(site, x, indices, values, accumulate)
    dims, places = positions(site, x, indices, checked)
    if places[0].size == 0 or x.size == 0:
        return x
    shape, before = places[0].shape, leading_dims(dims)
    kept = [size for d, size in enumerate(x.shape) if d not in dims]
    updates = site.operand(values, x.dtype, [*kept[:before], *shape, *kept[before:]])
    n = len(shape)
    perm = [*range(before, before + n), *range(before), *range(before + n, updates.rank)]
    kind = "sum" if accumulate else "set"
    return _write(site, x, b.transpose(updates, perm), places, dims, kind)


def _masked_put(site: Site, x: Value, indices, values: Value, accumulate: bool) -> Value:
    """A choice, where every chosen element gets the same value."""
    b = site.builder
    mask = next(entry for entry in indices if entry is not None)
    first = next(d for d, entry in enumerate(indices) if entry is not None)
    if sum(entry is not None for entry in indices) > 1 or mask.dtype != torch.bool:
        raise Decline("an index that is a mask among others: the sizes depend on data")
    behind = x.rank - first - mask.rank
    # The dims that the mask chooses from are one dim of the values, whose size is unknown.
    chosen = values.rank - behind - 1
    if chosen >= 0:
        ahead, size, *rest = values.shape[:chosen], *values.shape[chosen:]
        if size != 1:
            raise Decline("an index that is a mask: the number of values depends on data")
        values = b.reshape(values, [*ahead, *[1] * mask.rank, *rest])
    values = b.broadcast(b.convert(values, x.dtype), x.shape)
    mask = b.broadcast_in_dim(mask, range(first, first + mask.rank), x.shape)
    if accumulate:
        values = b.binary("or" if x.dtype == torch.bool else "add", x, values)
    return b.select(mask, values, x)


@lowers("put.default")
def put(site: Site, x: Value, index: Value, source: Value, accumulate=False):
    b = site.builder
    if index.size == 0:
        return x
    message = f"IndexError: out of range: tried to access a tensor of {x.size} elements"
    check_range(site, index, -x.size, x.size, message)
    place = wrapped(site, b.reshape(b.convert(index, torch.int64), [index.size]), x.size)
    updates = b.reshape(source, [index.size])
    kind = "sum" if accumulate else "set"
    return b.reshape(_write(site, b.reshape(x, [x.size]), updates, [place], [0], kind), x.shape)


@lowers("diagonal_scatter.default")
def diagonal_scatter(site: Site, x: Value, source: Value, offset=0, dim1=0, dim2=1):
    b = site.builder
    source = b.convert(source, x.dtype)
    updates = b.transpose(source, [source.rank - 1, *range(source.rank - 1)])
    places = diagonal_places(site, offset, source.shape[-1])
    return b.scatter(x, updates, places, [dim_of(dim1, x.rank), dim_of(dim2, x.rank)])


@lowers("masked_scatter.default")
def masked_scatter(site: Site, x: Value, mask: Value, source: Value):
    """Element n of the source goes where the mask is true for the n-th time."""
    b = site.builder
    x, mask = site.operand(x, site.dtype), site.operand(mask, torch.bool)
    if x.size == 0:
        return x
    flat = b.reshape(mask, [mask.size])
    numbers = b.cumulative("sum", b.convert(flat, torch.int64), 0)
    last = b.slice(numbers, 0, mask.size - 1, mask.size)
    message = "RuntimeError: Number of elements of source < number of ones in mask"
    b.check(b.compare("le", last, source.size), message)
    if source.size == 0:
        return x
    place = b.scalar("sub", numbers, 1)
    chosen = b.gather(b.reshape(source, [source.size]), [place], [0])
    return b.select(mask, b.reshape(b.convert(chosen, x.dtype), x.shape), x)


# Sums, means and maxima of rows


@lowers(
    *("_embedding_bag.default", "_embedding_bag_forward_only.default"),
    *("embedding_bag.default", "embedding_bag.padding_idx"),
)
def embedding_bag(
    site: Site,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights: Value | None = None,
    include_last_offset=False,
    padding_idx=None,
):
    b = site.builder
    site.only(0)
    length, bags = indices.size, offsets.size - int(include_last_offset)
    (rows, features), dtype = weight.shape, weight.dtype
    if not length or not bags or not rows:
        raise Decline("an embedding_bag without rows")
    indices, offsets = b.convert(indices, torch.int64), b.convert(offsets, torch.int64)
    check_range(site, indices, 0, rows, "RuntimeError: an index is not in the valid range")
    first = b.slice(offsets, 0, 0, 1)
    b.check(b.compare("eq", first, 0), "RuntimeError: offsets[0] has to be 0")
    check_range(site, offsets, 0, length + 1, "RuntimeError: an offset is out of range")
    if offsets.size > 1:
        ahead, behind = (b.slice(offsets, 0, d, offsets.size - 1 + d) for d in (0, 1))
        b.check(b.compare("le", ahead, behind), "RuntimeError: offsets have to be in order")
    bag = _bags(site, offsets, length)
    if padding_idx is not None and site.target == "aten.embedding_bag.padding_idx":
        padding_idx %= rows  # to the others -1 is none
    if padding_idx is not None and padding_idx >= 0:
        padding = b.compare("eq", indices, padding_idx)
        bag = b.select(padding, b.constant(bags, torch.int64, bag.shape), bag)

    def collect(start: float, updates: Value, kind: str) -> Value:
        shape = [bags, *updates.shape[1:]]
        return b.scatter(b.constant(start, dtype, shape), updates, [bag], [0], kind)

    found = b.gather(weight, [indices], [0])
    if per_sample_weights is not None:
        found = b.binary("mul", found, b.along(per_sample_weights, 0, found.shape))
    if mode == 0:
        return collect(0, found, "sum"), None, None, None
    count = b.along(collect(0, b.constant(1, dtype, [length]), "sum"), 0, [bags, features])
    if mode == 1:
        mean = b.binary("div", collect(0, found, "sum"), b.scalar("max", count, 1))
        return mean, None, None, None
    # PyTorch takes the first row of a bag and then what is larger, which no NaN is.
    places = b.iota(torch.int64, [length], 0)
    none = b.constant(length, torch.int64, [bags + 1])
    firsts = b.gather(b.scatter(none, places, [bag], [0], "min"), [bag], [0])
    is_later = b.along(b.compare("ne", firsts, places), 0, found.shape)
    least = b.constant(float("-inf"), dtype, found.shape)
    is_unseen = b.binary("and", is_later, b.compare("ne", found, found))
    largest = collect(float("-inf"), b.select(is_unseen, least, found), "max")
    empty, zero = b.compare("eq", count, 0), b.constant(0, dtype, count.shape)
    return b.select(empty, zero, largest), None, None, None


def _bags(site: Site, offsets: Value, length: int) -> Value:
    """The number of the bag of every position: how many bags have begun there, less one."""
    b = site.builder
    zeros = b.constant(0, torch.int64, [length + 1])
    ones = b.constant(1, torch.int64, offsets.shape)
    begun = b.cumulative("sum", b.scatter(zeros, ones, [offsets], [0], "sum"), 0)
    return b.scalar("sub", b.slice(begun, 0, 0, length), 1)
