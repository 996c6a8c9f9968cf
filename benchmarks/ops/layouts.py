# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What moves elements and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.ops.case import Op, normal, op


def ops() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("layouts", name, call, *args)

    x, y, image = normal(256, 1024), normal(256, 1024), normal(8, 64, 28, 28)
    for dim in (0, 1):
        yield add(f"cat dim {dim} 256x1024", lambda x, y, dim=dim: torch.cat((x, y), dim), x, y)
        yield add(f"stack dim {dim} 256x1024", lambda x, y, dim=dim: torch.stack((x, y), dim), x, y)
    yield add("stack dim 2 256x1024", lambda x, y: torch.stack((x, y), 2), x, y)
    yield add("cat of 4 dim 1 8x64x28x28", lambda x: torch.cat((x, x, x, x), 1), image)
    yield add("clone 256x1024", torch.clone, x)
    yield add("transpose 512x512", lambda x: x.T.contiguous(), normal(512, 512))
    yield add("transpose 1000x300", lambda x: x.T.contiguous(), normal(1000, 300))
    yield add("heads to the front 128x12x64", lambda x: x.permute(1, 0, 2).contiguous(),
              normal(128, 12, 64))  # fmt: skip
    yield add("NCHW to NHWC", lambda x: x.permute(0, 2, 3, 1).contiguous(), image)
    yield add("NHWC to NCHW", lambda x: x.permute(0, 3, 1, 2).contiguous(), normal(8, 28, 28, 64))
    yield add("expand 1x1024 to 256", lambda x: x.expand(256, 1024).contiguous(), normal(1, 1024))
    yield add("repeat 2x2 256x256", lambda x: x.repeat(2, 2), normal(256, 256))
    yield add("repeat_interleave 2 256x512", lambda x: x.repeat_interleave(2, 1), normal(256, 512))
    yield add("every other column 256x1024", lambda x: x[:, ::2].contiguous(), x)
    yield add("every other row 256x1024", lambda x: x[::2].contiguous(), x)
    yield add("half of the columns 256x1024", lambda x: x[:, 256:768].contiguous(), x)
    yield add("roll 256x1024", lambda x: torch.roll(x, 3, 1), x)
    yield add("roll of windows 8x56x56x32", lambda x: torch.roll(x, (3, 3), (1, 2)),
              normal(8, 56, 56, 32))  # fmt: skip
    yield add("flip 256x1024", lambda x: torch.flip(x, (1,)), x)
    yield add("tril 512x512", torch.tril, normal(512, 512))
    yield add("zeros_like 256x1024", torch.zeros_like, x)
    yield add("arange 65536", lambda x: torch.arange(65536) + x, lambda: torch.tensor(1))
