# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalisations, whole; their statistics only where something reads them."""

from __future__ import annotations

import functools

import torch

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.reduce import count, moments
from weft.frontend.table import Site, lowers


def _common(site: Site, *tensors: Value | None) -> list[Value | None]:
    """The tensors converted to the widest of their types: float32 statistics keep a bfloat16 norm
    exact."""
    given = [x.dtype for x in tensors if x is not None]
    dtype = functools.reduce(torch.promote_types, given)
    return [None if x is None else site.builder.convert(x, dtype) for x in tensors]


@lowers("layer_norm.default")
def layer_norm(site: Site, x, normalized_shape, weight=None, bias=None, eps=1e-5, _=True):
    tensors = _common(site, x, weight, bias)
    return site.finish(site.builder.layer_norm(*tensors, len(normalized_shape), eps))


@lowers("native_layer_norm.default")
def native_layer_norm(site: Site, x, normalized_shape, weight, bias, eps):
    result = layer_norm(site, x, normalized_shape, weight, bias, eps)
    dims = list(range(x.rank - len(normalized_shape), x.rank))
    return result, *_statistics(site, x, dims, eps)


@lowers("group_norm.default")
def group_norm(site: Site, x, groups, weight=None, bias=None, eps=1e-5, _=True):
    return site.finish(site.builder.group_norm(*_common(site, x, weight, bias), groups, eps))


@lowers("native_group_norm.default")
def native_group_norm(site: Site, x, weight, bias, n, c, spatial, groups, eps):
    result = group_norm(site, x, groups, weight, bias, eps)
    if not site.used - {0}:
        return result, None, None
    grouped = site.builder.reshape(x, [n, groups, x.size // max(n * groups, 1)])
    return result, *_statistics(site, grouped, [2], eps)


@lowers("instance_norm.default")
def instance_norm(site: Site, x, weight, bias, mean, variance, use_input_stats, momentum, eps, _):
    if mean is None and use_input_stats:
        return group_norm(site, x, x.shape[1], weight, bias, eps)
    if use_input_stats:
        raise Decline("instance_norm that updates running statistics")
    site.builder.graph.copied += [mean, variance]  # it repeats them for each image
    return _apply(site, x, mean, variance, weight, bias, eps)


@lowers("rms_norm.default")
def rms_norm(site: Site, x, normalized_shape, weight=None, eps=None):
    if eps is None:
        eps = torch.finfo(opmath(x.dtype)).eps
    x, weight = _common(site, x, weight)
    return site.finish(site.builder.rms_norm(x, weight, len(normalized_shape), eps))


@lowers("batch_norm.default")
def batch_norm(site: Site, x, weight, bias, mean, variance, training, momentum, eps, _):
    if not training and mean is not None:
        return _apply(site, x, mean, variance, weight, bias, eps)
    if mean is not None:
        raise Decline("batch_norm that updates running statistics in place")
    return _by_own_statistics(site, x, weight, bias, eps)[0]


@lowers("_native_batch_norm_legit_no_training.default")
def batch_norm_inference(site: Site, x, weight, bias, mean, variance, momentum, eps):
    site.only(0)
    return _apply(site, x, mean, variance, weight, bias, eps), None, None


@lowers("native_batch_norm.default")
def native_batch_norm(site: Site, x, weight, bias, mean, variance, training, momentum, eps):
    """PyTorch's decomposition subtracts the mean first, so that infinite parameters give another
    result than its kernel's."""
    if training or mean is None:
        raise Decline("native_batch_norm by statistics of its own")
    saved = [site.builder.constant(0.0, each.dtype, each.shape) for each in site.results[1:]]
    return _apply(site, x, mean, variance, weight, bias, eps), *saved


@lowers("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(site: Site, x, weight, bias, training, momentum, eps):
    result, average, variance, _ = _by_own_statistics(site, x, weight, bias, eps)
    return result, average, _inverse_deviation(site, variance, eps)


@lowers("_native_batch_norm_legit_functional.default")
def batch_norm_functional(site: Site, x, weight, bias, mean, variance, training, momentum, eps):
    """Also gives the new running statistics, which the program writes back."""
    b = site.builder
    if not training:
        raise Decline("functional batch_norm by running statistics")
    result, average, spread, n = _by_own_statistics(site, x, weight, bias, eps)
    by = b.quotient(n, max(n - 1, 1), spread.dtype, spread.shape)
    unbiased = b.binary("mul", spread, by)
    running = [
        b.convert(_blend(site, old, b.detached(new), momentum), meta.dtype)
        for old, new, meta in zip((mean, variance), (average, unbiased), site.results[3:])
    ]
    statistics = [
        b.convert(value, meta.dtype)
        for value, meta in zip((average, _inverse_deviation(site, spread, eps)), site.results[1:])
    ]
    return result, *statistics, *running


def _by_own_statistics(site: Site, x: Value, weight, bias, eps):
    """The result, the batch's mean and biased variance per channel, elements per channel."""
    b = site.builder
    dims = [dim for dim in range(x.rank) if dim != 1]
    found = moments(site, x, dims, 0)
    average, variance = (b.convert(each, opmath(x.dtype)) for each in found)
    result = _apply(site, x, average, variance, weight, bias, eps)
    return result, average, variance, count(x, dims)


def _apply(site: Site, x, mean, variance, weight, bias, eps: float) -> Value:
    operands = _common(site, x, mean, variance, weight, bias)
    if x.rank < 2:
        raise Decline(f"{site.target} of a vector")
    if any(y is not None and y.shape != (x.shape[1],) for y in operands[1:]):
        raise Decline("batch_norm whose parameters are not one number for each channel")
    return site.finish(site.builder.batch_norm(*operands, eps))


def _statistics(site: Site, x: Value, dims: list[int], eps: float) -> tuple[Value | None, ...]:
    """Mean and inverse deviation, the second and third result, where something reads them."""
    if not site.used - {0}:
        return None, None
    if not x.size:
        raise Decline(f"the statistics of nothing in {site.target}")
    mean, variance = moments(site, x, dims, 0)
    inverse = _inverse_deviation(site, variance, eps)
    return tuple(
        site.builder.reshape(site.builder.convert(value, meta.dtype), meta.shape)
        for value, meta in zip((mean, inverse), site.results[1:])
    )


def _inverse_deviation(site: Site, variance: Value, eps: float) -> Value:
    return site.builder.unary("rsqrt", site.builder.scalar("add", variance, eps))


def _blend(site: Site, old: Value, new: Value, momentum: float) -> Value:
    b = site.builder
    kept = b.scalar("mul", b.convert(old, new.dtype), 1 - momentum)
    return b.binary("add", b.scalar("mul", new, momentum), kept)
