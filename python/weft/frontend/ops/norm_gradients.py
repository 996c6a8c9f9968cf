# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of normalisations, which graphs of transforms of torch.func have as ops.

Their own derivatives are those of the formulas, whose statistics are functions of the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.ops.reduce import count, moments
from weft.frontend.table import Site, lowers


@lowers("native_layer_norm_backward.default")
def native_layer_norm_backward(
    site: Site, gradient: Value, x: Value, shape, mean, inverse, weight, bias, mask: Sequence[bool]
):
    b, outer = site.builder, x.rank - len(shape)
    gradient, x, mean, inverse = _wide(site, gradient, x, mean, inverse)
    mean, inverse = (b.broadcast(each, x.shape) for each in (mean, inverse))
    normal = b.binary("mul", b.binary("sub", x, mean), inverse)
    scaled = gradient
    if weight is not None:
        scaled = b.binary("mul", gradient, b.broadcast(*_wide(site, weight), x.shape))
    dims = list(range(outer, x.rank))
    of_x = b.binary("mul", _centred(site, scaled, normal, dims), inverse)
    return _asked(site, of_x, gradient, normal, list(range(outer)), mask)


@lowers("native_batch_norm_backward.default")
def native_batch_norm_backward(
    site: Site,
    gradient: Value,
    x: Value,
    weight: Value | None,
    running_mean: Value | None,
    running_variance: Value | None,
    mean: Value | None,
    inverse: Value | None,
    train: bool,
    eps: float,
    mask: Sequence[bool],
):
    b, dims = site.builder, [dim for dim in range(x.rank) if dim != 1]
    gradient, x = _wide(site, gradient, x)
    if train:
        mean, variance = _wide(site, *moments(site, x, dims, 0), like=x)
    else:
        mean, variance = _wide(site, running_mean, running_variance)
    inverse = b.unary("rsqrt", b.scalar("add", variance, eps))
    mean, inverse = (b.along(each, 1, x.shape) for each in (mean, inverse))
    normal = b.binary("mul", b.binary("sub", x, mean), inverse)
    of_x = _centred(site, gradient, normal, dims) if train else gradient
    of_x = b.binary("mul", of_x, inverse)
    if weight is not None:
        of_x = b.binary("mul", of_x, b.along(*_wide(site, weight), 1, x.shape))
    return _asked(site, of_x, gradient, normal, dims, mask)


def _wide(site: Site, *tensors: Value, like: Value | None = None) -> list[Value]:
    """The tensor in the type in which PyTorch computes the gradients."""
    return [site.builder.convert(x, opmath((like or x).dtype)) for x in tensors]


def _centred(site: Site, gradient: Value, normal: Value, dims: list[int]) -> Value:
    """The tensor without its mean and without its part along the normalised input, over `dims`."""
    b, number = site.builder, count(gradient, dims)

    def mean(x: Value) -> Value:
        total = b.reduce("sum", x, dims, True)
        return b.broadcast(b.scalar("div", total, max(number, 1)), x.shape)

    along = b.binary("mul", normal, mean(b.binary("mul", gradient, normal)))
    return b.binary("sub", b.binary("sub", gradient, mean(gradient)), along)


def _asked(
    site: Site,
    of_x: Value,
    gradient: Value,
    normal: Value,
    dims: list[int],
    mask: Sequence[bool],
) -> tuple[Value | None, ...]:
    """The gradients of the input, of the weight and of the bias, as far as they are asked for;
    dims: those that the weight does not have."""
    b = site.builder
    found = (
        of_x,
        b.reduce("sum", b.binary("mul", gradient, normal), dims),
        b.reduce("sum", gradient, dims),
    )
    return tuple(
        b.convert(b.reshape(each, meta.shape), meta.dtype) if is_asked else None
        for each, meta, is_asked in zip(found, site.results, mask, strict=True)
    )
