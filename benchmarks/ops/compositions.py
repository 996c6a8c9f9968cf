# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A few ops in sequence. Their parts are compiled one by one too: no fusion may make a program
slower than its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.ops.case import Apply, Op, integers, normal


def ops() -> Iterator[Op]:
    def add(name: str, parts: Callable[[], tuple[nn.Module, ...]], *args) -> Op:
        return Op(
            "compositions",
            name,
            lambda: (nn.Sequential(*parts()).eval(), tuple(make() for make in args)),
        )

    rows, x, image = normal(128, 768), normal(256, 1024), normal(1, 64, 56, 56)
    yield add("bias, gelu", lambda: (Apply(torch.add, torch.randn(1024)), nn.GELU()), x)
    yield add("layer_norm, linear", lambda: (nn.LayerNorm(768), nn.Linear(768, 768)), rows)
    yield add("residual, layer_norm", lambda: (Apply(torch.add, torch.randn(128, 768)),
              nn.LayerNorm(768)), rows)  # fmt: skip
    yield add("linear, gelu, linear", lambda: (nn.Linear(768, 3072), nn.GELU(),
              nn.Linear(3072, 768)), rows)  # fmt: skip
    yield add("linear, softmax", lambda: (nn.Linear(768, 1000), nn.Softmax(-1)), rows)
    yield add("linear, layer_norm", lambda: (nn.Linear(768, 768), nn.LayerNorm(768)), rows)
    yield add("softmax, dropout", lambda: (nn.Softmax(-1), nn.Dropout()), x)
    yield add("scale, mask, softmax", lambda: (Apply(lambda x: x * 0.125),
              Apply(torch.add, torch.randn(256, 256)), nn.Softmax(-1)),
              normal(8, 256, 256))  # fmt: skip
    yield add(
        "QKᵀ, softmax, PV",
        lambda: (
            Apply(lambda q, k: q @ k.transpose(-1, -2), torch.randn(8, 256, 64)),
            nn.Softmax(-1),
            Apply(torch.matmul, torch.randn(8, 256, 64)),
        ),
        normal(8, 256, 64),
    )
    yield add("conv, batch_norm, relu", lambda: (nn.Conv2d(64, 64, 3, padding=1),
              nn.BatchNorm2d(64), nn.ReLU()), image)  # fmt: skip
    yield add("conv, relu, max_pool", lambda: (nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
              nn.MaxPool2d(2)), image)  # fmt: skip
    yield add("1x1 conv, depthwise, 1x1 conv", lambda: (nn.Conv2d(64, 128, 1), nn.ReLU6(),
              nn.Conv2d(128, 128, 3, padding=1, groups=128), nn.ReLU6(), nn.Conv2d(128, 64, 1)),
              normal(1, 64, 28, 28))  # fmt: skip
    yield add("upsample, conv", lambda: (nn.Upsample(scale_factor=2), nn.Conv2d(32, 32, 3,
              padding=1)), normal(1, 32, 28, 28))  # fmt: skip
    yield add("group_norm, silu", lambda: (nn.GroupNorm(8, 64), nn.SiLU()), image)
    yield add("embedding, layer_norm", lambda: (nn.Embedding(30000, 256), nn.LayerNorm(256)),
              integers(0, 30000, 8, 128))  # fmt: skip
    yield add("tanh, mean over rows", lambda: (nn.Tanh(), Apply(lambda x: x.mean(0))), x)
    yield add("exp, sum over columns", lambda: (Apply(torch.exp), Apply(lambda x: x.sum(1))), x)
    yield add("exp, transpose", lambda: (Apply(torch.exp), Apply(lambda x: x.T.contiguous())), x)
    yield add("relu, matmul", lambda: (nn.ReLU(), Apply(torch.matmul, torch.randn(256, 256))),
              normal(256, 256))  # fmt: skip
    yield add("transpose, matmul", lambda: (Apply(lambda x: x.T.contiguous()),
              Apply(torch.matmul, torch.randn(256, 256))), normal(256, 256))  # fmt: skip
    yield add("softmax, top 10", lambda: (nn.Softmax(-1), Apply(lambda x: tuple(x.topk(10)))),
              normal(64, 1024))  # fmt: skip
    yield add("gelu, cumsum", lambda: (nn.GELU(), Apply(lambda x: x.cumsum(1))), x)
    yield add("reflect padding, conv", lambda: (nn.ReflectionPad2d(1), nn.Conv2d(64, 64, 3)), image)
    yield add("sigmoid, max_pool", lambda: (nn.Sigmoid(), nn.MaxPool2d(3, 2, 1)), image)
    yield add("exp, index_select", lambda: (Apply(torch.exp),
              Apply(lambda x, i: x.index_select(0, i), torch.randint(0, 256, (1024,)))),
              x)  # fmt: skip
    yield add("log, gather", lambda: (Apply(lambda x: x.abs().log()),
              Apply(lambda x, i: x.gather(1, i), torch.randint(0, 1024, (256, 1024)))),
              x)  # fmt: skip
    yield add("tanh, bilinear interpolation", lambda: (nn.Tanh(),
              nn.Upsample(scale_factor=2, mode="bilinear")), normal(4, 16, 64, 64))  # fmt: skip
    yield add("swiglu", lambda: (nn.Linear(768, 2048), Apply(lambda x: F.silu(x[..., :1024])
              * x[..., 1024:]), nn.Linear(1024, 768)), rows)  # fmt: skip
    yield add("tanh, 3 times 64x64", lambda: (nn.Tanh(), nn.Tanh(), nn.Tanh()), normal(64, 64))
    yield add("normalize, cosine scores", lambda: (Apply(lambda x: F.normalize(x, dim=1)),
              Apply(lambda x: x @ x.T)), normal(256, 128))  # fmt: skip
    yield add("sort, cumsum", lambda: (Apply(lambda x: x.sort(1).values),
              Apply(lambda x: x.cumsum(1))), normal(64, 1024))  # fmt: skip
