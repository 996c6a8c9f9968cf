# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses whose decompositions are not what torch's kernels do."""

from __future__ import annotations

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.ops.index import check_range
from weft.frontend.table import Site, lowers

_NONE, _MEAN, _SUM = range(3)


@lowers("multilabel_margin_loss_forward.default")
def multilabel_margin_loss(site: Site, x: Value, target: Value, reduction: int):
    """x, target: (n, c) or (c); of each row the targets before the first -1 count.

    The mean over the classes of max(0, 1 - x[target] + x[class]), for all counted targets and all
    classes that are none. torch's decomposition adds the targets that do not count.
    """
    b = site.builder
    if target.rank < 2 and reduction == _NONE:
        # The kernel gives a scalar, torch's shape function a vector.
        raise Unsupported("a margin loss of one row, not reduced", b.graph.location)
    classes = x.size if x.rank < 2 else x.shape[1]
    rows = x.size // max(classes, 1)
    both, pairs = [rows, classes], [rows, classes, classes]
    x, target = b.reshape(x, both), b.convert(b.reshape(target, both), torch.int64)
    check_range(site, target, -1, classes, "RuntimeError: argument #2 'target' is out of range")
    place = b.iota(torch.int64, both, 1)
    end = b.select(b.compare("eq", target, -1), place, b.constant(classes, torch.int64, both))
    counted = b.compare("lt", place, b.broadcast(b.reduce("min", end, [1], keep=True), both))
    target = b.select(counted, target, b.constant(0, torch.int64, both))
    reached = b.gather(x, [b.iota(torch.int64, both, 0), target], [0, 1])

    def of_targets(value: Value) -> Value:
        return b.broadcast_in_dim(value, [0, 1], pairs)

    hit = b.compare("eq", of_targets(target), b.iota(torch.int64, pairs, 2))
    is_target = b.reduce("any", b.binary("and", hit, of_targets(counted)), [1])

    def of_classes(value: Value) -> Value:
        return b.broadcast_in_dim(value, [0, 2], pairs)

    gap = b.binary("sub", of_classes(x), of_targets(b.scalar("sub", reached, 1)))
    pays = b.binary("and", of_targets(counted), b.unary("not", of_classes(is_target)))
    pays = b.binary("and", pays, b.compare("gt", gap, 0))
    cost = b.select(pays, gap, b.constant(0, x.dtype, pairs))
    loss = _reduced(b, b.scalar("div", b.reduce("sum", cost, [1, 2]), classes), reduction)
    hits = b.convert(is_target, site.results[1].dtype)
    return b.reshape(loss, site.shape), b.reshape(hits, site.results[1].shape)


@lowers("multi_margin_loss.default")
def multi_margin_loss(
    site: Site,
    x: Value,
    target: Value,
    p=1,
    margin=1.0,
    weight: Value | None = None,
    reduction=_MEAN,
):
    """x: (n, c) or (c), target: (n) or one number. The mean over the classes, without the target's
    own, of weight[target] max(0, margin - x[target] + x[class])^p, of NaN zero."""
    b = site.builder
    if site.dtype not in (torch.float32, torch.float64) or not x.rank or not x.size:
        raise Decline(f"{site.target} of {x.size} elements of {site.dtype}")
    classes = x.shape[-1]
    both = [x.size // classes, classes]
    x, target = b.reshape(x, both), b.convert(b.reshape(target, both[:1]), torch.int64)
    check_range(site, target, 0, classes, "RuntimeError: target out of range")
    reached = b.gather(x, [b.iota(torch.int64, both[:1], 0), target], [0, 1])

    def of_classes(value: Value) -> Value:
        return b.broadcast_in_dim(value, [0], both)

    short = b.binary("sub", b.constant(margin, x.dtype, both[:1]), reached)
    gap = b.binary("add", of_classes(short), x)
    pays = b.compare("ne", of_classes(target), b.iota(torch.int64, both, 1))
    pays = b.binary("and", pays, b.compare("gt", gap, 0))
    gap = b.select(pays, gap, b.constant(0, x.dtype, both))
    cost = gap if p == 1 else b.binary("mul", gap, gap)
    if weight is not None:
        cost = b.binary("mul", cost, of_classes(b.gather(weight, [target], [0])))
    loss = _reduced(b, b.scalar("div", b.reduce("sum", cost, [1]), classes), reduction)
    return b.reshape(loss, site.shape)


def _reduced(b: Builder, losses: Value, reduction: int) -> Value:
    """losses: of each row."""
    if reduction == _NONE:
        return losses
    total = b.reduce("sum", losses, [0])
    return b.scalar("div", total, losses.shape[0]) if reduction == _MEAN else total
