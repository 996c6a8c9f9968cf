# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nearest-neighbour interpolation along the last dims.

Which element is nearest hangs on the rounding of torch's own index arithmetic, which differs
between sizes, scales, types and memory formats (aten/src/ATen/native/cpu/UpSampleKernel.cpp). So
PyTorch is asked, once per dim and while the program is made, and its answer has to be what the
program will compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weft.frontend.dtypes import is_float
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.ops.index import gathered_along
from weft.frontend.table import Site, lowers

_FAMILY = [
    f"{name}{n}d" for n in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact")
]


@lowers(*(f"{name}.vec" for name in _FAMILY))
def upsample_nearest(site: Site, x: Value, output_size=None, scale_factors=None):
    return _nearest(site, x, scale_factors or ())


@lowers(*(f"{name}.default" for name in _FAMILY))
def upsample_nearest_to(site: Site, x: Value, output_size, *scales):
    return _nearest(site, x, scales)


def _nearest(site: Site, x: Value, scales: Sequence[float | None]) -> Value:
    b, dims = site.builder, range(2, x.rank)
    if 0 in x.shape:
        return b.constant(0, x.dtype, site.shape)
    scales = [*scales, *[None] * (len(dims) - len(scales))]
    asked = [_places(site, x, dim, scale) for dim, scale in zip(dims, scales)]
    if b.graph.training and not b.graph.constant:
        for dim, scale, found in zip(dims, scales, asked):
            _check_way_back(site, x, dim, scale, found)
    if not site.varying.isdisjoint(dims) and not any(scales):
        for dim, found in zip(dims, asked):
            x = _picked_at_any_size(site, x, dim, found)
        return x
    if all(_repeats(found, x.shape[dim]) for dim, found in zip(dims, asked)):
        return _repeat_pixels(site, x)
    for dim, scale, found in zip(dims, scales, asked):
        x = _picked(site, x, dim, scale, found)
    return x


def _places(site: Site, x: Value, dim: int, scale: float | None) -> torch.Tensor:
    """The indices along `dim` at which PyTorch finds the results."""
    name = site.target.split(".")[1]
    op = getattr(torch.ops.aten, name).default
    # Of halves no type counts far enough; their indices are those of float32.
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    if x.shape[dim] > 2**24:
        raise Decline(f"{name} of {x.shape[dim]} elements")
    shape, size = [1] * x.rank, [1] * (x.rank - 2)
    shape[1], shape[dim], size[dim - 2] = 2, x.shape[dim], site.shape[dim]
    along = [-1 if d == dim else 1 for d in range(x.rank)]
    numbers = torch.arange(x.shape[dim], dtype=dtype).reshape(along).expand(shape)
    scales = [scale if d == dim else None for d in range(2, x.rank)]
    formats = [torch.contiguous_format]
    formats += {4: [torch.channels_last], 5: [torch.channels_last_3d]}.get(x.rank, [])
    answers = [op(numbers.contiguous(memory_format=f), size, *scales)[0, 0] for f in formats]
    if any(not torch.equal(answers[0], other) for other in answers):
        raise Decline(f"{name} whose elements hang on the memory format")
    return answers[0].flatten().long()


def _check_way_back(
    site: Site, x: Value, dim: int, scale: float | None, found: torch.Tensor
) -> None:
    """PyTorch's gradients in three dims keep and double a dim by sizes, where its kernels go by
    the scale."""
    if scale is None:
        return
    name = site.target.split(".")[1]
    op = getattr(torch.ops.aten, f"{name}_backward").default
    counts, sizes = [1] * x.rank, [1] * x.rank
    counts[dim], sizes[dim] = len(found), x.shape[dim]
    scales = [scale if d == dim else None for d in range(2, x.rank)]
    given = torch.arange(1, len(found) + 1, dtype=torch.float64)
    reached = op(given.reshape(counts), counts[2:], sizes, *scales).flatten()
    if not torch.equal(reached, torch.zeros_like(reached).index_add(0, found, given)):
        reason = f"{site.target} whose gradient goes to other elements than it reads"
        raise Unsupported(reason, site.builder.graph.location)


def _repeats(places: torch.Tensor, size: int) -> bool:
    factor, rest = divmod(len(places), size)
    return not rest and torch.equal(places, torch.arange(len(places)) // factor)


def _repeat_pixels(site: Site, x: Value) -> Value:
    wide = list(x.shape[:2])
    for out, size in zip(site.shape[2:], x.shape[2:]):
        wide += [size, out // size]
    dims = [0, 1, *range(2, len(wide), 2)]
    b = site.builder
    assert math.prod(wide) == math.prod(site.shape)
    return b.reshape(b.broadcast_in_dim(x, dims, wide), site.shape)


def _picked(site: Site, x: Value, dim: int, scale: float | None, found: torch.Tensor) -> Value:
    """x with the elements at `found` in the place of those of `dim`, by arithmetic that gives the
    same places: a table would cost a selection for each of its entries."""
    b, size, count = site.builder, x.shape[dim], len(found)
    if torch.equal(found, torch.arange(size)):
        return x
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    step = torch.tensor(1 / scale if scale else size / count, dtype=dtype).item()
    return _taken(site, x, dim, found, b.constant(step, dtype, [count]), step)


def _picked_at_any_size(site: Site, x: Value, dim: int, found: torch.Tensor) -> Value:
    """As `_picked`, of a step that depends on sizes. torch computes it so for floating-point
    numbers of up to 32 bits; for others it rounds as it does at some sizes alone."""
    size, count = x.shape[dim], len(found)
    if not is_float(x.dtype) or x.dtype == torch.float64:
        raise Unsupported(f"{site.target} of {x.dtype} for a size that varies")
    step = site.builder.quotient(size, count, torch.float32, [count])
    return _taken(site, x, dim, found, step, torch.tensor(size / count).item())


def _taken(
    site: Site, x: Value, dim: int, found: torch.Tensor, step: Value, number: float
) -> Value:
    """Each result's place is its number times `step`, which is `number`, rounded down."""
    b, size, count = site.builder, x.shape[dim], len(found)
    half = 0.5 if "exact" in site.target else 0.0
    computed = (torch.arange(count, dtype=step.dtype) + half) * number
    if not torch.equal(computed.long().clamp(max=size - 1), found):
        raise Decline(f"{site.target} of {size} elements for {count}")
    at = b.convert(b.iota(torch.int64, [count], 0), step.dtype)
    at = b.binary("mul", b.scalar("add", at, half) if half else at, step)
    last = b.constant(size - 1, torch.int64, [count])
    return gathered_along(b, x, dim, b.binary("min", b.convert(at, torch.int64), last))
