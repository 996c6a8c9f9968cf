# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers with a scale and a zero point.

Sums of products go in float64, which holds those of bytes exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.ops.convolution import centred, convolve
from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of

_RANGES = {
    torch.uint8: (0, 255),
    torch.int8: (-128, 127),
    torch.uint16: (0, 65535),
    torch.int16: (-32768, 32767),
}


def _along(value: Tensor, x: Tensor, axis: int) -> Tensor:
    if value.numel() == 1 and value.ndim < 2:
        return value.reshape(())
    return value.reshape(-1, *[1] * (x.ndim - 1 - axis % x.ndim))


def _quantized(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Halves are rounded to even."""
    y = torch.round(x / scale)
    if zero is not None:
        y = y + zero.to(y.dtype)
    return y.clamp(*_RANGES[dtype]).to(dtype)


@op("QuantizeLinear", "axis block_size output_dtype precision saturate", since=10)
def quantize_linear(node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    if node.get("block_size", 0):
        raise node.unsupported("blocks are not supported")
    axis, named = node.get("axis", 1), node.get("output_dtype", 0)
    dtype = zero.dtype if zero is not None else dtype_of(named) if named else torch.uint8
    if dtype not in _RANGES:
        raise node.unsupported(f"{dtype} is not supported")
    zero = None if zero is None else _along(zero, x, axis)
    return _quantized(x.to(scale.dtype), _along(scale, x, axis), zero, dtype)


@op("DequantizeLinear", "axis block_size output_dtype", since=10)
def dequantize_linear(node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    if node.get("block_size", 0):
        raise node.unsupported("blocks are not supported")
    axis = node.get("axis", 1)
    wide = x.to(torch.int32)
    if zero is not None:
        wide = wide - _along(zero, x, axis).to(torch.int32)
    return wide.to(scale.dtype) * _along(scale, x, axis)


@op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = torch.round((0 - low / scale).clamp(0, 255)).to(torch.uint8)
    return _quantized(x, scale, zero, torch.uint8), scale, zero


@op("MatMulInteger", since=10)
def matmul_integer(
    node: Node, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    a = centred(a, a_zero, max(a.ndim - 2, 0))
    return torch.matmul(a, centred(b, b_zero)).to(torch.int32)


@op("QLinearMatMul", since=10)
def qlinear_matmul(
    node: Node,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:
    if max(each.numel() for each in (a_scale, b_scale, y_scale, a_zero, b_zero, y_zero)) > 1:
        raise node.unsupported("scales by row or column are not supported")
    y = torch.matmul(centred(a, a_zero), centred(b, b_zero))
    return _requantized(y, a_scale, b_scale, y_scale, y_zero)


@op("QLinearConv", "auto_pad dilations group kernel_shape pads strides", since=10)
def qlinear_conv(
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    b: Tensor | None = None,
) -> Tensor:
    bias = None if b is None else b.to(torch.float64)
    y = convolve(node, centred(x, x_zero), centred(w, w_zero, 0), bias)
    return _requantized(y, x_scale, _along(w_scale, y, 1), y_scale, y_zero)


def _requantized(
    y: Tensor, a_scale: Tensor, b_scale: Tensor, y_scale: Tensor, y_zero: Tensor
) -> Tensor:
    if y_zero.dtype not in _RANGES:
        raise ValueError(f"expected 8 or 16 bits, found {y_zero.dtype}")
    factor = a_scale.to(torch.float64) * b_scale.to(torch.float64) / y_scale.to(torch.float64)
    y = torch.round(y * factor) + y_zero.to(torch.float64)
    return y.clamp(*_RANGES[y_zero.dtype]).to(y_zero.dtype)
