# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values from torch's generator. ONNX leaves open which they are, with a seed as well."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of


def _dtype(node: Node, otherwise: torch.dtype) -> torch.dtype:
    return dtype_of(node.get("dtype")) if "dtype" in node.attributes else otherwise


@op("Bernoulli", "dtype seed", since=15, draws=True)
def bernoulli(node: Node, x: Tensor) -> Tensor:
    return torch.bernoulli(x).to(_dtype(node, x.dtype))


@op("RandomUniformLike RandomNormalLike", "dtype high low mean scale seed", draws=True)
def random_like(node: Node, x: Tensor) -> Tensor:
    return _drawn(node, list(x.shape), _dtype(node, x.dtype))


@op("RandomUniform RandomNormal", "dtype high low mean scale seed shape", draws=True)
def random(node: Node) -> Tensor:
    return _drawn(node, node.get("shape"), _dtype(node, torch.float32))


def _drawn(node: Node, shape: list[int], dtype: torch.dtype) -> Tensor:
    if "Normal" in node.op:
        return torch.randn(shape, dtype=dtype) * node.get("scale", 1.0) + node.get("mean", 0.0)
    low, high = node.get("low", 0.0), node.get("high", 1.0)
    return torch.rand(shape, dtype=dtype) * (high - low) + low


@op("Multinomial", "dtype sample_size seed", since=7, draws=True)
def multinomial(node: Node, x: Tensor) -> Tensor:
    count = node.get("sample_size", 1)
    return torch.multinomial(x.exp(), count, replacement=True).to(_dtype(node, torch.int32))
