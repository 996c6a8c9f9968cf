# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for what is done to each chosen element, or to each chosen row, and for choosing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.fallback import flatten_results
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked, same_value
from weft.frontend.table import TABLE, Site

# Rules whose results are functions of the operands' elements at the same place.
_EACH_ELEMENT = (
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Scalar", "rsub.Scalar"),
    *("neg.default", "abs.default", "exp.default", "log.default", "sqrt.default", "rsqrt.default"),
    *("square.default", "tanh.default", "sigmoid.default", "relu.default", "clamp.default"),
    *("log1p.default", "expm1.default", "sin.default", "cos.default", "reciprocal.default"),
    *("maximum.default", "minimum.default", "gelu.default", "silu.default", "clone.default"),
    *("gt.Scalar", "ge.Scalar", "lt.Scalar", "le.Scalar", "eq.Scalar", "ne.Scalar"),
    *("gt.Tensor", "ge.Tensor", "lt.Tensor", "le.Tensor", "eq.Tensor", "ne.Tensor"),
    *("to.dtype", "_to_copy.default", "detach.default", "contiguous.default"),
)

# Rules whose results' rows are functions of the operand's rows at the same place.
_EACH_ROW = (
    *("amax.default", "amin.default", "max.dim", "min.dim", "argmax.default", "argmin.default"),
    *("mean.dim", "softmax.int", "log_softmax.int", "slice.Tensor", "unsqueeze.default"),
    *("any.dim", "all.dim", "prod.dim_int"),
)


@masked("index.Tensor")
def chosen(site: Site, x: Any, indices: Sequence[Any]):
    """x[mask], where the mask's dims are the first of x; x[places], where a mask chose these."""
    if any(isinstance(each, Masked) for each in indices):
        return _found_at(site, x, indices)
    dim, mask = len(indices) - 1, indices[-1]
    if any(each is not None for each in indices[:-1]) or mask.dtype != torch.bool:
        raise Decline("elements chosen by more than a mask")
    b = site.builder
    value = b.reshape(x, (*x.shape[:dim], mask.size, *x.shape[dim + mask.rank :]))
    return Masked(value, b.reshape(mask, (mask.size,)), mask, dim)


def _found_at(site: Site, x: Any, indices: Sequence[Any]) -> Masked:
    first = next(each for each in indices if isinstance(each, Masked))
    if not isinstance(x, Value) or indices[0] is not first or None in indices:
        raise Decline("elements at places that a mask chooses, behind others")
    graph = site.builder.graph
    for each in indices:
        if not isinstance(each, Masked) or not same_value(graph, first.place, each.place):
            raise Decline("elements at places that two masks choose")
        if each.value.rank != 1 or each.value.dtype == torch.bool or 0 in x.shape[: len(indices)]:
            raise Decline("elements at places that a mask chooses, of another kind")
    return first.holding(_taken(site, x, indices))


def _taken(site: Site, x: Value, indices: Sequence[Masked]) -> Value:
    """Rows that do not count are taken from place 0: their own may lie anywhere."""
    b = site.builder
    places = [
        b.select(each.mask, each.value, b.constant(0, each.value.dtype, each.value.shape))
        for each in indices
    ]
    shape = (*places[0].shape, *x.shape[len(places) :])
    results = [torch.empty(shape, dtype=x.dtype, device="meta")]
    return TABLE["aten.index.Tensor"](replace(site, results=results), x, places)


@masked("index_select.default")
def rows_at(site: Site, x: Any, dim: int, index: Any):
    if not isinstance(x, Value) or dim % max(x.rank, 1):
        raise Decline("columns at places that a mask chooses")
    return _found_at(site, x, [index])


@masked("masked_select.default")
def selected(site: Site, x: Value, mask: Value):
    b = site.builder
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    return chosen(site, b.broadcast(x, shape), [b.broadcast(mask, shape)])


def _each_element(site: Site, *args: Any, **kwargs: Any):
    all_masked = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, Masked)]
    first = all_masked[0]
    for other in all_masked[1:]:
        if not same_value(site.builder.graph, first.place, other.place):
            raise Decline("elements chosen by two masks")
        if other.value.shape != first.value.shape or other.dim != first.dim:
            raise Decline("chosen elements of two shapes")
    for each in pytree.tree_leaves((args, kwargs)):
        if isinstance(each, Value) and each.rank >= first.value.rank:
            raise Decline("chosen elements beside a tensor of as many dims")
    args, kwargs = pytree.tree_map_only(Masked, lambda each: each.value, (args, kwargs))
    dtype = site.results[0].dtype
    results = [torch.empty(first.value.shape, dtype=dtype, device="meta")]
    value = TABLE[site.target](replace(site, results=results), *args, **kwargs)
    return first.holding(value)


masked(*_EACH_ELEMENT)(_each_element)


def each_row(site: Site, x: Any, *args: Any, **kwargs: Any):
    """What is done to each row alone: the result has the rows of x."""
    rows = site.node.args[0].meta["val"].shape[0]
    results = flatten_results(site.results)
    others = pytree.tree_leaves((args, kwargs))
    if not isinstance(x, Masked) or any(isinstance(each, Masked) for each in others):
        raise Decline(f"{site.target} of two choices")
    if x.dim:
        raise Decline(f"{site.target} beside chosen columns")
    if any(str(each.shape[:1]) != str(torch.Size([rows])) for each in results):
        raise Decline(f"a size that {site.target} gives depends on data")
    if "softmax" in site.target and args[0] % x.value.rank == 0:
        raise Decline(f"{site.target} along chosen rows")
    shapes = [(x.mask.size, *each.shape[1:]) for each in results]
    if not all(isinstance(size, int) for shape in shapes for size in shape):
        raise Decline(f"a size that {site.target} gives depends on data")
    made = [
        torch.empty(shape, dtype=each.dtype, device="meta") for each, shape in zip(results, shapes)
    ]
    values = TABLE[site.target](replace(site, results=made), x.value, *args, **kwargs)
    if isinstance(values, tuple):
        return [x.holding(value) for value in values]
    return x.holding(values)


masked(*_EACH_ROW)(each_row)


@masked("index_put.default")
def put(site: Site, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False):
    """y[mask] = f(x[mask]) of one mask: a choice between the two."""
    (mask,) = indices if len(indices) == 1 else (None,)
    if not isinstance(values, Masked) or not isinstance(x, Value) or accumulate or values.dim:
        raise Decline("a write of, or to, chosen elements")
    if not isinstance(mask, Value) or not same_value(site.builder.graph, mask, values.place):
        raise Decline("elements chosen by one mask and written by another")
    b = site.builder
    value = b.reshape(b.convert(values.value, x.dtype), x.shape)
    leading = b.broadcast_in_dim(mask, list(range(mask.rank)), x.shape)
    return b.select(leading, value, x)
