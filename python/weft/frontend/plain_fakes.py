# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of the commonest operations' results, for plain arguments: of known sizes, on the CPU, in
rows, of one type.

torch finds them by running decompositions, some twenty operations on tensors without values for a
normalization, in each traced process anew. What is not plain, an error among it, is left to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._subclasses import FakeTensorMode

aten = torch.ops.aten


def _are_plain(*tensors: torch.Tensor | None) -> bool:
    """None is no argument."""
    given = [tensor for tensor in tensors if tensor is not None]
    return all(
        tensor.dtype is given[0].dtype
        and tensor.dtype in (torch.float32, torch.float64)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and all(type(size) is int for size in tensor.shape)
        and tensor.is_contiguous()
        for tensor in given
    )


def _or_decomposed(plain: Callable[..., Any]) -> Callable[..., Any]:
    """plain: gives None for arguments that it does not know."""

    @functools.wraps(plain)
    def fake(mode: FakeTensorMode, op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
        found = plain(*args, **kwargs)
        if found is None:
            with mode:
                found = decomposition_table[op](*args, **kwargs)
        return found

    return fake


@_or_decomposed
def _addmm(
    bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor | None:
    """bias: (columns,). a: (rows, depth). b: (depth, columns), in rows or in columns."""
    if not (a.dim() == b.dim() == 2 and bias.dim() == 1):
        return None
    if not _are_plain(bias, a, b if b.is_contiguous() else b.t()):
        return None
    if a.shape[1] != b.shape[0] or bias.shape != b.shape[1:]:
        return None
    return a.new_empty(a.shape[0], b.shape[1])


@_or_decomposed
def _native_layer_norm(
    x: torch.Tensor,
    normalized: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, ...] | None:
    """The values, and the mean and reciprocal deviation of each row."""
    axis = x.dim() - len(normalized)
    if not _are_plain(x, weight, bias) or not normalized or axis < 0:
        return None
    shapes = [x.shape[axis:], *(each.shape for each in (weight, bias) if each is not None)]
    if any(tuple(shape) != tuple(normalized) for shape in shapes):
        return None
    moments = (*x.shape[:axis], *[1] * len(normalized))
    return x.new_empty(x.shape), x.new_empty(moments), x.new_empty(moments)


@_or_decomposed
def _native_batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    variance: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...] | None:
    """Of what is known already: in training torch also renews the running statistics."""
    if training or mean is None or variance is None or x.dim() < 2:
        return None
    given = [each for each in (weight, bias, mean, variance) if each is not None]
    if not _are_plain(x, *given) or any(each.shape != x.shape[1:2] for each in given):
        return None
    return x.new_empty(x.shape), x.new_empty(0), x.new_empty(0)


@_or_decomposed
def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor | None:
    if half_to_float or not _are_plain(x) or not -x.dim() <= dim < x.dim():
        return None
    return x.new_empty(x.shape)


@_or_decomposed
def _nll_loss_forward(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
) -> tuple[torch.Tensor, ...] | None:
    """x: (rows, classes). The loss, and what divides it."""
    if x.dim() != 2 or target.shape != x.shape[:1] or target.dtype is not torch.int64:
        return None
    if not _are_plain(x, weight) or (weight is not None and weight.shape != x.shape[1:]):
        return None
    return x.new_empty(x.shape[:1] if reduction == 0 else ()), x.new_empty(())


@_or_decomposed
def _activation(x: torch.Tensor, **how: Any) -> torch.Tensor | None:
    return x.new_empty(x.shape) if _are_plain(x) else None


PLAIN_FAKES = {
    aten.relu.default: _activation,
    aten.gelu.default: _activation,
    aten.addmm.default: _addmm,
    aten.native_layer_norm.default: _native_layer_norm,
    aten.native_batch_norm.default: _native_batch_norm,
    aten._log_softmax.default: _log_softmax,
    aten.nll_loss_forward.default: _nll_loss_forward,
}
