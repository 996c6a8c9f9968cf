# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a reshape does with padding. Most keep what counts a prefix of each dim, or of the factors
that are one dim. One that takes apart what a symbol decides, such as (t, t + 1) to (t + 1, t), by
which relative positions are shifted, finds each element by arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weft.frontend.graph import Node, Value
from weft.frontend.sizes.extents import Dim, Factor, regrouped, size_of
from weft.frontend.sizes.padding import Padding, rule
from weft.frontend.sizes.places import gathered, numbers_of, places_of


@rule("reshape")
def reshape(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), (result,) = node.operands, node.results
    shapes = [each.results[0].shape for each in nodes]
    dims = regrouped(p.dims_of(x), shapes)
    if dims is None and not all(f.uniform for dim in p.dims_of(x) for f in dim):
        _rearrange(p, node, nodes)
        return
    if dims is None:
        dims = [p.fitted(sizes, uniform=True) for sizes in zip(*shapes)]
    p.set(result, p.builder.reshape(p.of(x), result.shape), dims)


def _rearrange(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """Element i of those that count is taken from where the operand has its element i. Outer and
    inner dims that stay as they are have no part in it."""
    (x,), (result,) = node.operands, node.results
    dims, b = p.dims_of(x), p.builder
    wanted = [p.sizes(nodes, d) for d in range(result.rank)]
    own = [tuple(size_of(dim, s) for s in range(len(nodes))) for dim in dims]
    outer = _common(own, wanted)
    inner = _common(own[outer:][::-1], wanted[outer:][::-1])
    taken, given = slice(outer, x.rank - inner), slice(outer, result.rank - inner)
    new_dims = [p.fitted(sizes) for sizes in wanted[given]]
    atoms = [factor for dim in dims[taken] for factor in dim]
    places = _places(p, atoms, [factor for (factor,) in new_dims])
    shape = p.of(x).shape
    parts = (math.prod(shape[:outer]), math.prod(shape[taken]), math.prod(shape[x.rank - inner :]))
    made = gathered(p, b.reshape(p.of(x), parts), 1, places)
    same_dims: list[Dim] = [*dims[:outer], *new_dims, *dims[x.rank - inner :]]
    p.set(result, b.reshape(made, result.shape), same_dims)


def _common(one: Sequence[tuple[int, ...]], other: Sequence[tuple[int, ...]]) -> int:
    """How many dims are the same from the first on."""
    differ = (i for i, (a, b) in enumerate(zip(one, other)) if a != b)
    return next(differ, min(len(one), len(other)))


def _places(p: Padding, old: Sequence[Factor], new: Sequence[Factor]) -> Value:
    """Where each element of dims `new` is among dims `old`, padding included: int64 (n)."""
    number = numbers_of(p, new, torch.int64)
    return p.builder.reshape(places_of(p, number, old), [number.size])
