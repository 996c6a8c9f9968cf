# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers, scatters, and what depends on which elements are set."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import number

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _positive(indices: Tensor, count: int) -> Tensor:
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + count, indices)


@op("Gather", "axis")
def gather(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.get("axis", 0) % x.ndim
    places = _positive(indices, x.shape[axis])
    if indices.ndim == 0:
        return x.index_select(axis, places.reshape(1)).squeeze(axis)
    found = x.index_select(axis, places.reshape(-1))
    return found.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


@op("GatherElements", "axis", since=11)
def gather_elements(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.get("axis", 0)
    return torch.gather(x, axis, _positive(indices, x.shape[axis]))


@op("GatherND", "batch_dims", since=11)
def gather_nd(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    batch = node.get("batch_dims", 0)
    depth = indices.shape[-1]
    leading = [
        torch.arange(x.shape[i]).reshape(-1, *[1] * (indices.ndim - 2 - i)) for i in range(batch)
    ]
    places = [_positive(indices[..., i], x.shape[batch + i]) for i in range(depth)]
    return x[tuple(leading + places)]


@op("ScatterElements Scatter", "axis reduction", since=9)
def scatter_elements(node: Node, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis, how = node.get("axis", 0), node.get("reduction", "none")
    places = _positive(indices, x.shape[axis])
    if how == "none":
        return torch.scatter(x, axis, places, updates)
    return torch.scatter_reduce(x, axis, places, updates, _reduction(node, how))


@op("ScatterND", "reduction", since=11)
def scatter_nd(node: Node, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    how = node.get("reduction", "none")
    depth = indices.shape[-1]
    row = torch.zeros(indices.shape[:-1], dtype=torch.int64)
    for i in range(depth):
        row = row * x.shape[i] + _positive(indices[..., i], x.shape[i])
    rows, width = math.prod(x.shape[:depth]), math.prod(x.shape[depth:])
    places = row.reshape(-1, 1).expand(-1, width)
    flat, new = x.reshape(rows, width), updates.reshape(-1, width)
    if how == "none":
        return torch.scatter(flat, 0, places, new).reshape(x.shape)
    return torch.scatter_reduce(flat, 0, places, new, _reduction(node, how)).reshape(x.shape)


def _reduction(node: Node, how: str) -> str:
    if how not in _REDUCTIONS:
        raise node.unsupported(f"reduction {how} is not known")
    return _REDUCTIONS[how]


@op("OneHot", "axis", since=9)
def one_hot(node: Node, indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    """Indices out of range give a row without a hot one."""
    count = int(number(depth))
    axis = node.get("axis", -1) % (indices.ndim + 1)
    places = _positive(indices, count).unsqueeze(axis)
    sizes = [1] * (indices.ndim + 1)
    sizes[axis] = count
    return torch.where(places == torch.arange(count).reshape(sizes), values[1], values[0])


# --- of sizes that depend on data: PyTorch runs these ---


@op("NonZero")
def non_zero(node: Node, x: Tensor) -> Tensor:
    return torch.nonzero(x).t()


@op("Compress", "axis", since=9)
def compress(node: Node, x: Tensor, condition: Tensor) -> Tensor:
    axis = node.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.index_select(axis, torch.nonzero(condition).reshape(-1))


@op("Unique", "axis sorted", since=11)
def unique(node: Node, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    axis = node.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    values, inverse, counts = torch.unique(
        x, sorted=True, return_inverse=True, return_counts=True, dim=axis
    )
    places = torch.arange(x.shape[axis])
    first = torch.full_like(counts, x.shape[axis]).scatter_reduce(0, inverse, places, "amin")
    if not node.get("sorted", 1):  # in the order in which they come
        order = torch.argsort(first)
        values, counts, first = values.index_select(axis, order), counts[order], first[order]
        inverse = torch.argsort(order)[inverse]
    return values, first, inverse, counts
