# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes at places that tensors hold, and sorting."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.ops.case import Op, integers, module, normal, op


def ops() -> Iterator[Op]:
    yield from _reads()
    yield from _writes()
    yield from _order()


def _reads() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("indexing", name, call, *args)

    x = normal(1024, 256)
    yield add("gather dim 0 1024x256", lambda x, i: x.gather(0, i), x, integers(0, 1024, 512, 256))
    yield add("gather dim 1 1024x256", lambda x, i: x.gather(1, i), x, integers(0, 256, 1024, 128))
    yield add("index_select dim 0 1024x256", lambda x, i: x.index_select(0, i), x,
              integers(0, 1024, 512))  # fmt: skip
    yield add("index_select dim 1 1024x256", lambda x, i: x.index_select(1, i), x,
              integers(0, 256, 128))  # fmt: skip
    yield add("x[i] 1024x256", lambda x, i: x[i], x, integers(0, 1024, 512))
    yield add("x[i, j] 1024x256", lambda x, i, j: x[i, j], x, integers(0, 1024, 4096),
              integers(0, 256, 4096))  # fmt: skip
    yield add("x[:, i] 1024x256", lambda x, i: x[:, i], x, integers(0, 256, 128))
    yield add("take 1024x256", torch.take, x, integers(0, 1024 * 256, 4096))
    yield add("take_along_dim 1024x256", lambda x, i: torch.take_along_dim(x, i, 1), x,
              integers(0, 256, 1024, 64))  # fmt: skip
    tokens = integers(0, 30000, 8, 128)
    yield module(
        "indexing", "embedding 8x128 of 30000x256", lambda: nn.Embedding(30000, 256), tokens
    )
    yield module(
        "indexing", "embedding_bag 64x16 of 30000x64", lambda: nn.EmbeddingBag(30000, 64),
        integers(0, 30000, 64, 16),
    )  # fmt: skip
    yield add("one_hot 1024 of 100", lambda i: F.one_hot(i, 100), integers(0, 100, 1024))
    yield add("searchsorted 4096 of 1024", torch.searchsorted,
              lambda: torch.randn(1024).sort().values, normal(4096))  # fmt: skip
    half, few = (lambda: torch.randn(1024, 256) > 0), (lambda: torch.randn(1024, 256) > 2)
    yield add("x[mask] 1024x256", lambda x, m: x[m], x, half)
    yield add("x[mask] of few 1024x256", lambda x, m: x[m], x, few)
    yield add("rows of a mask 1024x256", lambda x, m: x[m], x, lambda: torch.randn(1024) > 0)
    yield add("nonzero 1024x256", lambda m: m.nonzero(), half)
    yield add("nonzero of few 1024x256", lambda m: m.nonzero(), few)
    yield add("where of a mask 1024x256", lambda m: torch.where(m), half)


def _writes() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("indexing", name, call, *args)

    x = normal(1024, 256)
    rows, places = integers(0, 1024, 512), integers(0, 1024, 512, 256)
    source = normal(512, 256)
    yield add("index_add dim 0 1024x256", lambda x, i, y: x.index_add(0, i, y), x, rows, source)
    yield add("index_add dim 1 1024x256", lambda x, i, y: x.index_add(1, i, y), x,
              integers(0, 256, 128), normal(1024, 128))  # fmt: skip
    yield add("index_add of 4096 rows to 256x64", lambda x, i, y: x.index_add(0, i, y),
              normal(256, 64), integers(0, 256, 4096), normal(4096, 64))  # fmt: skip
    yield add("index_copy 1024x256", lambda x, i, y: x.index_copy(0, i, y), x,
              lambda: torch.randperm(1024)[:512], source)  # fmt: skip
    yield add("index_fill 1024x256", lambda x, i: x.index_fill(0, i, 1.0), x, rows)
    different = lambda: torch.rand(1024, 256).argsort(0)[:512]  # noqa: E731
    yield add("scatter dim 0 1024x256", lambda x, i, y: x.scatter(0, i, y), x, different, source)
    yield add(
        "scatter_add dim 0 1024x256", lambda x, i, y: x.scatter_add(0, i, y), x, places, source
    )
    yield add("scatter_add dim 1 1024x256", lambda x, i, y: x.scatter_add(1, i, y), x,
              integers(0, 256, 1024, 64), normal(1024, 64))  # fmt: skip
    yield add("scatter_reduce amax 1024x256", lambda x, i, y: x.scatter_reduce(0, i, y, "amax"), x,
              places, source)  # fmt: skip
    yield add("index_put accumulate 1024x256", lambda x, i, y: x.index_put((i,), y, True), x, rows,
              source)  # fmt: skip
    yield add(
        "scatter_add of 100000 to 256",
        lambda i, y: torch.zeros(256).scatter_add(0, i, y),
        integers(0, 256, 100000),
        normal(100000),
    )


def _order() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("order", name, call, *args)

    x = normal(64, 1024)
    yield add("sort dim 1 64x1024", lambda x: tuple(x.sort(1)), x)
    yield add("sort dim 0 64x1024", lambda x: tuple(x.sort(0)), x)
    yield add("argsort 64x1024", torch.argsort, x)
    yield add("sort 100000", lambda x: x.sort().values, normal(100000))
    yield add("sort 64x1024 i64", lambda x: x.sort(1).values, integers(0, 1000, 64, 1024))
    yield add("topk 10 64x1024", lambda x: tuple(x.topk(10)), x)
    yield add("topk 1 64x1024", lambda x: tuple(x.topk(1)), x)
    yield add("topk 50 1x50000", lambda x: tuple(x.topk(50)), normal(1, 50000))
    yield add("topk 5 dim 0 1024x64", lambda x: tuple(x.topk(5, 0)), normal(1024, 64))
    yield add("kthvalue 64x1024", lambda x: tuple(x.kthvalue(100)), x)
    yield add("median dim 1 64x1024", lambda x: tuple(x.median(1)), x)
    yield add("argmax 1x50000", lambda x: x.argmax(-1), normal(1, 50000))
    yield add("argmin 256x1024", torch.argmin, normal(256, 1024))
