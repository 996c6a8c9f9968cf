# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements and compute none. Views are values here; aliases.py knows them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.graph import Value
from weft.frontend.table import Site, dim_of, dims_of, lowers


@lowers(
    *("view.default", "reshape.default", "_unsafe_view.default", "unsqueeze.default"),
    *("squeeze.default", "squeeze.dim", "squeeze.dims", "flatten.using_ints"),
    *("view_copy.default", "unsqueeze_copy.default", "squeeze_copy.default"),
    *("squeeze_copy.dim", "squeeze_copy.dims", "_reshape_copy.default"),
    *("unflatten.int", "view_as.default", "reshape_as.default", "ravel.default"),
)
def reshape(site: Site, x: Value, *_, **__):
    return site.builder.reshape(x, site.shape)


@lowers("expand.default", "expand_copy.default", "expand_as.default", "broadcast_to.default")
def expand(site: Site, x: Value, *_, **__):
    return site.builder.broadcast(x, site.shape)


@lowers("permute.default", "permute_copy.default")
def permute(site: Site, x: Value, dims):
    return site.builder.transpose(x, [dim_of(dim, x.rank) for dim in dims])


@lowers("transpose.int", "transpose_copy.int", "swapaxes.default", "swapdims.default")
def transpose(site: Site, x: Value, first, second):
    perm = list(range(x.rank))
    if perm:
        first, second = dim_of(first, x.rank), dim_of(second, x.rank)
        perm[first], perm[second] = second, first
    return site.builder.transpose(x, perm)


@lowers("t.default", "t_copy.default", "numpy_T.default")
def reverse_dims(site: Site, x: Value):
    return site.builder.transpose(x, range(x.rank)[::-1])


@lowers("mT.default")
def swap_last(site: Site, x: Value):
    return transpose(site, x, -1, -2)


@lowers("slice.Tensor", "slice_copy.Tensor")
def slice_(site: Site, x: Value, dim=0, start=None, end=None, step=1):
    dim = dim_of(dim, x.rank)
    start, limit, step = slice(start, end, step).indices(x.shape[dim])
    return site.builder.slice(x, dim, start, max(limit, start), step)


@lowers("narrow.default", "narrow_copy.default")
def narrow(site: Site, x: Value, dim, start, length):
    dim = dim_of(dim, x.rank)
    start %= max(x.shape[dim], 1)
    return site.builder.slice(x, dim, start, start + length)


@lowers("select.int", "select_copy.int")
def select(site: Site, x: Value, dim, index):
    return _select(site, x, dim_of(dim, x.rank), index)


def _select(site: Site, x: Value, dim: int, index: int) -> Value:
    index %= x.shape[dim]
    one = site.builder.slice(x, dim, index, index + 1)
    return site.builder.reshape(one, [n for d, n in enumerate(x.shape) if d != dim])


@lowers("unbind.int", "unbind_copy.int")
def unbind(site: Site, x: Value, dim=0):
    dim = dim_of(dim, x.rank)
    return tuple(_select(site, x, dim, i) if i in site.used else None for i in range(x.shape[dim]))


@lowers(
    *(
        "split.Tensor",
        "split.sizes",
        "split_with_sizes.default",
        "split_copy.Tensor",
        "split_with_sizes_copy.default",
        "chunk.default",
    ),
    *("tensor_split.sections", "unsafe_split.Tensor", "unsafe_chunk.default"),
)
def split(site: Site, x: Value, _, dim=0):
    dim = dim_of(dim, x.rank)
    pieces, start = [], 0
    for number, result in enumerate(site.results):
        limit = start + result.shape[dim]
        used = number in site.used
        pieces.append(site.builder.slice(x, dim, start, limit) if used else None)
        start = limit
    return tuple(pieces)


@lowers("cat.default", "concat.default", "concatenate.default")
def cat(site: Site, tensors: Sequence[Value], dim=0):
    # torch skips empty vectors whatever the rank of the others.
    tensors = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    casts = [site.builder.convert(x, site.dtype) for x in tensors]
    return site.builder.concat(casts, dim_of(dim, casts[0].rank))


@lowers("stack.default")
def stack(site: Site, tensors: Sequence[Value], dim=0):
    b = site.builder
    dim = dim_of(dim, len(site.shape))
    shape = [1 if d == dim else n for d, n in enumerate(site.shape)]
    return b.concat([b.reshape(b.convert(x, site.dtype), shape) for x in tensors], dim)


@lowers("flip.default")
def flip(site: Site, x: Value, dims):
    return site.builder.reverse(x, dims_of(dims, x.rank)) if dims and x.rank else x


@lowers("roll.default")
def roll(site: Site, x: Value, shifts, dims=()):
    b = site.builder
    if not dims:
        flat = _roll(site, b.reshape(x, [x.size]), shifts[0], 0)
        return b.reshape(flat, x.shape)
    for shift, dim in zip(shifts, dims):
        x = _roll(site, x, shift, dim_of(dim, x.rank))
    return x


def _roll(site: Site, x: Value, shift: int, dim: int) -> Value:
    size = x.shape[dim]
    cut = -shift % size if size else 0
    if not cut:
        return x
    b = site.builder
    return b.concat([b.slice(x, dim, cut, size), b.slice(x, dim, 0, cut)], dim)


@lowers("repeat.default")
def repeat(site: Site, x: Value, repeats):
    b = site.builder
    sizes = [1] * (len(repeats) - x.rank) + list(x.shape)
    wide = [n for pair in zip(repeats, sizes) for n in pair]
    behind = range(2 * (len(repeats) - x.rank) + 1, 2 * len(repeats), 2)
    return b.reshape(b.broadcast_in_dim(x, behind, wide), site.shape)


@lowers("repeat_interleave.self_int")
def repeat_interleave(site: Site, x: Value, repeats, dim=None, output_size=None):
    b = site.builder
    if dim is None:
        x, dim = b.reshape(x, [x.size]), 0
    dim = dim_of(dim, x.rank)
    wide = [*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :]]
    dims = [d for d in range(len(wide)) if d != dim + 1]
    return b.reshape(b.broadcast_in_dim(x, dims, wide), site.shape)


@lowers("slice_scatter.default")
def slice_scatter(site: Site, x: Value, source: Value, dim=0, start=None, end=None, step=1):
    b = site.builder
    dim = dim_of(dim, x.rank)
    start, _, step = slice(start, end, step).indices(x.shape[dim])
    source = b.convert(source, x.dtype)
    if step == 1:
        return _replace(site, x, source, dim, start)
    count = b.iota(torch.int64, [source.shape[dim]], 0)
    place = b.scalar("add", b.scalar("mul", count, step), start)
    updates = b.transpose(source, [dim, *(d for d in range(x.rank) if d != dim)])
    return b.scatter(x, updates, [place], [dim])


@lowers("select_scatter.default")
def select_scatter(site: Site, x: Value, source: Value, dim, index):
    b = site.builder
    dim = dim_of(dim, x.rank)
    shape = [1 if d == dim else n for d, n in enumerate(x.shape)]
    source = b.reshape(b.convert(source, x.dtype), shape)
    return _replace(site, x, source, dim, index % x.shape[dim])


def _replace(site: Site, x: Value, source: Value, dim: int, start: int) -> Value:
    b = site.builder
    limit = start + source.shape[dim]
    parts = [b.slice(x, dim, 0, start), source, b.slice(x, dim, limit, x.shape[dim])]
    return b.concat([part for part in parts if part.shape[dim]] or [x], dim)


@lowers("pixel_shuffle.default")
def pixel_shuffle(site: Site, x: Value, factor):
    b = site.builder
    *batch, channels, height, width = x.shape
    kept, n = channels // factor**2, len(batch)
    blocks = b.reshape(x, [*batch, kept, factor, factor, height, width])
    order = [*range(n + 1), n + 3, n + 1, n + 4, n + 2]
    return b.reshape(b.transpose(blocks, order), site.shape)
