# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices, linear layers, attention and convolutions."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.ops.case import Op, channels_last, module, normal, op


def ops() -> Iterator[Op]:
    yield from _products()
    yield from _attention()
    yield from _convolutions()


def _products() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("products", name, call, *args)

    for m, k, n in ((64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512)):
        yield add(f"{m}x{k} @ {k}x{n}", operator.matmul, normal(m, k), normal(k, n))
    yield add("128x768 @ 768x768", operator.matmul, normal(128, 768), normal(768, 768))
    yield add("100x200 @ 200x300", operator.matmul, normal(100, 200), normal(200, 300))
    yield add("x.T @ y 256x256", lambda x, y: x.T @ y, normal(256, 256), normal(256, 256))
    yield add("x @ y.T 256x256", lambda x, y: x @ y.T, normal(256, 256), normal(256, 256))
    yield add("1024x1024 @ vector", operator.matmul, normal(1024, 1024), normal(1024))
    yield add("vector @ 1024x1024", operator.matmul, normal(1024), normal(1024, 1024))
    yield add("dot 65536", torch.dot, normal(65536), normal(65536))
    yield add("outer 512 by 512", torch.outer, normal(512), normal(512))
    yield add("bmm 16x64x64", torch.bmm, normal(16, 64, 64), normal(16, 64, 64))
    yield add("bmm 64x32x32", torch.bmm, normal(64, 32, 32), normal(64, 32, 32))
    yield add("bmm 8x128x256", torch.bmm, normal(8, 128, 256), normal(8, 256, 128))
    yield add("8x128x256 @ 256x256", operator.matmul, normal(8, 128, 256), normal(256, 256))
    yield add("256x256 @ 8x256x128", operator.matmul, normal(256, 256), normal(8, 256, 128))
    yield add("baddbmm 8x128x128", torch.baddbmm, *(normal(8, 128, 128),) * 3)
    yield add("addmm 256x256", torch.addmm, *(normal(256, 256),) * 3)
    yield add("einsum bij,bjk->bik", lambda x, y: torch.einsum("bij,bjk->bik", x, y),
              *(normal(8, 64, 64),) * 2)  # fmt: skip
    for dtype, short in ((torch.float64, "f64"), (torch.bfloat16, "bf16")):
        two = (normal(256, 256, dtype=dtype),) * 2
        yield add(f"256x256 @ 256x256 {short}", operator.matmul, *two)
    for rows, inner, columns in ((1, 768, 768), (16, 768, 3072), (128, 768, 768), (128, 768, 3072)):
        name = f"linear {rows}x{inner} to {columns}"
        made = lambda inner=inner, columns=columns: nn.Linear(inner, columns)  # noqa: E731
        yield module("products", name, made, normal(rows, inner))


def _attention() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("attention", name, call, *args)

    qkv = (normal(1, 8, 256, 64),) * 3
    transposed = normal(8, 64, 256)
    yield add("QKᵀ 8x256x64", lambda q, k: q @ k.transpose(-1, -2), *qkv[:2])
    yield add("Q by Kᵀ as stored 8x256x64", operator.matmul, normal(8, 256, 64), transposed)
    yield add("PV 8x256x256 by 8x256x64", operator.matmul, normal(8, 256, 256), normal(8, 256, 64))
    yield add("scaled_dot_product_attention 8x256x64", F.scaled_dot_product_attention, *qkv)
    yield add(
        "causal attention 8x256x64",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        *qkv,
    )
    yield add(
        "attention of one token 8x256x64",
        F.scaled_dot_product_attention,
        normal(1, 8, 1, 64),
        *qkv[1:],
    )


def _convolutions() -> Iterator[Op]:
    def conv(name: str, make, *shape: int) -> Op:
        return module("convolutions", name, make, normal(*shape))

    yield conv("conv2d 3x3 64x56x56", lambda: nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56)
    yield conv("conv2d 3x3 8x32x28x28", lambda: nn.Conv2d(32, 32, 3, padding=1), 8, 32, 28, 28)
    yield conv("conv2d 3x3 of 2 64x56x56", lambda: nn.Conv2d(64, 128, 3, 2, 1), 1, 64, 56, 56)
    yield conv("conv2d 1x1 256x14x14", lambda: nn.Conv2d(256, 256, 1), 1, 256, 14, 14)
    yield conv("conv2d 1x1 of 2 256x56x56", lambda: nn.Conv2d(256, 512, 1, 2), 1, 256, 56, 56)
    yield conv("conv2d 1x1 of 2 8x64x28x28", lambda: nn.Conv2d(64, 128, 1, 2), 8, 64, 28, 28)
    yield conv("conv2d 7x7 of 2 3x224x224", lambda: nn.Conv2d(3, 64, 7, 2, 3), 1, 3, 224, 224)
    yield conv("conv2d 3x3 3x32x32", lambda: nn.Conv2d(3, 16, 3, padding=1), 1, 3, 32, 32)
    yield conv("conv2d 5x5 8x16x32x32", lambda: nn.Conv2d(16, 32, 5, padding=2), 8, 16, 32, 32)
    yield conv("conv2d dilated 64x28x28", lambda: nn.Conv2d(64, 64, 3, padding=2, dilation=2),
               1, 64, 28, 28)  # fmt: skip
    yield conv("conv2d depthwise 96x56x56", lambda: nn.Conv2d(96, 96, 3, padding=1, groups=96),
               1, 96, 56, 56)  # fmt: skip
    yield conv("conv2d grouped 64x28x28", lambda: nn.Conv2d(64, 64, 3, padding=1, groups=4),
               1, 64, 28, 28)  # fmt: skip
    yield conv("conv1d 5 8x64x256", lambda: nn.Conv1d(64, 64, 5, padding=2), 8, 64, 256)
    yield conv("conv3d 3 16x8x28x28", lambda: nn.Conv3d(16, 16, 3, padding=1), 1, 16, 8, 28, 28)
    yield conv("conv_transpose2d 4x4 of 2 64x28x28", lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1),
               1, 64, 28, 28)  # fmt: skip
    yield module(
        "convolutions",
        "conv2d 3x3 64x28x28 channels_last",
        lambda: nn.Conv2d(64, 64, 3, padding=1).to(memory_format=torch.channels_last),
        channels_last(1, 64, 28, 28),
    )
