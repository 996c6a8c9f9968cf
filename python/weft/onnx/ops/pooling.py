# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools over windows and over whole images."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.onnx.ops.convolution import CONVOLUTIONS
from weft.onnx.ops.windows import Windows, windows
from weft.onnx.table import Node, op
from weft.onnx.values import numbers

_POOL = "auto_pad ceil_mode dilations kernel_shape pads strides"
_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _windows(node: Node, x: Tensor) -> Windows:
    if x.ndim - 2 not in _MAX:
        raise node.unsupported(f"{x.ndim - 2} spatial axes are not supported")
    return windows(node, list(x.shape[2:]), node.get("kernel_shape"))


@op("MaxPool", f"{_POOL} storage_order")
def max_pool(node: Node, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    where, rank = _windows(node, x), x.ndim - 2
    if not x.dtype.is_floating_point:  # float32 holds them: torch has no such pools of integers
        pooled = _max_pooled(node, x.to(torch.float32), where, rank)
        return (
            (pooled[0].to(x.dtype), pooled[1]) if isinstance(pooled, tuple) else pooled.to(x.dtype)
        )
    return _max_pooled(node, x, where, rank)


def _max_pooled(node: Node, x: Tensor, where: Windows, rank: int) -> Tensor | tuple[Tensor, Tensor]:
    sizes, padding = list(x.shape[2:]), where.before
    inside = all(2 * pad <= k for pad, k in zip(padding, where.kernel))
    if not (where.is_symmetric and inside):
        x, padding = F.pad(x, where.pads(), value=-math.inf), [0] * rank
    settings = where.kernel, where.strides, padding, where.dilations
    if not node.has_output(1):
        return _MAX[rank](x, *settings)
    y, indices = _MAX[rank](x, *settings, return_indices=True)
    return y, _flat_indices(node, indices, where, sizes, list(x.shape[2:]))


def _flat_indices(
    node: Node, indices: Tensor, where: Windows, sizes: list[int], padded: list[int]
) -> Tensor:
    """ONNX's indices, which count within the tensor, from torch's, which count within a plane."""
    moved = padded != sizes
    places, rest = [], indices
    for size in reversed(padded):
        places.append(rest % size)
        rest = torch.div(rest, size, rounding_mode="floor")
    places.reverse()
    if moved:
        places = [place - before for place, before in zip(places, where.before)]
    order = list(range(len(sizes)))
    if node.get("storage_order", 0):
        order.reverse()
    flat = torch.zeros_like(indices)
    for axis in order:
        flat = flat * sizes[axis] + places[axis]
    planes = torch.arange(indices.shape[0] * indices.shape[1])
    planes = planes.reshape(*indices.shape[:2], *[1] * len(sizes))
    return flat + planes * math.prod(sizes)


@op("AveragePool", f"{_POOL} count_include_pad")
def average_pool(node: Node, x: Tensor) -> Tensor:
    where, rank = _windows(node, x), x.ndim - 2
    include = bool(node.get("count_include_pad", 0))
    plain = all(d == 1 for d in where.dilations)
    inside = all(2 * pad <= k for pad, k in zip(where.before, where.kernel))
    if plain and where.is_symmetric and inside:
        return _AVERAGE[rank](
            x, where.kernel, where.strides, where.before, count_include_pad=include
        )
    counted = torch.ones(x.shape[2:], dtype=x.dtype).reshape(1, 1, *x.shape[2:])
    if include:
        counted = F.pad(counted, where.pads(with_ceil=False), value=1.0)
        counted = F.pad(counted, [c for a in where.ceil_after[::-1] for c in (0, a)])
    else:
        counted = F.pad(counted, where.pads())
    return _sums(F.pad(x, where.pads()), where) / _sums(counted, where)


def _sums(x: Tensor, where: Windows) -> Tensor:
    """The sum of each window of what is padded already."""
    rank = len(where.kernel)
    if all(d == 1 for d in where.dilations):
        return _AVERAGE[rank](x, where.kernel, where.strides) * math.prod(where.kernel)
    ones = torch.ones(1, 1, *where.kernel, dtype=x.dtype)
    planes = x.reshape(-1, 1, *x.shape[2:])
    sums = CONVOLUTIONS[rank](planes, ones, None, where.strides, 0, where.dilations)
    return sums.reshape(*x.shape[:2], *sums.shape[2:])


@op("LpPool", f"{_POOL} p")
def lp_pool(node: Node, x: Tensor) -> Tensor:
    where, p = _windows(node, x), node.get("p", 2)
    return _sums(F.pad(x.abs() ** p, where.pads()), where) ** (1 / p)


@op("GlobalAveragePool GlobalMaxPool GlobalLpPool", "p")
def global_pool(node: Node, x: Tensor) -> Tensor:
    axes = list(range(2, x.ndim))
    if node.op == "GlobalAveragePool":
        return x.mean(axes, keepdim=True)
    if node.op == "GlobalMaxPool":
        return x.amax(axes, keepdim=True)
    p = node.get("p", 2)
    return (x.abs() ** p).sum(axes, keepdim=True) ** (1 / p)


@op("MaxUnpool", "kernel_shape pads strides", since=9)
def max_unpool(node: Node, x: Tensor, indices: Tensor, to: Tensor | None = None) -> Tensor:
    """Indices count within the tensor of the size that follows from the windows; a larger
    `to` adds zeros after it."""
    rank = x.ndim - 2
    kernel, strides = node.get("kernel_shape"), node.get("strides", [1] * rank)
    pads = node.get("pads", [0] * (2 * rank))
    sizes = [
        (x.shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i]
        for i in range(rank)
    ]
    count = x.shape[0] * x.shape[1] * math.prod(sizes)
    y = torch.zeros(count, dtype=x.dtype).scatter(0, indices.reshape(-1), x.reshape(-1))
    y = y.reshape(*x.shape[:2], *sizes)
    if to is None:
        return y
    wanted = numbers(to)[2:]
    return F.pad(y, [e for i in reversed(range(rank)) for e in (0, wanted[i] - sizes[i])])
