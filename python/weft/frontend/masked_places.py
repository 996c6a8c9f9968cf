# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for places that a mask chooses: `nonzero`, `argwhere`, `where`, and their columns."""

from __future__ import annotations

from dataclasses import replace

import torch

from weft.frontend.chosen import Packer
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked
from weft.frontend.table import Site, lowers


@masked("nonzero.default", "argwhere.default")
def places(site: Site, x: Value):
    """(n, rank): where each element stands."""
    b = site.builder
    if not x.rank:
        raise Decline("the places of a tensor without dims")
    mask = x if x.dtype == torch.bool else b.compare("ne", x, 0)
    each_dim = [b.iota(torch.int64, x.shape, dim) for dim in range(x.rank)]
    known = tuple(b.reshape(each, [x.size, 1]) for each in each_dim)
    table = known[0] if len(known) == 1 else b.concat(known, 1)
    return Masked(table, b.reshape(mask, (x.size,)), x, columns=known, indexed=x.shape)


@masked("nonzero_numpy.default", "where.default")
def places_by_dim(site: Site, x: Value):
    table = places(site, x)
    return [column(site, table, 1, dim) for dim in range(x.rank)]


@masked("select.int")
def column(site: Site, x: Masked, dim: int, index: int):
    """One column of a table of places."""
    if not x.columns or dim % 2 != 1:
        raise Decline("a part of chosen elements")
    index %= len(x.columns)
    value = site.builder.reshape(x.columns[index], [x.mask.size])
    return replace(x.holding(value), table=x.value, column=index, indexed=x.indexed)


@masked("squeeze.dim")
def only_column(site: Site, x: Masked, dim: int):
    if len(x.columns) != 1:
        raise Decline("chosen elements without a dim")
    return column(site, x, dim, 0)


@masked("unbind.int")
def columns(site: Site, x: Masked, dim: int = 0):
    return [column(site, x, dim, index) for index in range(len(x.columns) or 1)]


@masked("flatten.using_ints")
def flat(site: Site, x: Masked, start_dim: int = 0, end_dim: int = -1):
    if len(x.columns) == 1:
        return column(site, x, 1, 0)
    if x.value.rank != 1:
        raise Decline("the dims of chosen elements put together")
    return x


@lowers("nonzero_static.default")
def static_places(site: Site, x: Value, *, size: int, fill_value: int = -1):
    """(size, rank): the first places, as many as there is room for, and fillers."""
    b, (rows, columns) = site.builder, site.shape
    if not x.size or not rows or not columns:
        return b.constant(fill_value, torch.int64, site.shape)
    packed, count = Packer(b).pack(places(site, x))
    if rows > x.size:
        packed = b.pad(packed, [0, 0], [rows - x.size, 0], 0)
    first = b.slice(packed, 0, 0, rows)
    is_found = b.compare("lt", b.iota(torch.int64, site.shape, 0), b.broadcast(count, site.shape))
    return b.select(is_found, first, b.constant(fill_value, torch.int64, site.shape))
