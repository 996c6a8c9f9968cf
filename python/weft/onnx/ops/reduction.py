# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, scans and orders along axes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import number, numbers

_KINDS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()


@op(
    " ".join(f"Reduce{kind}" for kind in _KINDS),
    "axes keepdims noop_with_empty_axes",
)
def reduce(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """axes: an attribute in older operator sets."""
    chosen = list(node.get("axes", ())) if axes is None else numbers(axes)
    if not chosen:
        if node.get("noop_with_empty_axes", 0):
            return _empty_axes(node, x)
        chosen = list(range(x.ndim))
    return _REDUCERS[node.op](x, chosen, bool(node.get("keepdims", 1)))


def _empty_axes(node: Node, x: Tensor) -> Tensor:
    """The reduction of each element alone, up to what is done before or after the sum."""
    alone = {
        "ReduceL1": torch.abs,
        "ReduceL2": torch.abs,
        "ReduceLogSum": torch.log,
        "ReduceSumSquare": torch.square,
    }
    return alone.get(node.op, lambda same: same)(x)


def _sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not x.ndim:
        return x
    return torch.sum(x, dims, keepdim=keep, dtype=x.dtype)


def _prod(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in sorted((dim % x.ndim for dim in dims), reverse=True):
        x = torch.prod(x, dim, keepdim=keep, dtype=x.dtype)
    return x


def _mean(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return torch.mean(x, dims, keepdim=keep)
    count = 1
    for dim in dims:
        count *= x.shape[dim]
    return torch.div(_sum(x, dims, keep), count, rounding_mode="trunc")


def _l2(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return torch.sqrt(_sum(x * x, dims, keep))
    return torch.sqrt(_sum(x * x, dims, keep).to(torch.float64)).to(x.dtype)


def _log_sum_exp(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.logsumexp(x, dims, keepdim=keep) if x.ndim else x


def _amax(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _extremum(torch.amax, x, dims, keep, largest=False)


def _amin(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _extremum(torch.amin, x, dims, keep, largest=True)


def _extremum(
    function: Callable[..., Tensor], x: Tensor, dims: list[int], keep: bool, largest: bool
) -> Tensor:
    """The reduction; of no elements, the smallest or largest value of the type."""
    if all(x.shape[dim] for dim in dims):
        return function(x, dims, keepdim=keep)
    dims = [dim % x.ndim for dim in dims]
    sizes = [1 if i in dims else size for i, size in enumerate(x.shape) if keep or i not in dims]
    return torch.full(sizes, _bound(x.dtype, largest), dtype=x.dtype)


def _bound(dtype: torch.dtype, largest: bool) -> float | bool:
    if dtype == torch.bool:
        return largest
    if dtype.is_floating_point:
        return math.inf if largest else -math.inf
    limits = torch.iinfo(dtype)
    return limits.max if largest else limits.min


_REDUCERS = {
    "ReduceL1": lambda x, dims, keep: _sum(x.abs(), dims, keep),
    "ReduceL2": _l2,
    "ReduceLogSum": lambda x, dims, keep: torch.log(_sum(x, dims, keep)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _amax,
    "ReduceMean": _mean,
    "ReduceMin": _amin,
    "ReduceProd": _prod,
    "ReduceSum": _sum,
    "ReduceSumSquare": lambda x, dims, keep: _sum(x * x, dims, keep),
}


@op("ArgMax ArgMin", "axis keepdims select_last_index")
def arg_extremum(node: Node, x: Tensor) -> Tensor:
    function = torch.argmax if node.op == "ArgMax" else torch.argmin
    axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
    if not node.get("select_last_index", 0):
        return function(x, axis, keepdim=keep)
    return x.shape[axis] - 1 - function(x.flip(axis), axis, keepdim=keep)


@op("CumSum", "exclusive reverse", since=11)
def cum_sum(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    dim = number(axis)
    if node.get("reverse", 0):
        x = x.flip(dim)
    found = torch.cumsum(x, dim, dtype=x.dtype)
    if node.get("exclusive", 0):
        first = torch.zeros_like(x.narrow(dim, 0, min(1, x.shape[dim])))
        found = torch.cat([first, found.narrow(dim, 0, max(x.shape[dim] - 1, 0))], dim)
    return found.flip(dim) if node.get("reverse", 0) else found


@op("TopK", "axis largest sorted", since=10)
def top_k(node: Node, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The k largest or smallest elements and their indices; equal elements keep their order."""
    return _top(x, number(k), node.get("axis", -1), bool(node.get("largest", 1)))


@op("TopK", "axis k")
def top_k_1(node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    return _top(x, node.get("k"), node.get("axis", -1), True)


def _top(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


def _flat(x: Tensor, axis: int) -> Tensor:
    return x.reshape(int(torch.Size(x.shape[:axis]).numel()), -1)


@op("Softmax LogSoftmax Hardmax", "axis", since=13)
def softmax(node: Node, x: Tensor) -> Tensor:
    return _softmax(node.op, x, node.get("axis", -1))


@op("Softmax LogSoftmax Hardmax", "axis")
def softmax_1(node: Node, x: Tensor) -> Tensor:
    """Over all axes from `axis` on."""
    axis = node.get("axis", 1) % max(x.ndim, 1)
    return _softmax(node.op, _flat(x, axis), 1).reshape(x.shape)


def _softmax(name: str, x: Tensor, axis: int) -> Tensor:
    if name == "Softmax":
        return torch.softmax(x, axis)
    if name == "LogSoftmax":
        return torch.log_softmax(x, axis)
    places = torch.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - 1 - axis % x.ndim))
    return (torch.argmax(x, axis, keepdim=True) == places).to(x.dtype)
