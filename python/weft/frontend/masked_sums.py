# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for sums, means, spreads and extremes over chosen elements, and for their number."""

from __future__ import annotations

from typing import Any

import torch

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked
from weft.frontend.masked_elements import each_row
from weft.frontend.table import TABLE, Site


def _counted(site: Site, x: Masked) -> Value:
    """What sums are to add up: nothing where the mask does not hold."""
    b = site.builder
    mask = b.along(x.mask, x.dim, x.value.shape)
    return b.select(mask, x.value, b.constant(0, x.value.dtype, x.value.shape))


@masked("sum.default", "sum.dim_IntList")
def total(site: Site, x: Masked, dim: Any = None, keepdim: bool = False, *, dtype: Any = None):
    if dim and x.dim not in (d % x.value.rank for d in dim):
        return each_row(site, x, dim, keepdim, dtype=dtype)
    args = (dim, keepdim) if dim else ()
    return TABLE[site.target](site, _counted(site, x), *args, dtype=dtype)


@masked("mean.default")
def average(site: Site, x: Masked, *, dtype: Any = None):
    """Added up and divided in the type that torch computes in, rounded once."""
    if not is_float(x.value.dtype) or dtype is not None:
        raise Decline(f"a mean of chosen {x.value.dtype}")
    b = site.builder
    elements = _number(site, x)
    wide = b.convert(_counted(site, x), opmath(x.value.dtype))
    whole = b.reduce("sum", wide, list(range(wide.rank)))
    return site.finish(b.binary("div", whole, b.convert(elements, whole.dtype)))


def _number(site: Site, x: Masked) -> Value:
    """int64 (): how many elements are chosen."""
    b = site.builder
    rows = b.reduce("sum", b.convert(x.mask, torch.int64), [0])
    return b.scalar("mul", rows, x.value.size // max(x.mask.size, 1))


@masked("sym_numel.default")
def number(site: Site, x: Masked):
    return _number(site, x)


@masked("sym_size.int")
def rows(site: Site, x: Masked, dim: int):
    if dim % x.value.rank != x.dim:
        return x.value.shape[dim]
    return site.builder.reduce("sum", site.builder.convert(x.mask, torch.int64), [0])


@masked("max.default", "min.default")
def extreme(site: Site, x: Masked):
    """PyTorch refuses to look for one among none."""
    b, dtype = site.builder, x.value.dtype
    name = "max" if site.target == "aten.max.default" else "min"
    b.check(
        b.compare("gt", _number(site, x), 0),
        f"RuntimeError: {name}(): Expected reduction dim to be specified for input.numel() == 0. "
        "Specify the reduction dim with the 'dim' argument.",
    )
    others = _least(dtype) if name == "max" else _largest(dtype)
    mask = b.along(x.mask, x.dim, x.value.shape)
    found = b.select(mask, x.value, b.constant(others, dtype, x.value.shape))
    return TABLE[site.target](site, found)


@masked("std.correction", "var.correction")
def spread(site: Site, x: Masked, dim: Any = None, *, correction: Any = None, keepdim=False):
    """In float64, in two passes, as of all elements (`moments` in ops/reduce.py)."""
    if dim is not None or keepdim or not is_float(x.value.dtype):
        raise Decline("a variance of each chosen row")
    b, exact = site.builder, x.value.dtype != torch.float64
    value = b.convert(x.value, torch.float64)
    mask = b.along(x.mask, x.dim, value.shape)
    nothing = b.constant(0, torch.float64, value.shape)
    dims = list(range(value.rank))

    def summed(each: Value) -> Value:
        return b.reduce("sum", b.select(mask, each, nothing), dims)

    elements = b.convert(_number(site, x), torch.float64)
    mean = b.binary("div", summed(value), elements)
    centred = b.binary("sub", value, b.broadcast(mean, value.shape))
    squares = summed(b.binary("mul", centred, centred))
    if not exact:
        rest = summed(centred)
        squares = b.binary("sub", squares, b.binary("div", b.binary("mul", rest, rest), elements))
    less = b.scalar("sub", elements, 1 if correction is None else correction)
    variance = b.binary("div", squares, b.scalar("max", less, 0))
    return site.finish(b.unary("sqrt", variance, "zero") if "std" in site.target else variance)


def _least(dtype: torch.dtype) -> Any:
    return float("-inf") if is_float(dtype) else _limits(dtype)[0]


def _largest(dtype: torch.dtype) -> Any:
    return float("inf") if is_float(dtype) else _limits(dtype)[1]


def _limits(dtype: torch.dtype) -> tuple[Any, Any]:
    if dtype == torch.bool:
        return False, True
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max
