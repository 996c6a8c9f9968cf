# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums and the like along each dim, scans, softmax and norms, and losses."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.ops.case import Op, flags, integers, module, normal, op, uniform


def ops() -> Iterator[Op]:
    yield from _reductions()
    yield from _scans()
    yield from _norms()
    yield from _losses()


def _reductions() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("reductions", name, call, *args)

    x, deep = normal(256, 1024), normal(16, 64, 256)
    for name in ("sum", "mean", "amax", "prod", "std"):
        yield add(f"{name} 256x1024", getattr(torch, name), x)
    for dim in (0, 1):
        for name in ("sum", "mean", "amax", "argmax", "var", "logsumexp"):
            call = getattr(torch, name)
            yield add(
                f"{name} dim {dim} 256x1024", lambda x, call=call, dim=dim: call(x, dim=dim), x
            )
        yield add(f"max dim {dim} 256x1024", lambda x, dim=dim: tuple(torch.max(x, dim)), x)
        yield add(f"norm dim {dim} 256x1024", lambda x, dim=dim: x.norm(dim=dim), x)
    yield add("min dim 1 of three 16x64x256", lambda x: tuple(torch.min(x, 1)), deep)
    yield add("sum dim 1 of three 16x64x256", lambda x: x.sum(1), deep)
    yield add("mean dims 2, 3 8x64x56x56", lambda x: x.mean((2, 3)), normal(8, 64, 56, 56))
    yield add("any dim 1 256x1024", lambda x: x.any(1), flags(256, 1024))
    yield add("all 256x1024", lambda x: x.all(), flags(256, 1024))
    yield add("count_nonzero 256x1024", torch.count_nonzero, x)
    yield add("sum 256x1024 i64", torch.sum, integers(-9, 9, 256, 1024))
    yield add("sum dim 1 256x1024 f64", lambda x: x.sum(1), normal(256, 1024, dtype=torch.float64))
    yield add(
        "sum dim 1 256x1024 bf16", lambda x: x.sum(1), normal(256, 1024, dtype=torch.bfloat16)
    )


def _scans() -> Iterator[Op]:
    x = normal(256, 1024)
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        for dim in (0, 1):
            call = getattr(torch, name)
            yield op(
                "scans", f"{name} dim {dim} 256x1024", lambda x, call=call, dim=dim: call(x, dim), x
            )
    for name in ("cummax", "cummin"):
        for dim in (0, 1):
            call = getattr(torch, name)
            yield op(
                "scans",
                f"{name} dim {dim} 256x1024",
                lambda x, call=call, dim=dim: tuple(call(x, dim)),
                x,
            )
    yield op("scans", "cumsum dim 1 of three 16x64x256", lambda x: x.cumsum(1), normal(16, 64, 256))
    yield op("scans", "cumsum 65536", lambda x: x.cumsum(0), normal(65536))
    yield op(
        "scans", "cumsum dim 1 256x1024 i64", lambda x: x.cumsum(1), integers(-9, 9, 256, 1024)
    )


def _norms() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("norms", name, call, *args)

    def of(name: str, make, *args) -> Op:
        return module("norms", name, make, *args)

    x, image = normal(256, 1024), normal(8, 64, 28, 28)
    for dim in (0, 1):
        yield add(f"softmax dim {dim} 256x1024", lambda x, dim=dim: x.softmax(dim), x)
        yield add(f"log_softmax dim {dim} 256x1024", lambda x, dim=dim: x.log_softmax(dim), x)
    yield add("softmax 8x256x256", lambda x: x.softmax(-1), normal(8, 256, 256))
    yield add("softmax dim 1 8x21x64x64", lambda x: x.softmax(1), normal(8, 21, 64, 64))
    for dtype, short in ((torch.float64, "f64"), (torch.bfloat16, "bf16")):
        made = normal(256, 1024, dtype=dtype)
        yield add(f"softmax dim 1 256x1024 {short}", lambda x: x.softmax(1), made)
    yield of("layer_norm 128x768", lambda: nn.LayerNorm(768), normal(128, 768))
    yield of("layer_norm 1x768", lambda: nn.LayerNorm(768), normal(1, 768))
    yield of("rms_norm 128x768", lambda: nn.RMSNorm(768), normal(128, 768))
    yield of("batch_norm 8x64x28x28", lambda: nn.BatchNorm2d(64), image)
    yield of("group_norm 8x64x28x28", lambda: nn.GroupNorm(8, 64), image)
    yield of("instance_norm 8x64x28x28", lambda: nn.InstanceNorm2d(64), image)
    yield of("local_response_norm 8x64x28x28", lambda: nn.LocalResponseNorm(5), image)
    yield add("normalize 256x1024", lambda x: F.normalize(x, dim=1), x)
    yield add("glu 256x1024", F.glu, x)


def _losses() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("losses", name, call, *args)

    x, y = normal(256, 1024), normal(256, 1024)
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cosine_similarity"):
        yield add(f"{name} 256x1024", getattr(F, name), x, y)
    yield add("cross_entropy 256x1024", F.cross_entropy, x, integers(0, 1024, 256))
    yield add(
        "binary_cross_entropy_with_logits 256x1024",
        F.binary_cross_entropy_with_logits,
        x,
        uniform(0.0, 1.0, 256, 1024),
    )
    yield add(
        "kl_div 256x1024",
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
        lambda: torch.randn(256, 1024).log_softmax(1),
        lambda: torch.randn(256, 1024).softmax(1),
    )
    yield add("triplet_margin_loss 256x1024", F.triplet_margin_loss, x, y, normal(256, 1024))
    yield add("cdist 256x64", torch.cdist, normal(256, 64), normal(256, 64))
