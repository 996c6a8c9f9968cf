# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products and what is made of them."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.ops.elementwise import aligned
from weft.onnx.table import Node, op


@op("MatMul")
def matmul(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


@op("Gemm", "alpha beta transA transB", since=7)
def gemm(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = a.t() if node.get("transA", 0) else a
    b = b.t() if node.get("transB", 0) else b
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    found = a @ b
    if alpha != 1:
        found = (alpha * found).to(a.dtype)
    if c is None:
        return found
    return found + (c if beta == 1 else (beta * c).to(a.dtype))


@op("Gemm", "alpha beta transA transB broadcast")
def gemm_1(node: Node, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return gemm(node, a, b, aligned(node, a, c))


@op("Einsum", "equation", since=12)
def einsum(node: Node, *operands: Tensor) -> Tensor:
    return torch.einsum(node.get("equation"), *operands)


@op("Det", since=11)
def det(node: Node, x: Tensor) -> Tensor:
    return torch.linalg.det(x)
