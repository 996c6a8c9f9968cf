# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and transposed convolutions, of floats and of integers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.onnx.ops.windows import windows
from weft.onnx.table import Node, op

_CONV = "auto_pad dilations group kernel_shape pads strides"
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def convolve(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x: (n, c, spatial…); w: (m, c / group, kernel…)."""
    rank = x.ndim - 2
    if rank not in CONVOLUTIONS:
        raise node.unsupported(f"{rank} spatial axes are not supported")
    where = windows(node, list(x.shape[2:]), list(w.shape[2:]))
    padding = where.before
    if not where.is_symmetric:
        x, padding = F.pad(x, where.pads()), [0] * rank
    return CONVOLUTIONS[rank](
        x, w, b, where.strides, padding, where.dilations, node.get("group", 1)
    )


@op("Conv", _CONV)
def conv(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    return convolve(node, x, w, b)


@op("ConvInteger", _CONV, since=10)
def conv_integer(
    node: Node,
    x: Tensor,
    w: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
) -> Tensor:
    """In float64, which holds every sum of products of bytes."""
    return convolve(node, centred(x, x_zero), centred(w, w_zero, 0)).to(torch.int32)


def centred(x: Tensor, zero: Tensor | None, axis: int | None = None) -> Tensor:
    """x - zero in float64. axis: along which a vector of zero points lies."""
    x = x.to(torch.float64)
    if zero is None:
        return x
    if zero.ndim == 1 and zero.numel() > 1 and axis is not None:
        zero = zero.reshape(-1, *[1] * (x.ndim - 1 - axis))
    return x - zero.to(torch.float64)


@op("ConvTranspose", f"{_CONV} output_padding output_shape")
def conv_transpose(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x: (n, c, spatial…); w: (c, m / group, kernel…)."""
    rank = x.ndim - 2
    if rank not in _TRANSPOSED:
        raise node.unsupported(f"{rank} spatial axes are not supported")
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    extra = node.get("output_padding", [0] * rank)
    full = [
        strides[i] * (x.shape[2 + i] - 1) + (w.shape[2 + i] - 1) * dilations[i] + 1
        for i in range(rank)
    ]
    before, after = _cropped(node, list(x.shape[2:]), full, strides, extra)
    group = node.get("group", 1)
    function = _TRANSPOSED[rank]
    fits = all(e < max(s, d) for e, s, d in zip(extra, strides, dilations))
    if before == after and fits:
        return function(x, w, b, strides, before, extra, group, dilations)
    y = function(x, w, None, strides, 0, 0, group, dilations)
    crop = [each for i in reversed(range(rank)) for each in (-before[i], extra[i] - after[i])]
    y = F.pad(y, crop)
    return y if b is None else y + b.reshape(-1, *[1] * rank)


def _cropped(
    node: Node, sizes: list[int], full: list[int], strides: list[int], extra: list[int]
) -> tuple[list[int], list[int]]:
    """What goes off each axis before and after."""
    rank = len(sizes)
    pads = node.get("pads", [0] * (2 * rank))
    auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    if wanted is None and auto not in ("SAME_UPPER", "SAME_LOWER"):
        return list(pads[:rank]), list(pads[rank:])
    if wanted is None:
        wanted = [size * stride for size, stride in zip(sizes, strides)]
    wanted = wanted[-rank:]
    before, after = [], []
    for i in range(rank):
        total = full[i] + extra[i] - wanted[i]
        small, large = total // 2, total - total // 2
        first, last = (small, large) if auto == "SAME_UPPER" else (large, small)
        before.append(first)
        after.append(last)
    return before, after


@op("Col2Im", "dilations pads strides", since=18)
def col2im(node: Node, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    from weft.onnx.values import numbers

    sizes, kernel = numbers(image), numbers(block)
    pads = node.get("pads", [0, 0, 0, 0])
    if len(sizes) != 2 or pads[:2] != pads[2:]:
        raise node.unsupported("only images with two axes and symmetric pads are supported")
    dilations, strides = node.get("dilations", [1, 1]), node.get("strides", [1, 1])
    return F.fold(x, sizes, kernel, dilations, pads[:2], strides)
