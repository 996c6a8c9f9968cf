# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of each element, with the slopes of PyTorch's kernels: the derivatives of their parts
cancel, or are no number, where these are small and exact."""

from __future__ import annotations

from collections.abc import Callable

import torch

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers

_NONE, _MEAN = 0, 1


def _sides(site: Site, x: Value, target: Value) -> list[Value]:
    """Both in the shape of the loss of each element.

    Raises: Decline, where the decomposition does as well: none is trained, or types are mixed."""
    dtype = site.dtype
    if not site.builder.graph.training or {x.dtype, target.dtype, opmath(dtype)} != {dtype}:
        raise Decline(f"{site.target} of {x.dtype} and {target.dtype}")
    shape = torch.broadcast_shapes(x.shape, target.shape)
    return [site.operand(each, dtype, shape) for each in (x, target)]


def _reduced(site: Site, loss: Value, reduction: int) -> Value:
    if reduction == _NONE:
        return loss
    b = site.builder
    total = b.reduce("sum", loss, range(loss.rank))
    return b.scalar("div", total, loss.size) if reduction == _MEAN else total


@lowers("mse_loss.default")
def mse_loss(site: Site, x: Value, target: Value, reduction: int = _MEAN):
    """mse_backward of torch's PointwiseOpsKernel.cpp multiplies by 2 / n, or by 2, at first: a
    distance that this takes beyond the largest number has no slope of finite size."""
    b = site.builder
    x, target = _sides(site, x, target)
    apart = b.binary("sub", x, target)
    loss = _reduced(site, b.binary("mul", apart, apart), reduction)
    slope = b.scalar("mul", apart, 2 / apart.size if reduction == _MEAN and apart.size else 2)
    dims = range(apart.rank) if reduction != _NONE else ()
    return b.with_slopes(loss, (x, slope), (target, b.unary("neg", slope)), dims=dims)


@lowers("smooth_l1_loss.default")
def smooth_l1_loss(site: Site, x: Value, target: Value, reduction: int = _MEAN, beta=1.0):
    b = site.builder

    def far(gap: Value) -> Value:
        return b.scalar("sub", gap, 0.5 * beta)

    def near(gap: Value) -> Value:
        half = b.scalar("mul", b.binary("mul", gap, gap), 0.5)
        return b.scalar("div", half, beta) if beta else half

    return _bent_loss(site, x, target, reduction, beta, (near, far), (beta or 1.0, 1.0))


@lowers("huber_loss.default")
def huber_loss(site: Site, x: Value, target: Value, reduction: int = _MEAN, delta=1.0):
    b = site.builder

    def far(gap: Value) -> Value:
        return b.scalar("mul", b.scalar("sub", gap, 0.5 * delta), delta)

    def near(gap: Value) -> Value:
        return b.binary("mul", b.scalar("mul", gap, 0.5), gap)

    return _bent_loss(site, x, target, reduction, delta, (near, far), (1.0, delta))


def _bent_loss(
    site: Site,
    x: Value,
    target: Value,
    reduction: int,
    bend: float,
    parts: tuple[Callable[[Value], Value], Callable[[Value], Value]],
    slopes: tuple[float, float],
) -> Value:
    """Of the distance, `parts`: nearer than `bend` and beyond. slopes: what the first one's is
    divided by, and the second one's, which infinite distances have as well."""
    b = site.builder
    x, target = _sides(site, x, target)
    apart = b.binary("sub", x, target)
    gap = b.unary("abs", apart)
    (near, far), (divisor, steepest) = parts, slopes
    loss = b.select(b.compare("lt", gap, bend), near(gap), far(gap))
    inner = apart if divisor == 1 else b.scalar("div", apart, divisor)
    outer = b.scalar("mul", b.unary("sign", apart), steepest)
    slope = b.select(b.compare("ge", gap, bend), outer, inner)
    opposite = b.unary("neg", slope)
    return _reduced(site, b.with_slopes(loss, (x, slope), (target, opposite)), reduction)


@lowers("binary_cross_entropy.default")
def binary_cross_entropy(
    site: Site, x: Value, target: Value, weight: Value | None = None, reduction: int = _MEAN
):
    """The cross-entropy. The logarithms are at least -100, and the divisor of the slope is at least
    1e-12."""
    b = site.builder
    x, target = _sides(site, x, target)
    one = b.constant(1, x.dtype, x.shape)
    logarithms = (b.unary("log1p", b.unary("neg", x)), b.unary("log", x))
    of_rest, of_x = (b.scalar("max", each, -100, "one") for each in logarithms)
    loss = b.binary(
        "sub",
        b.binary("mul", b.binary("sub", target, one), of_rest),
        b.binary("mul", target, of_x),
    )
    sides = b.scalar("max", b.binary("mul", b.binary("sub", one, x), x), 1e-12)
    slope = b.binary("div", b.binary("sub", x, target), sides)
    loss = b.with_slopes(loss, (x, slope), (target, b.binary("sub", of_rest, of_x)))
    return _reduced(site, _weighted(site, loss, weight), reduction)


@lowers("binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    site: Site,
    x: Value,
    target: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = _MEAN,
):
    """Its slope is the sigmoid less the target, without what the loss cancels."""
    b = site.builder
    x, target = _sides(site, x, target)
    one, of_target = b.constant(1, x.dtype, x.shape), b.unary("neg", x)
    rest = b.unary("log1p", b.unary("exp", b.unary("neg", b.unary("abs", x))))
    log_sigmoid = b.binary("sub", b.scalar("min", x, 0), rest)
    sigmoid = b.unary("sigmoid", x)
    if pos_weight is None:
        slope = b.binary("sub", sigmoid, target)
    else:
        pos_weight = site.operand(pos_weight, x.dtype, x.shape)
        further = b.scalar("sub", pos_weight, 1)
        of_target = b.binary("sub", of_target, b.binary("mul", further, log_sigmoid))
        more = b.binary("mul", further, target)
        log_sigmoid = b.binary("mul", b.scalar("add", more, 1), log_sigmoid)
        weighted = b.binary("mul", pos_weight, target)
        both = b.binary("sub", b.scalar("add", weighted, 1), target)
        slope = b.binary("sub", b.binary("mul", both, sigmoid), weighted)
    loss = b.binary("mul", b.binary("sub", one, target), x)
    loss = b.binary("sub", loss, log_sigmoid)
    loss = b.with_slopes(loss, (x, slope), (target, of_target))
    return _reduced(site, _weighted(site, loss, weight), reduction)


def _weighted(site: Site, loss: Value, weight: Value | None) -> Value:
    if weight is None:
        return loss
    if weight.dtype != loss.dtype:
        raise Decline(f"{site.target} weighted by {weight.dtype}")
    b = site.builder
    return b.binary("mul", loss, site.operand(weight, loss.dtype, loss.shape))
