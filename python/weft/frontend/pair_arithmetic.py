# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on complex numbers, as pairs of reals. Formulas are those of PyTorch's kernels, so
that rounding, infinities and NaN are theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.pairs import Pair, for_pairs, join, magnitude
from weft.frontend.table import TABLE, Rule, Site, dims_of


def _operand(site: Site, x: Any) -> Pair:
    """A tensor or number as complex numbers of the result's type and shape."""
    if isinstance(x, Pair):
        parts: tuple[Any, Any] = (x.real, x.imag)
    elif isinstance(x, complex):
        parts = (x.real, x.imag)
    else:
        parts = (x, 0.0)
    return Pair(*(site.operand(part, site.dtype) for part in parts))


def _scaled(site: Site, x: Pair, alpha: Any) -> Pair:
    if alpha == 1:
        return x
    if isinstance(alpha, complex):
        raise Decline("a complex factor of a term")
    return Pair(*(site.builder.scalar("mul", part, alpha) for part in (x.real, x.imag)))


@for_pairs("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar")
def add(site: Site, x: Any, y: Any, alpha: Any = 1):
    kind = site.target.split(".")[1]
    x, y = _operand(site, x), _scaled(site, _operand(site, y), alpha)
    b = site.builder
    return Pair(b.binary(kind, x.real, y.real), b.binary(kind, x.imag, y.imag))


def _sum(b: Builder, x: Pair, y: Pair) -> Pair:
    return Pair(b.binary("add", x.real, y.real), b.binary("add", x.imag, y.imag))


def _product(b: Builder, x: Pair, y: Pair, multiply: Callable[[Value, Value], Value]) -> Pair:
    straight = b.binary("sub", multiply(x.real, y.real), multiply(x.imag, y.imag))
    crossed = b.binary("add", multiply(x.real, y.imag), multiply(x.imag, y.real))
    return Pair(straight, crossed)


@for_pairs("rsub.Tensor", "rsub.Scalar")
def rsub(site: Site, x: Any, y: Any, alpha: Any = 1):
    y, x = _operand(site, y), _scaled(site, _operand(site, x), alpha)
    b = site.builder
    return Pair(b.binary("sub", y.real, x.real), b.binary("sub", y.imag, x.imag))


@for_pairs("mul.Tensor", "mul.Scalar")
def mul(site: Site, x: Any, y: Any):
    b = site.builder
    x, y = _operand(site, x), _operand(site, y)
    return _product(b, x, y, lambda one, other: b.binary("mul", one, other))


@for_pairs("square.default")
def square(site: Site, x: Pair):
    return mul(site, x, x)


@for_pairs("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(site: Site, x: Any, y: Any):
    return _quotient_with_slopes(site.builder, _operand(site, x), _operand(site, y), 2)


def _quotient_with_slopes(b: Builder, x: Pair, y: Pair, derivatives: int) -> Pair:
    """Along x they are the reciprocal of y, along y that times the quotient's negative."""
    value = _quotient(b, x, y)
    if not b.graph.training or not derivatives:
        return value
    one, zero = (b.constant(number, x.real.dtype, x.shape) for number in (1, 0))
    inverse = _quotient_with_slopes(b, Pair(one, zero), y, derivatives - 1)
    falling = _product(b, value, inverse, lambda one, other: b.binary("mul", one, other))
    falling = Pair(*(b.unary("neg", part) for part in (falling.real, falling.imag)))
    sides = ((x, inverse), (y, falling))
    along = [(z.real, slope.real) for z, slope in sides]
    along += [(z.imag, b.unary("neg", slope.imag)) for z, slope in sides]
    across = [(z.real, slope.imag) for z, slope in sides]
    across += [(z.imag, slope.real) for z, slope in sides]
    return Pair(b.with_slopes(value.real, *along), b.with_slopes(value.imag, *across))


def _quotient(b: Builder, x: Pair, y: Pair) -> Pair:
    """operator/= of c10/util/complex.h (Smith's method): by the ratio of the divisor's parts, lest
    its square overflow; each part by zero, if both are."""

    def op(kind: str, one: Value, other: Value) -> Value:
        return b.binary(kind, one, other)

    sizes = [b.unary("abs", part) for part in (y.real, y.imag)]
    is_wide = b.compare("ge", *sizes)
    large, small = b.select(is_wide, y.real, y.imag), b.select(is_wide, y.imag, y.real)
    ratio = op("div", small, large)
    one = b.constant(1, ratio.dtype, ratio.shape)
    scale = op("div", one, op("add", large, op("mul", small, ratio)))
    along, across = b.select(is_wide, x.real, x.imag), b.select(is_wide, x.imag, x.real)
    real = op("add", along, op("mul", across, ratio))
    turned = op("mul", along, ratio)
    imag = b.select(is_wide, op("sub", across, turned), op("sub", turned, across))
    is_zero = op("and", *(b.compare("eq", size, 0) for size in sizes))
    sizes = [b.select(is_zero, size, one) for size in sizes]
    parts = [
        b.select(is_zero, op("div", part, size), op("mul", found, scale))
        for part, size, found in zip((x.real, x.imag), sizes, (real, imag), strict=True)
    ]
    return Pair(*parts)


@for_pairs("reciprocal.default")
def reciprocal(site: Site, x: Pair):
    return div(site, 1.0, x)


@for_pairs("sgn.default")
def sgn(site: Site, x: Pair):
    b = site.builder
    size = magnitude(site, x)
    zero = b.constant(0, size.dtype, size.shape)
    at_zero = b.compare("eq", size, zero)
    return Pair(
        *(b.select(at_zero, zero, b.binary("div", part, size)) for part in (x.real, x.imag))
    )


@for_pairs("polar.default")
def polar(site: Site, size: Value, angle: Value):
    """The slope along the size is the sign of the result, as polar_backward of torch's
    FunctionsManual.cpp has it: of a negative size the opposite direction's."""
    b = site.builder
    size, angle = site.operand(size, site.dtype), site.operand(angle, site.dtype)
    result = Pair(*(b.binary("mul", size, b.unary(f, angle)) for f in ("cos", "sin")))
    if not b.graph.training:
        return result
    signs, back = sgn(site, result), b.unary("neg", result.imag)
    real = b.with_slopes(result.real, (size, signs.real), (angle, back))
    return Pair(real, b.with_slopes(result.imag, (size, signs.imag), (angle, result.real)))


@for_pairs("pow.Tensor_Scalar")
def power(site: Site, x: Pair, exponent: Any):
    if exponent == 1:
        return x
    if exponent != 2:
        raise Decline("a power of complex numbers other than the square")
    return mul(site, x, x)


@for_pairs("exp.default")
def exp(site: Site, x: Pair):
    b = site.builder
    size = b.unary("exp", x.real)
    return Pair(*(b.binary("mul", size, b.unary(f, x.imag)) for f in ("cos", "sin")))


def _as_pair(b: Builder, x: Pair | Value) -> Pair:
    return x if isinstance(x, Pair) else Pair(x, b.constant(0, x.dtype, x.shape))


@for_pairs("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def matmul(site: Site, x: Any, y: Any):
    b, rule = site.builder, TABLE[site.target]
    return _product(b, _as_pair(b, x), _as_pair(b, y), lambda one, other: rule(site, one, other))


def _where(rule: Rule, site: Site, condition: Value, x: Any, y: Any) -> Pair:
    x, y = _operand(site, x), _operand(site, y)
    return Pair(rule(site, condition, x.real, y.real), rule(site, condition, x.imag, y.imag))


@for_pairs("where.self")
def where(site: Site, condition: Value, x: Any, y: Any):
    return _where(TABLE[site.target], site, condition, x, y)


@for_pairs("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(site: Site, x: Pair, mask: Value, value: Any):
    return _where(TABLE["aten.where.self"], site, mask, value, x)


@for_pairs("pad.default")
def padded(site: Site, x: Pair, widths: Sequence[int], mode: str = "constant", value: Any = None):
    if mode != "constant":
        rule = TABLE[site.target]
        return Pair(rule(site, x.real, widths, mode), rule(site, x.imag, widths, mode))
    return pad(replace(site, target="aten.constant_pad_nd.default"), x, widths, value or 0)


@for_pairs("constant_pad_nd.default")
def pad(site: Site, x: Pair, widths: Sequence[int], value: Any = 0):
    rule = TABLE[site.target]
    number = complex(value)
    return Pair(rule(site, x.real, widths, number.real), rule(site, x.imag, widths, number.imag))


@for_pairs("linear.default")
def linear(site: Site, x: Any, weight: Any, bias: Any = None):
    b, rule = site.builder, TABLE[site.target]
    x, weight = _as_pair(b, x), _as_pair(b, weight)
    product = _product(b, x, weight, lambda one, other: rule(site, one, other))
    return product if bias is None else _sum(b, product, _operand(site, bias))


@for_pairs("addmm.default", "baddbmm.default", "addmv.default")
def addmm(site: Site, added: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1):
    if (beta, alpha) != (1, 1):
        raise Decline("a complex product of matrices with factors")
    b, rule = site.builder, TABLE["aten.matmul.default"]
    x, y = _as_pair(b, x), _as_pair(b, y)
    product = _product(b, x, y, lambda one, other: rule(site, one, other))
    return _sum(b, product, _operand(site, added))


@for_pairs("outer.default", "ger.default")
def outer(site: Site, x: Any, y: Any):
    b, rule = site.builder, TABLE[site.target]
    return _product(b, _as_pair(b, x), _as_pair(b, y), lambda one, other: rule(site, one, other))


# --- questions ---


@for_pairs("eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar")
def equal(site: Site, x: Any, y: Any):
    b = site.builder
    predicate = "eq" if ".eq." in site.target else "ne"
    dtype = next(each.real.dtype for each in (x, y) if isinstance(each, Pair))
    sides = []
    for each in (x, y):
        parts = (each.real, each.imag) if isinstance(each, Pair | complex) else (each, 0.0)
        sides.append([site.operand(part, dtype) for part in parts])
    real, imag = (b.compare(predicate, one, other) for one, other in zip(*sides, strict=True))
    return b.binary("and" if predicate == "eq" else "or", real, imag)


@for_pairs("isnan.default", "isinf.default", "isfinite.default")
def each_kind(site: Site, x: Pair):
    rule = TABLE[site.target]
    joined_by = "and" if ".isfinite." in site.target else "or"
    return site.builder.binary(joined_by, rule(site, x.real), rule(site, x.imag))


@for_pairs("linalg_vector_norm.default")
def norm(site: Site, x: Pair, order: Any = 2, dim: Any = None, keepdim: bool = False, dtype=None):
    rule = TABLE[site.target]
    if order != 2 or keepdim or dtype is not None:
        whole = replace(site, results=[torch.empty(x.shape, dtype=x.real.dtype, device="meta")])
        return rule(site, magnitude(whole, x), order, dim, keepdim, dtype)
    dims = dims_of(dim, len(x.shape))
    return rule(site, join(site.builder, x), order, [*dims, len(x.shape)])


# --- joined and made ---


@for_pairs("cat.default", "concat.default", "stack.default")
def joined(site: Site, tensors: Sequence[Any], dim: int = 0):
    pairs = [_as_pair(site.builder, each) for each in tensors]
    rule = TABLE[site.target]
    return Pair(rule(site, [p.real for p in pairs], dim), rule(site, [p.imag for p in pairs], dim))


@for_pairs(
    *("zeros.default", "zeros_like.default", "new_zeros.default"),
    *("empty.memory_format", "empty_like.default", "new_empty.default"),
)
def zeros(site: Site, *_: Any, **__: Any):
    return _operand(site, 0.0)


@for_pairs("ones.default", "ones_like.default", "new_ones.default")
def ones(site: Site, *_: Any, **__: Any):
    return _operand(site, 1.0)


@for_pairs("full.default", "full_like.default", "new_full.default", "fill.Scalar", "copy.default")
def full(site: Site, _: Any, number: Any, *__: Any, **___: Any):
    """Pairs full of a number, or of the elements of another tensor."""
    return _operand(site, number)


# --- types ---


@for_pairs("to.dtype", "to.dtype_layout", "_to_copy.default", "to.device")
def to(site: Site, x: Any, *_: Any, **__: Any):
    """Casts from reals or between complex types; to reals PyTorch warns of what is discarded."""
    return _operand(site, x)
