# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distances between rows."""

from __future__ import annotations

import math

import torch

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, dim_of, lowers

# torch's: from so many rows on, squares come from a matrix product.
_MANY_ROWS = 25


@lowers("cdist.default", "_cdist_forward.default")
def cdist(site: Site, x: Value, y: Value, p=2.0, compute_mode=None):
    b = site.builder
    (*batch, rows, columns), features = site.shape, x.shape[-1]
    if not features:
        return b.constant(0, site.dtype, site.shape)
    x = b.broadcast(b.convert(x, site.dtype), [*batch, rows, features])
    y = b.broadcast(b.convert(y, site.dtype), [*batch, columns, features])
    multiplies = compute_mode == 1 or (
        compute_mode in (None, 0) and max(rows, columns) > _MANY_ROWS
    )
    if p == 2 and multiplies:
        return _by_product(site, x, y)
    table = [*batch, rows, columns, features]
    n = len(batch)
    left = b.broadcast_in_dim(x, [*range(n), n, n + 2], table)
    right = b.broadcast_in_dim(y, [*range(n), n + 1, n + 2], table)
    difference = b.binary("sub", left, right)
    apart = b.unary("abs", difference)
    last = [n + 2]
    if p == 0:
        return b.reduce("sum", b.scalar("min", b.unary("ceil", apart), 1), last)
    if p == 1:
        if b.graph.training:
            # The sign as PyTorch's vectors have it, which of NaN is NaN.
            is_number = b.compare("eq", difference, difference)
            slope = b.select(is_number, b.unary("sign", difference), difference)
            apart = b.with_slopes(apart, (difference, slope))
        return b.reduce("sum", apart, last)
    if p == math.inf:
        return b.reduce("max", apart, last)
    if p == 2:
        return b.unary("sqrt", b.reduce("sum", b.binary("mul", apart, apart), last), "zero")
    return b.scalar("pow", b.reduce("sum", b.scalar("pow", apart, p), last), 1 / p)


def _by_product(site: Site, x: Value, y: Value) -> Value:
    """|x - y|^2 = |x|^2 + |y|^2 - 2 x y, not below zero."""
    b = site.builder
    n = x.rank - 2
    products = b.dot(x, y, ([n + 1], [n + 1]), (range(n), range(n)))
    squares = [b.reduce("sum", b.binary("mul", each, each), [n + 1]) for each in (x, y)]
    both = b.binary(
        "add",
        b.broadcast_in_dim(squares[0], [*range(n), n], site.shape),
        b.broadcast_in_dim(squares[1], [*range(n), n + 1], site.shape),
    )
    apart = b.binary("sub", both, b.scalar("mul", products, 2))
    return b.unary("sqrt", b.scalar("max", apart, 0), "zero")


@lowers("cosine_similarity.default")
def cosine_similarity(site: Site, x1: Value, x2: Value, dim=1, eps=1e-8):
    """Norms are at least `eps`, and have their slope below it as well: torch's Distance.cpp hides
    the bound from autograd.

    Raises: Decline, where the decomposition does as well: none is trained, or types are mixed."""
    b = site.builder
    if not b.graph.training or {x1.dtype, x2.dtype, opmath(site.dtype)} != {site.dtype}:
        raise Decline(f"cosine_similarity of {x1.dtype} and {x2.dtype}")
    shape = torch.broadcast_shapes(x1.shape, x2.shape)
    if not shape:
        raise Decline("cosine_similarity of single numbers")
    dims = [dim_of(dim, len(shape))]

    def unit(x: Value) -> Value:
        x = site.operand(x, site.dtype, shape)
        # PyTorch does not raise a single element to a power and back.
        if shape[dims[0]] == 1:
            norm = b.unary("abs", x)
        else:
            norm = b.unary("sqrt", b.reduce("sum", b.binary("mul", x, x), dims, True), "zero")
        bounded = b.with_slopes(b.scalar("max", norm, eps), (norm, 1))
        return b.binary("div", x, b.broadcast(bounded, shape))

    return site.finish(b.reduce("sum", b.binary("mul", unit(x1), unit(x2)), dims))
