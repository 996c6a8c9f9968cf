# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made from nothing but numbers, and triangles of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.numbers import Number
from weft.frontend.table import Site, lowers

# Elements that a graph may hold as numbers.
_MAX_CONSTANT = 4096


@lowers("full.default", "full_like.default", "new_full.default", "scalar_tensor.default")
def full(site: Site, *args, **_):
    return site.builder.constant(_number(site, args[-1]), site.dtype, site.shape)


@lowers("fill.Scalar", "fill.Tensor")
def fill(site: Site, x: Value, value):
    return site.operand(value, site.dtype)


def _number(site: Site, value):
    if (
        type(value) is Number
        or isinstance(value, (bool, int))
        or (isinstance(value, float) and (math.isfinite(value) or is_float(site.dtype)))
    ):
        return value
    raise Decline(f"a tensor filled with {value!r}")


@lowers(
    *("zeros.default", "zeros_like.default", "new_zeros.default"),
    # What is in an empty tensor is nobody's business; zeros are as good as anything.
    *("empty.memory_format", "empty_like.default", "new_empty.default"),
    *("empty_strided.default", "new_empty_strided.default", "empty_permuted.default"),
)
def zeros(site: Site, *_, **__):
    return site.builder.constant(0, site.dtype, site.shape)


@lowers("ones.default", "ones_like.default", "new_ones.default")
def ones(site: Site, *_, **__):
    return site.builder.constant(1, site.dtype, site.shape)


@lowers("arange.default")
def arange(site: Site, end, **_):
    return _arange(site, 0, 1)


@lowers("arange.start", "arange.start_step")
def arange_start(site: Site, start, end, step=1, **_):
    return _arange(site, start, step)


def _arange(site: Site, start, step) -> Value:
    b = site.builder
    if not is_float(site.dtype):
        if not (float(start).is_integer() and float(step).is_integer()):
            raise Decline("arange of integers with a fractional step")
        start, step = int(start), int(step)
    whole = isinstance(start, int) and isinstance(step, int)
    # torch computes start + i * step in the accumulation type: int64 or double.
    dtype = torch.int64 if whole else torch.float64
    numbers = b.iota(torch.int64, site.shape, 0)
    numbers = b.convert(numbers, dtype)
    if step != 1:
        numbers = b.scalar("mul", numbers, step)
    if start != 0 or not whole:  # 0 makes a zero of -0.0
        numbers = b.scalar("add", numbers, start)
    return site.finish(numbers)


@lowers("eye.default", "eye.m")
def eye(site: Site, *_, **__):
    return site.finish(_compare_row_column(site, "eq", 0, site.shape))


@lowers("tril.default", "triu.default")
def triangle(site: Site, x: Value, diagonal=0):
    b = site.builder
    predicate = "ge" if "tril" in site.target else "le"
    kept = _compare_row_column(site, predicate, diagonal, x.shape[-2:])
    return b.select(b.broadcast(kept, x.shape), x, b.constant(0, x.dtype, x.shape))


def _compare_row_column(site: Site, predicate: str, diagonal: int, shape) -> Value:
    """row + diagonal against column."""
    b = site.builder
    row = b.iota(torch.int64, shape, 0)
    if diagonal:
        row = b.scalar("add", row, diagonal)
    return b.compare(predicate, row, b.iota(torch.int64, shape, 1))


@lowers("tril_indices.default", "triu_indices.default")
def triangle_indices(site: Site, row, col, offset=0, **_):
    """Small ones, as constants."""
    make = torch.tril_indices if "tril" in site.target else torch.triu_indices
    return _written_out(site, make, row, col, offset)


@lowers("logspace.default")
def logspace(site: Site, start, end, steps, base=10.0, **_):
    return _written_out(site, torch.logspace, start, end, steps, base)


@lowers(
    *("bartlett_window.default", "bartlett_window.periodic"),
    *("blackman_window.default", "blackman_window.periodic"),
    *("hann_window.default", "hann_window.periodic"),
    *("hamming_window.default", "hamming_window.periodic"),
    *("hamming_window.periodic_alpha", "hamming_window.periodic_alpha_beta"),
    *("kaiser_window.default", "kaiser_window.periodic", "kaiser_window.beta"),
)
def window(site: Site, *args, **_):
    return _written_out(site, site.node.target, *args)


def _written_out(site: Site, make: Callable[..., torch.Tensor], *args) -> Value:
    """What torch makes of numbers, as a constant."""
    if math.prod(site.shape) > _MAX_CONSTANT:
        raise Decline(f"{site.target} of more than {_MAX_CONSTANT} elements")
    if not math.prod(site.shape):
        return site.builder.constant(0, site.dtype, site.shape)
    return site.builder.dense(make(*args, dtype=site.dtype))


@lowers("linspace.default")
def linspace(site: Site, start, end, steps, **_):
    """RangeFactories: from the start in the first half, from the end in the second."""
    b = site.builder
    # torch rounds on the way, differently in each vector.
    rounds = not is_float(site.dtype) or site.dtype != opmath(site.dtype)
    if rounds or steps < 2 or not math.isfinite(end - start):
        return _written_out(site, torch.linspace, start, end, steps)
    n = b.iota(torch.int64, site.shape, 0)
    step = (end - start) / (steps - 1)
    up = b.scalar("add", b.scalar("mul", b.convert(n, torch.float64), step), start)
    back = b.convert(b.scalar("sub", n, steps - 1), torch.float64)
    down = b.scalar("add", b.scalar("mul", back, step), end)
    return site.finish(b.select(b.compare("lt", n, steps // 2), up, down))
