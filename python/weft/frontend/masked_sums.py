# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for sums, means, spreads and extremes over chosen elements, and for their number."""

from __future__ import annotations

from typing import Any

import torch

from weft.frontend.dtypes import identity, is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked
from weft.frontend.masked_elements import each_row
from weft.frontend.table import TABLE, Site


def _counted(site: Site, x: Masked, otherwise: bool | int | float = 0) -> Value:
    """The value, with `otherwise` where the mask does not hold."""
    b = site.builder
    mask = b.along(x.mask, x.dim, x.value.shape)
    return b.select(mask, x.value, b.constant(otherwise, x.value.dtype, x.value.shape))


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


def _rows(site: Site, x: Masked) -> Value:
    """int64 (): how many rows are chosen."""
    return site.builder.reduce("sum", site.builder.convert(x.mask, torch.int64), [0])


def _number(site: Site, x: Masked) -> Value:
    """int64 (): how many elements are chosen."""
    return site.builder.scalar("mul", _rows(site, x), x.value.size // max(x.mask.size, 1))


@masked("sym_numel.default")
def number(site: Site, x: Masked):
    return _number(site, x)


@masked("sym_size.int")
def rows(site: Site, x: Masked, dim: int):
    if dim % x.value.rank != x.dim:
        return x.value.shape[dim]
    return _rows(site, x)


@masked("max.default", "min.default")
def extreme(site: Site, x: Masked):
    """PyTorch refuses to look for one among none."""
    b = site.builder
    name = "max" if site.target == "aten.max.default" else "min"
    b.check(
        b.compare("gt", _number(site, x), 0),
        f"RuntimeError: {name}(): Expected reduction dim to be specified for input.numel() == 0. "
        "Specify the reduction dim with the 'dim' argument.",
    )
    return TABLE[site.target](site, _counted(site, x, identity(name, x.value.dtype)))


@masked("std.correction", "var.correction")
def spread(site: Site, x: Masked, dim: Any = None, *, correction: Any = None, keepdim=False):
    """In float64, in two passes, as of all elements (`moments` in ops/reduce.py)."""
    if dim is not None or keepdim or not is_float(x.value.dtype):
        raise Decline("a variance of each chosen row")
    b, exact = site.builder, x.value.dtype != torch.float64
    value = b.convert(x.value, torch.float64)
    dims = list(range(value.rank))

    def summed(each: Value) -> Value:
        return b.reduce("sum", _counted(site, x.holding(each)), dims)

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
