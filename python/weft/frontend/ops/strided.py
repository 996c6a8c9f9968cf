# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views by strides: they show the memory of a tensor, whatever the tensor itself shows of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.asking import lays_out_otherwise
from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.strides import order_of
from weft.frontend.table import Site, lowers

_MOST_SHIFTS = 16  # of a row of windows that overlap: each is an op


@lowers("as_strided.default", "as_strided_copy.default")
def as_strided(site: Site, x: Value, size, stride, storage_offset=None):
    """Of the elements of x alone: what lies around them in memory is not ours to read. Nor does a
    guard know where an input lies in its memory."""
    lying = site.lying
    if otherwise := lays_out_otherwise(site.node.args[0]):
        raise _unsupported(site, f"a view by strides of what {otherwise} lays out otherwise")
    flat = _in_order(site.builder, x, lying)
    start = 0 if storage_offset is None else storage_offset - lying.storage_offset()
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 in size:
        return site.builder.constant(0, site.dtype, site.shape)
    placed = storage_offset is not None and site.shows_input
    if flat is None or placed or start < 0 or last >= flat.size:
        raise _unsupported(site, "a view by strides of what is not dense in memory")
    return _strided(site.builder, flat, list(size), list(stride), start)


@lowers("as_strided_scatter.default")
def as_strided_scatter(site: Site, x: Value, source: Value, size, stride, storage_offset=None):
    """PyTorch has the elements in their order, so they have to lie in it. Its own derivative of the
    op has a gradient of what is written over; functionalised writes, which are none, read this."""
    lying, b = site.lying, site.builder
    placed = storage_offset is not None and site.shows_input
    if not lying.is_contiguous() or lying.storage_offset() != 0 or placed:
        raise _unsupported(site, "writes through strides to what is not contiguous")
    start = storage_offset or 0
    if _overlap(size, stride):
        raise Decline("writes through strides that overlap")
    source = b.convert(source, x.dtype)
    if start == 0 and source.size == x.size:
        order = sorted(range(source.rank), key=lambda d: -stride[d] if size[d] > 1 else 0)
        return b.reshape(b.transpose(source, order), x.shape)
    if source.size == 0:
        return x
    places = b.scalar("add", _places(b, size, stride), start)
    flat = b.scatter(b.reshape(x, [x.size]), source, [places], [0])
    return b.reshape(flat, x.shape)


def _overlap(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether an element may be reached twice."""
    reach = 0
    for step, count in sorted((s, n) for n, s in zip(size, stride, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += (count - 1) * step
    return False


def _in_order(b: Builder, x: Value, lying: torch.Tensor) -> Value | None:
    """The elements of x in the order in which they lie in memory; None if there are gaps."""
    order = order_of(lying)
    return None if order is None else b.reshape(b.transpose(x, order), [x.size])


def _strided(b: Builder, x: Value, size: list[int], stride: list[int], start: int) -> Value:
    """x: a vector. The elements start + sum_d index[d] * stride[d], in the shape `size`."""
    moving = [d for d in range(len(size)) if size[d] > 1 and stride[d] > 0]
    perm = sorted(moving, key=lambda d: -stride[d])
    last = start + sum((size[d] - 1) * stride[d] for d in moving)
    x = b.slice(x, 0, start, last + 1)
    x = _windows(b, x, [size[d] for d in perm], [stride[d] for d in perm])
    x = b.transpose(x, [perm.index(d) for d in moving])
    return b.broadcast_in_dim(x, moving, size)


def _windows(b: Builder, x: Value, size: Sequence[int], stride: Sequence[int]) -> Value:
    """x: (lead..., span), just what is reached. To (lead..., *size); the longest strides first."""
    *lead, span = x.shape
    if len(size) < 2:
        x = b.slice(x, len(lead), 0, span, *stride)
        return b.reshape(x, [*lead, *size])
    # Rows as long as the first stride; what the others reach may lie in the rows that follow.
    reach = span - (size[0] - 1) * stride[0]
    shifts = -(-reach // stride[0])
    if shifts > _MOST_SHIFTS:
        return _gathered(b, x, size, stride)
    none = [0] * len(lead)
    x = b.pad(x, [*none, 0], [*none, (size[0] - 1 + shifts) * stride[0] - span], 0)
    parts = []
    for shift in range(shifts):
        part = b.slice(x, len(lead), shift * stride[0], (shift + size[0]) * stride[0])
        parts.append(b.reshape(part, [*lead, size[0], stride[0]]))
    rows = b.slice(b.concat(parts, len(lead) + 1), len(lead) + 1, 0, reach)
    return _windows(b, rows, size[1:], stride[1:])


def _gathered(b: Builder, x: Value, size: Sequence[int], stride: Sequence[int]) -> Value:
    lead = x.rank - 1
    found = b.gather(x, [_places(b, size, stride)], [lead])
    return b.transpose(found, [*range(len(size), found.rank), *range(len(size))])


def _places(b: Builder, size: Sequence[int], stride: Sequence[int]) -> Value:
    """The positions of the elements, counted from the first one."""
    steps = [b.scalar("mul", b.iota(torch.int64, size, d), step) for d, step in enumerate(stride)]
    return b.total(steps) if steps else b.constant(0, torch.int64, [])


def _unsupported(site: Site, reason: str) -> Unsupported:
    return Unsupported(reason, site.builder.graph.location)
