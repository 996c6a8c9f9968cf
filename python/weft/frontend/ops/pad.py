# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding: by a constant, by reflection, by the edge, in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers


@lowers("constant_pad_nd.default")
def constant_pad(site: Site, x: Value, pad: Sequence[int], value=0):
    low, high = [0] * x.rank, [0] * x.rank
    for dim, before, after in _by_dim(x, pad):
        low[dim], high[dim] = before, after
    return site.builder.pad(x, low, high, value)


@lowers("pad.default")
def pad(site: Site, x: Value, pad: Sequence[int], mode="constant", value=None):
    if mode == "constant":
        return constant_pad(site, x, pad, 0 if value is None else value)
    return _pad_by(site, x, pad, mode)


@lowers("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(site: Site, x: Value, pad: Sequence[int]):
    return _pad_by(site, x, pad, "reflect")


@lowers("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(site: Site, x: Value, pad: Sequence[int]):
    return _pad_by(site, x, pad, "replicate")


def _by_dim(x: Value, pad: Sequence[int]):
    """torch lists (before, after) from the last dim on."""
    for pair in range(len(pad) // 2):
        yield x.rank - 1 - pair, pad[2 * pair], pad[2 * pair + 1]


def _pad_by(site: Site, x: Value, pad: Sequence[int], mode: str) -> Value:
    if any(n < 0 for n in pad):
        raise Decline(f"{mode} padding by a negative amount")
    return _padded(site, x, sorted(_by_dim(x, pad)), mode)


def _padded(site: Site, x: Value, dims: Sequence[tuple[int, int, int]], mode: str) -> Value:
    """By (dim, before, after), the outermost first: every part is padded along the others, so that
    a kernel stores it where it belongs."""
    if not dims:
        return x
    (dim, before, after), *inner = dims
    parts = [
        _edge(site, x, dim, before, mode, True),
        x,
        _edge(site, x, dim, after, mode, False),
    ]
    padded = [_padded(site, part, inner, mode) for part in parts if part is not None]
    return site.builder.concat(padded, dim)


def _edge(site: Site, x: Value, dim: int, count: int, mode: str, front: bool) -> Value | None:
    if not count:
        return None
    b, size = site.builder, x.shape[dim]
    match mode:
        case "reflect":
            start = 1 if front else size - 1 - count
            return b.reverse(b.slice(x, dim, start, start + count), [dim])
        case "replicate":
            start = 0 if front else size - 1
            shape = [count if d == dim else n for d, n in enumerate(x.shape)]
            return b.broadcast(b.slice(x, dim, start, start + 1), shape)
        case "circular":
            start = size - count if front else 0
            return b.slice(x, dim, start, start + count)
    raise Decline(f"padding mode {mode}")
