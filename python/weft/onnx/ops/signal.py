# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms, windows and mel filters. Complex numbers are pairs along the last axis."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of, number


@op("DFT", "inverse onesided", since=20)
def dft(node: Node, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None) -> Tensor:
    return _transformed(node, x, length, -2 if axis is None else number(axis))


@op("DFT", "axis inverse onesided", since=17)
def dft_17(node: Node, x: Tensor, length: Tensor | None = None) -> Tensor:
    return _transformed(node, x, length, node.get("axis", 1))


def _transformed(node: Node, x: Tensor, length: Tensor | None, axis: int) -> Tensor:
    axis %= x.ndim
    count = None if length is None else number(length)
    real = x.shape[-1] == 1
    given = x.squeeze(-1) if real else torch.view_as_complex(x.contiguous())
    if node.get("inverse", 0):
        if node.get("onesided", 0):
            found = torch.fft.irfft(given, count, axis)
            return found.unsqueeze(-1)
        found = torch.fft.ifft(given, count, axis)
    elif node.get("onesided", 0):
        found = torch.fft.rfft(given if real else given.real, count, axis)
    else:
        found = torch.fft.fft(given, count, axis)
    return torch.view_as_real(found)


@op("STFT", "onesided", since=17)
def stft(
    node: Node,
    x: Tensor,
    step: Tensor,
    window: Tensor | None = None,
    length: Tensor | None = None,
) -> Tensor:
    """(batch, frames, bins, 2) of x: (batch, time, 1 or 2)."""
    if length is None and window is None:
        raise node.unsupported("a form without window and frame_length is not known")
    count = window.shape[0] if length is None else number(length)
    real = x.shape[-1] == 1
    given = x.squeeze(-1) if real else torch.view_as_complex(x.contiguous())
    frames = given.unfold(1, count, number(step))
    if window is not None:
        frames = frames * window
    onesided = node.get("onesided", 1) and real
    found = torch.fft.rfft(frames) if onesided else torch.fft.fft(frames)
    return torch.view_as_real(found)


_TERMS = {
    "BlackmanWindow": (0.42, -0.5, 0.08),
    "HammingWindow": (25 / 46, -21 / 46, 0.0),
    "HannWindow": (0.5, -0.5, 0.0),
}


@op("BlackmanWindow HammingWindow HannWindow", "output_datatype periodic", since=17)
def window(node: Node, size: Tensor) -> Tensor:
    count = number(size)
    period = count if node.get("periodic", 1) else count - 1
    angle = torch.arange(count, dtype=torch.float64) * (2 * math.pi / max(period, 1))
    constant, first, second = _TERMS[node.op]
    values = constant + first * torch.cos(angle) + second * torch.cos(2 * angle)
    return values.to(dtype_of(node.get("output_datatype", 1)))


@op("MelWeightMatrix", "output_datatype", since=17)
def mel_weight_matrix(
    node: Node, bands: Tensor, length: Tensor, rate: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """(length / 2 + 1, bands): triangles between bins that are even in mel."""
    count, size = number(bands), number(length)
    lowest, highest = (2595 * math.log10(1 + number(each) / 700) for each in (low, high))
    step = (highest - lowest) / (count + 2)
    edges = [700 * (10 ** ((lowest + i * step) / 2595) - 1) for i in range(count + 2)]
    bins = [int((size + 1) * edge // number(rate)) for edge in edges]
    rows = [[0.0] * count for _ in range(size // 2 + 1)]
    for i in range(count):
        first, centre, last = bins[i : i + 3]
        if centre == first:
            rows[centre][i] = 1.0
        for j in range(first, centre + 1 if centre > first else centre):
            rows[j][i] = (j - first) / (centre - first)
        for j in range(centre, last):
            rows[j][i] = (last - j) / (last - centre)
    return torch.tensor(rows, dtype=torch.float64).to(dtype_of(node.get("output_datatype", 1)))
