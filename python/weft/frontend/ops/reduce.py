# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, arg-reductions, running reductions, softmax and norms of vectors."""

from __future__ import annotations

import math
import sys

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.ops.logic import truth
from weft.frontend.table import Site, dim_of, dims_of, lowers

_MOST_COMPARISONS = 2**22  # of a histogram: each element with each part


def accumulated(site: Site, x: Value) -> Value:
    """x in the type in which torch accumulates towards the result's type."""
    return site.builder.convert(x, opmath(site.dtype))


@lowers("sum.default", "sum.dim_IntList", "prod.default", "prod.dim_int")
def sum_or_prod(site: Site, x: Value, dim=None, keepdim=False, dtype=None):
    kind = site.target.split(".")[1]
    dims, subgradient = dims_of(dim, x.rank), "zero" if site.target == "aten.prod.default" else ""
    x = accumulated(site, x)
    if x.dtype == torch.bool:
        kind = {"sum": "any", "prod": "all"}[kind]
    if kind == "sum":
        return site.finish(sum_of(site, x, dims, keepdim))
    return site.finish(site.builder.reduce(kind, x, dims, keepdim, subgradient))


def sum_of(site: Site, x: Value, dims: list[int], keep: bool) -> Value:
    """Added to zero, so that none is a negative zero, nor that of a tensor without dims."""
    b = site.builder
    if x.rank or not is_float(x.dtype):
        return b.reduce("sum", x, dims, keep)
    return b.reduce("sum", b.reshape(x, [1]), [0])


@lowers("nansum.default")
def nansum(site: Site, x: Value, dim=None, keepdim=False, dtype=None):
    """The sum without NaNs. The slope of a NaN is zero times the cotangent."""
    b = site.builder
    if dim is not None and not dim and x.rank:
        # All dims for the kernel, none for torch's shape function.
        raise Unsupported("a nansum along no dims", b.graph.location)
    x, dims = accumulated(site, x), dims_of(dim, x.rank)
    if not is_float(x.dtype):
        kind = "any" if x.dtype == torch.bool else "sum"
        return site.finish(b.reduce(kind, x, dims, keepdim))
    is_number = b.compare("eq", x, x)
    zero, one = (b.constant(number, x.dtype, x.shape) for number in (0, 1))
    counted = b.select(is_number, x, zero)
    if b.graph.training:
        counted = b.with_slopes(counted, (x, b.select(is_number, one, zero)))
    return site.finish(sum_of(site, counted, dims, keepdim))


@lowers("mean.default", "mean.dim")
def mean(site: Site, x: Value, dim=None, keepdim=False, dtype=None):
    dims = dims_of(dim, x.rank)
    return site.finish(mean_of(site, accumulated(site, x), dims, keepdim))


def mean_of(site: Site, x: Value, dims: list[int], keep: bool) -> Value:
    return site.builder.scalar("div", sum_of(site, x, dims, keep), count(x, dims))


def count(x: Value, dims: list[int]) -> int:
    return math.prod(x.shape[dim] for dim in dims)


@lowers("amax.default", "amin.default")
def amax(site: Site, x: Value, dim=(), keepdim=False):
    return _extreme(site, x, dims_of(dim, x.rank), keepdim)


@lowers("max.default", "min.default")
def max_all(site: Site, x: Value):
    return _extreme(site, x, dims_of(None, x.rank), subgradient="one")


@lowers("max.dim", "min.dim")
def max_dim(site: Site, x: Value, dim, keepdim=False):
    values = _extreme(site, x, dims_of(dim, x.rank), keepdim, "first")
    return values, _arg_reduce(site, _extremum(site), x, dim, keepdim)


def _extremum(site: Site) -> str:
    return "max" if "max" in site.target else "min"


def _extreme(
    site: Site, x: Value, dims: list[int], keepdim: bool = False, subgradient: str = ""
) -> Value:
    kind = _extremum(site)
    if x.dtype == torch.bool:
        kind = "any" if kind == "max" else "all"
    return site.builder.reduce(kind, x, dims, keepdim, subgradient)


@lowers("argmax.default", "argmin.default")
def argmax(site: Site, x: Value, dim=None, keepdim=False):
    b, kind = site.builder, _extremum(site)
    if dim is None:
        flat = b.arg_reduce(kind, b.reshape(x, [x.size]), 0)
        return b.reshape(flat, [1] * x.rank) if keepdim else flat
    return _arg_reduce(site, kind, x, dim, keepdim)


def _arg_reduce(site: Site, kind: str, x: Value, dim: int, keep: bool) -> Value:
    b = site.builder
    if not x.rank:
        return b.constant(0, torch.int64)
    dim = dim_of(dim, x.rank)
    number = b.convert(x, torch.uint8) if x.dtype == torch.bool else x
    result = b.arg_reduce(kind, number, dim)
    if not keep:
        return result
    return b.reshape(result, [1 if d == dim else n for d, n in enumerate(x.shape)])


@lowers(
    *("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims"),
    *("_is_all_true.default", "_is_any_true.default"),
)
def any_or_all(site: Site, x: Value, dim=None, keepdim=False):
    if dim is not None and dim == []:
        return site.finish(truth(site, x))  # along no dims, unlike sums
    kind = site.target.split(".")[1].removeprefix("_is_").removesuffix("_true")
    reduced = site.builder.reduce(kind, truth(site, x), dims_of(dim, x.rank), keepdim)
    return site.finish(reduced)


@lowers(
    *("var.default", "var.dim", "var.correction"),
    *("std.default", "std.dim", "std.correction"),
    *("var_mean.correction", "std_mean.correction"),
)
def var(site: Site, x: Value, *args, unbiased=None, correction=None, keepdim=False):
    dim, args = _dims_and_flags(site, args)
    unbiased, keepdim = (*args, *(unbiased, keepdim)[len(args) :])
    if unbiased is not None:
        correction = int(unbiased)
    b, dims = site.builder, dims_of(dim, x.rank)
    if b.graph.training and dim == []:
        # Over all dims, but PyTorch's derivative divides by the degrees of freedom of one element.
        raise Decline("gradients are wanted of a variance along no dims")
    correction = 1 if correction is None else correction
    average, variance = moments(site, x, dims, correction)
    if b.graph.training and x.size and (degrees := count(x, dims) - correction) > 0:
        # Where the mean is infinite the others have an infinite slope.
        wide = b.convert(x, average.dtype)
        kept = b.reshape(average, [1 if d in dims else n for d, n in enumerate(x.shape)])
        centred = b.binary("sub", wide, b.broadcast(kept, x.shape))
        slope = b.binary("mul", centred, _twice_over(b, degrees, centred))
        variance = b.with_slopes(variance, (wide, slope), dims=dims)
    if "_mean" in site.target:
        average = _by_steps(site, x, dims, average)
    if "std" in site.target:
        variance = b.unary("sqrt", variance, "zero")
    kept = [1 if d in dims else n for d, n in enumerate(x.shape)] if keepdim else None
    results = [v if kept is None else b.reshape(v, kept) for v in (variance, average)]
    results = [site.finish(v) for v in results]
    return tuple(results) if "_mean" in site.target else results[0]


def _twice_over(b: Builder, degrees: float, like: Value) -> Value:
    """2 / degrees, which depend on a size."""
    if degrees == int(degrees):
        return b.quotient(2, int(degrees), like.dtype, like.shape)
    return b.constant(2 / degrees, like.dtype, like.shape)


def _by_steps(site: Site, x: Value, dims: list[int], average: Value) -> Value:
    """Welford's steps leave an infinite mean again by minus infinity, unless there is none left
    behind the only infinity."""
    b = site.builder
    if not x.size:
        return average
    last = b.convert(x, average.dtype)
    infinite = b.unary("not", b.compare("lt", b.unary("abs", last), math.inf))
    counted = b.reduce("sum", b.convert(infinite, torch.int32), dims)
    for dim in dims:
        last = b.slice(last, dim, x.shape[dim] - 1, x.shape[dim])
    last = b.reshape(last, average.shape)
    ends = b.unary("not", b.compare("lt", b.unary("abs", last), math.inf))
    nan = b.constant(math.nan, average.dtype, average.shape)
    kept = b.select(b.binary("and", ends, b.compare("eq", counted, 1)), last, nan)
    return b.select(b.compare("lt", b.unary("abs", average), math.inf), average, kept)


def _dims_and_flags(site: Site, args: tuple) -> tuple:
    """var.default(x, unbiased), var.dim(x, dim, unbiased, keepdim), var.correction(x, dim)."""
    if site.target.endswith(".default"):
        return None, args
    return (args[0] if args else None), args[1:]


def moments(site: Site, x: Value, dims: list[int], correction: float) -> tuple[Value, Value]:
    """Mean and variance over dims in float64, as torch's Welford steps are: squares that float32
    does not hold have a root that it holds. Two passes; the mean of what the first leaves is what
    it lacked (T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983).
    """
    b = site.builder
    x, exact = b.convert(x, torch.float64), x.dtype != torch.float64
    mean_kept = mean_of(site, x, dims, True)
    centred = b.binary("sub", x, b.broadcast(mean_kept, x.shape))
    squares = b.reduce("sum", b.binary("mul", centred, centred), dims)
    if not exact:
        rest = b.reduce("sum", centred, dims)
        lacking = b.scalar("div", b.binary("mul", rest, rest), count(x, dims))
        # Sums that float64 does not hold stay infinite. What is left of the mean is zero but for
        # rounding, whatever x is, and has no slope.
        lacking = b.detached(b.scalar("min", lacking, sys.float_info.max))
        squares = b.binary("sub", squares, lacking)
    divisor = max(count(x, dims) - correction, 0) if count(x, dims) else 0
    return b.reshape(mean_kept, squares.shape), b.scalar("div", squares, divisor)


@lowers("cumsum.default", "cumprod.default")
def cumulative(site: Site, x: Value, dim, dtype=None):
    kind = "sum" if "cumsum" in site.target else "prod"
    x = accumulated(site, x)
    if not x.rank:
        return site.finish(x)
    if x.dtype == torch.uint8:  # the dialect accumulates signed integers
        x = site.builder.convert(x, torch.int32)
    result = site.builder.cumulative(kind, x, dim_of(dim, x.rank))
    if kind == "sum" and is_float(x.dtype):  # sums begin with 0, which makes a zero of -0.0
        result = site.builder.scalar("add", result, 0.0)
    return site.finish(result)


@lowers("cummax.default", "cummin.default")
def extremes_so_far(site: Site, x: Value, dim):
    """And where they stood: of equal ones the last; from the first NaN on NaNs alone count."""
    b = site.builder
    if not x.rank:
        return x, b.constant(0, torch.int64)
    dim = dim_of(dim, x.rank)
    if x.dtype in (torch.bool, torch.uint8):
        raise Decline(f"{site.target} of {x.dtype}")
    values = b.cumulative("max" if "cummax" in site.target else "min", x, dim)
    holds = b.compare("eq", x, values)
    if is_float(x.dtype):
        holds = b.binary("or", holds, b.compare("ne", x, x))
    candidates = b.select(
        holds, b.iota(torch.int64, x.shape, dim), b.constant(0, torch.int64, x.shape)
    )
    return values, b.cumulative("max", candidates, dim)


@lowers(
    *("softmax.int", "_softmax.default", "_safe_softmax.default", "special_softmax.int"),
    *("log_softmax.int", "_log_softmax.default", "special_log_softmax.int"),
)
def softmax(site: Site, x: Value, dim, *_, **__):
    b, log = site.builder, "log_softmax" in site.target
    if not is_float(site.dtype):
        raise Decline(f"softmax of {site.dtype}")
    x = b.convert(x, site.dtype)
    if not x.rank:
        return b.reshape(b.softmax(b.reshape(x, [1]), 0, log), [])
    dim = dim_of(dim, x.rank)
    if "_safe_softmax" not in site.target:
        return b.softmax(x, dim, log)
    hidden = b.reduce("all", b.compare("eq", x, -math.inf), [dim], True)
    hidden = b.broadcast(hidden, x.shape)
    zero = b.constant(0.0, x.dtype, x.shape)
    # The softmax of a hidden row has a slope only where it is a number.
    return b.select(hidden, zero, b.softmax(b.select(hidden, zero, x), dim))


@lowers("logsumexp.default")
def logsumexp(site: Site, x: Value, dim, keepdim=False):
    b, dims = site.builder, dims_of(dim, x.rank)
    x = accumulated(site, x)
    with b.graph.constant_to_derivative():  # what is taken off is added again
        top = b.reduce("max", x, dims, True)
        infinite = b.compare("eq", b.unary("abs", top), math.inf)
        top = b.select(infinite, b.constant(0.0, top.dtype, top.shape), top)
    powers = b.unary("exp", b.binary("sub", x, b.broadcast(top, x.shape)))
    total = b.unary("log", b.reduce("sum", powers, dims, True))
    value = b.binary("add", total, top)
    if b.graph.training and x.size:
        # The parts' own slope is no number beside an infinity.
        slope = b.unary("exp", b.binary("sub", x, b.broadcast(value, x.shape)))
        reduced = [n for d, n in enumerate(x.shape) if d not in dims]
        value = b.with_slopes(b.reshape(value, reduced), (x, slope), dims=dims)
    return site.finish(b.reshape(value, site.shape))


@lowers("linalg_vector_norm.default")
def vector_norm(site: Site, x: Value, order=2, dim=None, keepdim=False, dtype=None):
    if order == 0 and site.builder.graph.training and not site.builder.graph.constant:
        # Autograd comes to x, and gives it no gradient, not even zeros.
        raise Unsupported("a norm of order zero has no gradient", site.builder.graph.location)
    return site.finish(norm_of(site, accumulated(site, x), order, dims_of(dim, x.rank), keepdim))


def norm_of(site: Site, x: Value, order: float, dims: list[int], keepdim: bool) -> Value:
    b = site.builder
    if order == 2 and count(x, dims) != 1:
        total = b.reduce("sum", b.binary("mul", x, x), dims, keepdim)
        return b.unary("sqrt", total, "zero")
    size = b.unary("abs", x)
    # PyTorch does not raise a single element to a power and back.
    if order in (math.inf, -math.inf) or (order != 0 and count(x, dims) == 1):
        return b.reduce("max" if order > 0 else "min", size, dims, keepdim, "one")
    if order == 0:
        size = b.convert(b.compare("ne", x, 0), x.dtype)
    if order in (0, 1):
        return b.reduce("sum", size, dims, keepdim)
    total = b.reduce("sum", b.scalar("pow", size, order), dims)
    value = b.scalar("pow", total, 1 / order)
    if b.graph.training and x.size:
        # The slope's own slope is that of the norm in it.
        sloping = b.with_slopes(value, (x, _norm_slope(site, x, value, order, dims)), dims=dims)
        value = b.with_slopes(value, (x, _norm_slope(site, x, sloping, order, dims)), dims=dims)
    kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
    return b.reshape(value, kept) if keepdim else value


def _norm_slope(site: Site, x: Value, value: Value, order: float, dims: list[int]) -> Value:
    """norm_backward of torch's FunctionsManual.cpp: none at zero."""
    b = site.builder
    zero, one = (b.constant(number, x.dtype, x.shape) for number in (0, 1))
    kept = b.reshape(value, [1 if d in dims else n for d, n in enumerate(x.shape)])
    whole = b.broadcast(kept, x.shape)
    is_zero = b.compare("eq", x if order < 1 else whole, 0)
    size = b.unary("abs", x)
    if order < 2:
        size = b.select(is_zero, one, size) if order < 1 else size
        scaled = b.binary("mul", b.unary("sign", x), b.scalar("pow", size, order - 1))
    else:
        scaled = b.binary("mul", x, b.scalar("pow", size, order - 2))
    if order < 1:
        return b.binary("mul", b.select(is_zero, zero, scaled), b.scalar("pow", whole, 1 - order))
    divisor = b.scalar("pow", b.select(is_zero, one, whole), order - 1)
    return b.select(is_zero, zero, b.binary("div", scaled, divisor))


@lowers("renorm.default")
def renorm(site: Site, x: Value, order, dim, largest):
    """The norm of slices that stay as they are has no slope, which zero times would be no number.

    Raises: Decline, where the gradients' sums are wider than what they are of."""
    b, wide = site.builder, accumulated(site, x)
    if b.graph.training and wide.dtype != site.dtype:
        raise Decline(f"gradients of renorm of {site.dtype}")
    dims = [d for d in range(x.rank) if d != dim_of(dim, x.rank)]
    norm = norm_of(site, wide, order, dims, True)
    is_longer = b.compare("gt", norm, largest)
    if b.graph.training:
        zero = b.constant(0, x.dtype, x.shape)
        longer = b.select(b.broadcast(is_longer, x.shape), x, zero)
        norm = norm_of(site, longer, order, dims, True)
    limit, one = (b.constant(number, wide.dtype, norm.shape) for number in (largest, 1))
    factor = b.select(is_longer, b.binary("div", limit, b.scalar("add", norm, 1e-7)), one)
    factor = b.broadcast(site.as_stored(factor), x.shape)
    return site.finish(b.binary("mul", wide, factor))


@lowers("norm.ScalarOpt_dim", "norm.Scalar")
def norm(site: Site, x: Value, order=2, dim=None, keepdim=False):
    return vector_norm(site, x, 2 if order is None else order, dim, keepdim)


@lowers("histc.default")
def histc(site: Site, x: Value, bins: int = 100, low=0, high=0):
    """How many elements fall into each of `bins` equal parts of low...high."""
    if low >= high or x.dtype != torch.float32 or bins * x.size > _MOST_COMPARISONS:
        raise Decline(f"{x.size} elements between {low} and {high} in {bins} parts")
    b = site.builder
    x = b.reshape(x, [1, x.size])
    # As torch has them: both ends are rounded, and so is what lies between.
    ends = torch.tensor([low, high], dtype=x.dtype)
    low, high, extent = *ends.tolist(), (ends[1] - ends[0]).item()
    if extent == 0:
        raise Decline("an interval without extent")
    part = b.scalar("div", b.scalar("mul", b.scalar("sub", x, low), bins), extent)
    # The last part has both of its ends.
    part = b.scalar("min", b.unary("trunc", part), bins - 1)
    inside = b.binary("and", b.compare("ge", x, low), b.compare("le", x, high))
    part = b.select(inside, part, b.constant(-1, x.dtype, x.shape))
    shape = [bins, x.size]
    found = b.compare(
        "eq", b.broadcast(part, shape), b.convert(b.iota(torch.int32, shape, 0), x.dtype)
    )
    return site.finish(b.reduce("sum", b.convert(found, x.dtype), [1]))
