# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling, padding, and images at other sizes or places."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from benchmarks.ops.case import Op, normal, op, uniform


def ops() -> Iterator[Op]:
    yield from _pooling()
    yield from _padding()
    yield from _resampling()


def _pooling() -> Iterator[Op]:
    def add(name: str, call, *shape: int) -> Op:
        return op("pooling", name, call, normal(*shape))

    image = (8, 64, 56, 56)
    yield add("max_pool2d 2x2", lambda x: F.max_pool2d(x, 2), *image)
    yield add("max_pool2d 3x3 of 2", lambda x: F.max_pool2d(x, 3, 2, 1), *image)
    yield add("max_pool2d 2x2, indices", lambda x: F.max_pool2d(x, 2, return_indices=True), *image)
    yield add(
        "max_pool2d 3x3 of 2, indices",
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        *image,
    )
    yield add("avg_pool2d 2x2", lambda x: F.avg_pool2d(x, 2), *image)
    yield add("avg_pool2d 3x3 of 1", lambda x: F.avg_pool2d(x, 3, 1, 1), *image)
    yield add("adaptive_avg_pool2d to 1", lambda x: F.adaptive_avg_pool2d(x, 1), *image)
    yield add("adaptive_avg_pool2d to 7", lambda x: F.adaptive_avg_pool2d(x, 7), *image)
    yield add("adaptive_max_pool2d to 7", lambda x: F.adaptive_max_pool2d(x, 7), *image)
    yield add("lp_pool2d 2x2", lambda x: F.lp_pool2d(x, 2, 2), *image)
    yield add("max_pool1d 2", lambda x: F.max_pool1d(x, 2), 16, 64, 512)
    yield add("avg_pool1d 2", lambda x: F.avg_pool1d(x, 2), 16, 64, 512)
    yield add("max_pool3d 2", lambda x: F.max_pool3d(x, 2), 2, 16, 16, 28, 28)


def _padding() -> Iterator[Op]:
    image = normal(8, 64, 28, 28)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield op(
            "padding",
            f"{mode} 1 8x64x28x28",
            lambda x, mode=mode: F.pad(x, (1, 1, 1, 1), mode=mode),
            image,
        )
    yield op(
        "padding", "reflect 8 16x64x512", lambda x: F.pad(x, (8, 8), "reflect"), normal(16, 64, 512)
    )
    yield op("padding", "constant of rows 256x1024", lambda x: F.pad(x, (0, 0, 1, 1)),
             normal(256, 1024))  # fmt: skip
    yield op("padding", "unfold 3x3 4x16x28x28", lambda x: F.unfold(x, 3, padding=1),
             normal(4, 16, 28, 28))  # fmt: skip
    yield op("padding", "fold 3x3 4x16x28x28", lambda x: F.fold(x, (28, 28), 3, padding=1),
             normal(4, 144, 784))  # fmt: skip


def _resampling() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("resampling", name, call, *args)

    image = normal(4, 16, 64, 64)
    for mode in ("nearest", "bilinear", "bicubic"):
        for factor, word in ((2, "twice"), (0.5, "half")):
            yield add(
                f"interpolate {mode}, {word} 4x16x64x64",
                lambda x, mode=mode, factor=factor: F.interpolate(
                    x, scale_factor=factor, mode=mode
                ),
                image,
            )
    yield add("interpolate area, half 4x16x64x64",
              lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), image)  # fmt: skip
    yield add("interpolate linear, twice 16x64x256",
              lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
              normal(16, 64, 256))  # fmt: skip
    for mode in ("bilinear", "nearest"):
        yield add(
            f"grid_sample {mode} 4x16x64x64",
            lambda x, grid, mode=mode: F.grid_sample(x, grid, mode=mode, align_corners=False),
            image,
            uniform(-1.1, 1.1, 4, 64, 64, 2),
        )
    yield add("pixel_shuffle 4x64x32x32", lambda x: F.pixel_shuffle(x, 2), normal(4, 64, 32, 32))
    yield add(
        "affine_grid 4x64x64",
        lambda theta: F.affine_grid(theta, [4, 3, 64, 64], align_corners=False),
        normal(4, 2, 3),
    )
    yield add("flip 8x3x224x224", lambda x: torch.flip(x, (3,)), normal(8, 3, 224, 224))
