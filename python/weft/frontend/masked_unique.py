# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for distinct values: of those that are equal and stand side by side the first is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked
from weft.frontend.ops.order import sorted_with_places
from weft.frontend.table import Site


@masked("_unique2.default")
def unique(site: Site, x: Value, sorted=True, return_inverse=False, return_counts=False):
    if not sorted or not x.size:
        raise Decline("distinct values in no order, or of nothing")
    values, places = sorted_with_places(site, x)
    chosen, group, counts = _distinct(site, values)
    inverse = site.builder.scatter(group, group, [places], [0])
    asked = (return_inverse, return_counts)
    return [chosen, *_asked_for(site, asked, (site.builder.reshape(inverse, x.shape), counts))]


@masked("unique_consecutive.default")
def unique_consecutive(site: Site, x: Value, return_inverse=False, return_counts=False, dim=None):
    if dim is not None or not x.size:
        raise Decline("distinct rows, or values of nothing")
    chosen, group, counts = _distinct(site, site.builder.reshape(x, [x.size]))
    inverse = site.builder.reshape(group, x.shape)
    return [chosen, *_asked_for(site, (return_inverse, return_counts), (inverse, counts))]


def _asked_for(site: Site, asked: Sequence[bool], given: Sequence[Any]) -> Iterator[Any]:
    """What a call is not asked for has no elements."""
    for is_asked, each in zip(asked, given, strict=True):
        yield each if is_asked else site.builder.constant(0, torch.int64, [0])


def _distinct(site: Site, x: Value) -> tuple[Masked, Value, Masked]:
    """The distinct values of a vector, which of them each element has, and how many have each."""
    b, size = site.builder, x.size
    start = b.constant(True, torch.bool, [1])
    differs = b.compare("ne", b.slice(x, 0, 1, size), b.slice(x, 0, 0, size - 1))
    is_first = b.concat([start, differs], 0) if size > 1 else start
    group = b.scalar("sub", b.cumulative("sum", b.convert(is_first, torch.int64), 0), 1)
    at = b.iota(torch.int64, [size], 0)
    ends = b.select(is_first, at, b.constant(size, torch.int64, [size]))
    # The place of the next first one: the least of those behind.
    behind = b.reverse(b.cumulative("min", b.reverse(ends, [0]), 0), [0])
    last = b.constant(size, torch.int64, [1])
    following = b.concat([b.slice(behind, 0, 1, size), last], 0) if size > 1 else last
    chosen = Masked(x, is_first, is_first)
    return chosen, group, chosen.holding(b.binary("sub", following, at))
