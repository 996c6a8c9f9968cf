# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of


def _of_channels(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(-1, *[1] * (like.ndim - 2))


@op("BatchNormalization", "epsilon momentum training_mode", since=14)
def batch_norm(
    node: Node, x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, variance: Tensor
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    epsilon = node.get("epsilon", 1e-5)
    if not node.get("training_mode", 0):
        if x.dtype == mean.dtype == scale.dtype and x.ndim >= 2:
            return F.batch_norm(x, mean, variance, scale, b, False, 0.0, epsilon)
        return _normalized(x, scale, b, mean, variance, epsilon)
    momentum = node.get("momentum", 0.9)
    axes = [0, *range(2, x.ndim)]
    own, spread = x.mean(axes), x.var(axes, correction=0)
    y = _normalized(x, scale, b, own.to(mean.dtype), spread.to(mean.dtype), epsilon)
    new_mean = mean * momentum + own * (1 - momentum)
    new_variance = variance * momentum + spread * (1 - momentum)
    return y, new_mean.to(mean.dtype), new_variance.to(variance.dtype)


def _normalized(
    x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, variance: Tensor, epsilon: float
) -> Tensor:
    factor = scale.to(mean.dtype) * torch.rsqrt(variance + epsilon)
    y = (x - _of_channels(mean, x)) * _of_channels(factor, x) + _of_channels(b, x)
    return y.to(x.dtype)


@op("BatchNormalization", "epsilon momentum spatial is_test consumed_inputs")
def batch_norm_1(
    node: Node, x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    if not node.get("spatial", 1):
        raise node.unsupported("spatial=0 is not supported")
    if len([name for name in node.outputs if name]) > 1 or (
        node.opset < 7 and not node.get("is_test", 0)
    ):
        raise node.unsupported("training is not supported before operator set 14")
    return _normalized(x, scale, b, mean, variance, node.get("epsilon", 1e-5))


@op("InstanceNormalization", "epsilon consumed_inputs")
def instance_norm(node: Node, x: Tensor, scale: Tensor, b: Tensor) -> Tensor:
    return F.instance_norm(x, weight=scale, bias=b, eps=node.get("epsilon", 1e-5))


@op("LayerNormalization", "axis epsilon stash_type", since=17)
def layer_norm(
    node: Node, x: Tensor, scale: Tensor, b: Tensor | None = None
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    axis, epsilon = node.get("axis", -1) % x.ndim, node.get("epsilon", 1e-5)
    sizes = list(x.shape[axis:])
    asks_for_moments = node.has_output(1) or node.has_output(2)
    if (
        not asks_for_moments
        and list(scale.shape) == sizes
        and (b is None or b.shape == scale.shape)
    ):
        return F.layer_norm(x, sizes, scale, b, epsilon)
    axes, wide = list(range(axis, x.ndim)), x.to(dtype_of(node.get("stash_type", 1)))
    if x.dtype == torch.float64:
        wide = x
    mean = wide.mean(axes, keepdim=True)
    centred = wide - mean
    inverse = torch.rsqrt((centred * centred).mean(axes, keepdim=True) + epsilon)
    y = (centred * inverse).to(x.dtype) * scale
    return y if b is None else y + b, mean, inverse


@op("RMSNormalization", "axis epsilon stash_type", since=23)
def rms_norm(node: Node, x: Tensor, scale: Tensor) -> Tensor:
    axes = list(range(node.get("axis", -1) % x.ndim, x.ndim))
    wide = x if x.dtype == torch.float64 else x.to(dtype_of(node.get("stash_type", 1)))
    inverse = torch.rsqrt((wide * wide).mean(axes, keepdim=True) + node.get("epsilon", 1e-5))
    return (wide * inverse).to(x.dtype) * scale


@op("GroupNormalization", "epsilon num_groups stash_type", since=21)
def group_norm(node: Node, x: Tensor, scale: Tensor, b: Tensor) -> Tensor:
    return F.group_norm(x, node.get("num_groups"), scale, b, node.get("epsilon", 1e-5))


@op("GroupNormalization", "epsilon num_groups", since=18)
def group_norm_18(node: Node, x: Tensor, scale: Tensor, b: Tensor) -> Tensor:
    """Scale and offset are of the groups."""
    groups = node.get("num_groups")
    each = x.shape[1] // groups
    scale, b = scale.repeat_interleave(each), b.repeat_interleave(each)
    return F.group_norm(x, groups, scale, b, node.get("epsilon", 1e-5))


@op("LpNormalization", "axis p")
def lp_normalization(node: Node, x: Tensor) -> Tensor:
    axis, p = node.get("axis", -1), node.get("p", 2)
    norm = x.abs().sum(axis, keepdim=True) if p == 1 else (x * x).sum(axis, keepdim=True).sqrt()
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


@op("LRN", "alpha beta bias size")
def lrn(node: Node, x: Tensor) -> Tensor:
    """Over `size` channels around each."""
    size = node.get("size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = F.pad(x * x, [0, 0] * (x.ndim - 2) + [before, after])
    total = sum(squares.narrow(1, i, x.shape[1]) for i in range(size))
    scale = node.get("bias", 1.0) + node.get("alpha", 1e-4) / size * total
    return x / scale ** node.get("beta", 0.75)


@op("MeanVarianceNormalization", "axes", since=9)
def mean_variance_normalization(node: Node, x: Tensor) -> Tensor:
    axes = node.get("axes", [0, 2, 3])
    centred = x - x.mean(axes, keepdim=True)
    spread = (centred * centred).mean(axes, keepdim=True).sqrt()
    return centred / (spread + 1e-9)
