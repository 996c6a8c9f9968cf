# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each op does with padding: those that combine elements along dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from weft.frontend.evaluation import segment_sizes
from weft.frontend.graph import Node, Value
from weft.frontend.sizes.extents import Factor, is_static, joined, plain
from weft.frontend.sizes.numbers import scaled
from weft.frontend.sizes.padding import Padding, rule


@rule("reduce")
def reduce(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), along = node.operands, node.attrs["dims"]
    kept = [dim for d, dim in enumerate(p.dims_of(x)) if d not in along]
    p.emit(node, [p.hidden(x, along, p.identity(node.attrs["kind"], x.dtype))], kept)


@rule("arg_reduce")
def arg_reduce(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """Of equal elements the first is found, and those that count come first."""
    (x,), along = node.operands, node.attrs["dim"]
    dims = p.dims_of(x)
    if not is_static(dims[along]):
        p.prefix(dims[along], "an argmax")
    kept = [dim for d, dim in enumerate(dims) if d != along]
    p.emit(node, [p.hidden(x, [along], p.identity(node.attrs["kind"], x.dtype))], kept)


@rule("cumulative")
def cumulative(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), along = node.operands, node.attrs["dim"]
    dims = list(p.dims_of(x))
    if not is_static(dims[along]):
        p.prefix(dims[along], "a running sum")
    dims[along] = tuple(Factor(f.sizes, f.extent) for f in dims[along])
    p.emit(node, [p.of(x)], dims)


@rule("softmax", "log_softmax")
def softmax(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,) = node.operands
    p.emit(node, [p.hidden(x, [node.attrs["dim"]], -math.inf)], plain(p.dims_of(x)))


@rule("layer_norm", "rms_norm")
def row_norm(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    x = node.operands[0]
    along = [*range(x.rank - node.attrs["normalizedDims"], x.rank)]
    if all(is_static(p.dims_of(x)[d]) for d in along):
        p.emit(node, [p.of(each) for each in node.operands], p.dims_of(x))
    else:
        _normalized(p, node, nodes, along)


def _normalized(p: Padding, node: Node, nodes: Sequence[Node], along: list[int]) -> None:
    """As its definition says, with the number of elements that count."""
    x, *affine = node.operands
    (result,) = node.results
    dims, b = p.dims_of(x), p.builder
    dtype = torch.promote_types(x.dtype, torch.float32)
    numbers = [math.prod(each.operands[0].shape[d] for d in along) for each in nodes]
    count, kept = scaled(p, numbers, dtype), [*range(along[0])]

    def mean(of: Value) -> Value:
        total = b.reduce("sum", p.hide(of, dims, along, 0), along)
        each = b.binary("div", total, b.broadcast(count, total.shape))
        return b.broadcast_in_dim(each, kept, x.shape)

    made = b.convert(p.of(x), dtype)
    if node.op == "weft.layer_norm":
        made = b.binary("sub", made, mean(made))
    variance = b.scalar("add", mean(b.binary("mul", made, made)), node.attrs["eps"])
    made = b.binary("mul", made, b.unary("rsqrt", variance))
    kinds = ["mul"] * len(affine)
    if node.op == "weft.layer_norm":
        has_weight, has_bias = segment_sizes(node.attrs)[1:]
        kinds = ["mul"] * has_weight + ["add"] * has_bias
    for kind, value in zip(kinds, affine, strict=True):
        each = b.broadcast_in_dim(b.convert(p.of(value), dtype), along, x.shape)
        made = b.binary(kind, made, each)
    p.set(result, b.convert(made, result.dtype), plain(dims))


@rule("group_norm")
def group_norm(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """Over padding as its definition says, with the number of elements that count."""
    x, *affine = node.operands
    dims, groups = p.dims_of(x), node.attrs["groups"]
    p.fixed(dims[1:2], "channels of a group norm")
    if all(map(is_static, dims[2:])):
        p.emit(node, [p.of(each) for each in node.operands], dims)
        return
    b, along = p.builder, list(range(2, x.rank))
    # In groups of channels (n, groups, channels of one, s...), and back.
    apart = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    count = scaled(p, [each.operands[0].size // math.prod(each.operands[0].shape[:1]) // groups
                      for each in nodes], x.dtype)  # fmt: skip

    def mean(of: Value) -> Value:
        total = b.reduce("sum", p.hide(of, dims, along, 0), along)
        total = b.reduce("sum", b.reshape(total, apart[:3]), [2])
        each = b.binary("div", total, b.broadcast(count, total.shape))
        return b.reshape(b.broadcast_in_dim(each, [0, 1], apart), x.shape)

    new = p.of(x)
    centred = b.binary("sub", new, mean(new))
    variance = b.scalar("add", mean(b.binary("mul", centred, centred)), node.attrs["eps"])
    made = b.binary("mul", centred, b.unary("rsqrt", variance))
    has_weight, has_bias = segment_sizes(node.attrs)[1:]
    for kind, value in zip(["mul"] * has_weight + ["add"] * has_bias, affine, strict=True):
        made = b.binary(kind, made, b.along(p.of(value), 1, x.shape))
    p.set(node.results[0], made, plain(dims))


@rule("batch_norm")
def batch_norm(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    x = node.operands[0]
    p.fixed(p.dims_of(x)[1:2], "a batch norm")
    p.emit(node, [p.of(each) for each in node.operands], p.dims_of(x))


@rule("dot_general")
def dot(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x, y), attrs = node.operands, node.attrs
    own, other = p.dims_of(x), p.dims_of(y)
    left, right = attrs["lhsContract"], attrs["rhsContract"]
    for a, b in zip(left, right):
        p.unify(own[a], other[b])
    batch = [p.unify(own[a], other[b]) for a, b in zip(attrs["lhsBatch"], attrs["rhsBatch"])]
    free_x = [dim for d, dim in enumerate(own) if d not in (*left, *attrs["lhsBatch"])]
    free_y = [dim for d, dim in enumerate(other) if d not in (*right, *attrs["rhsBatch"])]
    operands = [p.hidden(x, left, 0), p.hidden(y, right, 0)]
    p.emit(node, operands, [*batch, *free_x, *free_y])


@rule("conv")
def conv(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    x, weight = node.operands
    dims = p.dims_of(x)
    p.fixed([dims[1], *p.dims_of(weight)], "channels or windows of a convolution")
    made = [dims[0], *(p.fitted(p.sizes(nodes, d)) for d in range(1, x.rank))]
    behind = []
    for d in range(2, x.rank):
        if not is_static(dims[d]):
            p.prefix(dims[d], "a convolution")
            behind.append(d)
    p.emit(node, [p.hidden(x, behind, 0), p.of(weight)], made)


@rule("reduce_window")
def reduce_window(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), attrs = node.operands, node.attrs
    dims, made, behind = p.dims_of(x), [], []
    for d in range(x.rank):
        step, window = attrs["strides"][d], attrs["window"][d]
        if step == window == 1:
            made.append(dims[d])
            continue
        if not is_static(dims[d]):
            p.prefix(dims[d], "a window")
            behind.append(d)
        made.append(p.fitted(p.sizes(nodes, d)))
    p.emit(node, [p.hidden(x, behind, p.identity(attrs["kind"], x.dtype))], made)


@rule("attention")
def attention(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """Keys that do not count are hidden. What they and their values hold would be multiplied by
    zero, which has to be a number."""
    q, k, v, *masks = node.operands
    rank = q.rank
    dims, keys, values = p.dims_of(q), p.dims_of(k), p.dims_of(v)
    p.fixed([dims[-1], keys[-1], values[-1]], "attention over heads")
    batch = [p.unify(*pair) for pair in zip(dims[:-2], keys[:-2], strict=True)]
    batch = [p.unify(*pair) for pair in zip(batch, values[:-2], strict=True)]
    made = plain([*batch, dims[-2], values[-1]])
    made = [tuple(replace(f, uniform=False) for f in dim) for dim in made]
    for mask in masks:
        for own, other in zip(p.dims_of(mask), [*batch, dims[-2], keys[-2]], strict=True):
            p.unify(own, other)
    along = keys[-2]
    if is_static(along):
        p.emit(node, [p.of(each) for each in node.operands], made)
        return
    p.unify(along, values[-2])
    operands = [p.of(q), p.hidden(k, [rank - 2], 0), p.hidden(v, [rank - 2], 0)]
    shape = (*q.shape[:-1], k.shape[-2])
    if masks:
        hidden = False if masks[0].dtype == torch.bool else -math.inf
        operands.append(p.hidden(masks[0], [rank - 1], hidden))
    elif not node.attrs["causal"] or p.differ(dims[-2], along) or len(joined(along)) > 1:
        # No query sees a key behind it; of a grid, padding also lies in front of what counts.
        seen = p.counting([*batch, dims[-2], along], [rank - 1])
        assert seen is not None and seen.shape == shape
        operands.append(seen)
    p.emit(node, operands, made)
