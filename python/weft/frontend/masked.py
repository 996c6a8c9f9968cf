# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements chosen by a mask, whose number only a run knows: all elements, and the mask.

What is done to each element is done to all of them; sums, means and writes back to where a mask
chose them look at the mask. The bound is the number of the mask's elements; nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Graph, Value
from weft.frontend.lowered import Decline
from weft.frontend.strides import is_static
from weft.frontend.table import TABLE, Rule, Site, entering

_RULES: dict[str, Rule] = {}

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


@dataclass(frozen=True)
class Masked:
    """value: (n, *rest), of which those rows count where mask: (n) holds. place: the mask as it was
    given, by which others are known to choose the same."""

    value: Value
    mask: Value
    place: Value


def _masked(*targets: str) -> Callable[[Rule], Rule]:
    return entering(_RULES, targets)


def gives_masked(op: torch._ops.OpOverload, result: Any) -> bool:
    """Whether the call chooses elements by a mask."""
    chooses = op in (torch.ops.aten.index.Tensor, torch.ops.aten.masked_select.default)
    return chooses and not is_static(result)


def lower_masked(
    op: torch._ops.OpOverload, site: Site, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The result of a call on, or giving, chosen elements.

    Raises: Decline, if there is no rule.
    """
    rule = _RULES.get(str(op))
    if rule is None:
        raise Decline(f"a size that {op} gives depends on data")
    return rule(site, *args, **kwargs)


@_masked("index.Tensor")
def chosen(site: Site, x: Any, indices: Sequence[Any]):
    """x[mask]: the mask's dims are the first of x."""
    (mask,) = indices if len(indices) == 1 else (None,)
    if not isinstance(x, Value) or not isinstance(mask, Value) or mask.dtype != torch.bool:
        raise Decline("elements chosen by more than a leading mask")
    b, rest = site.builder, x.shape[mask.rank :]
    value = b.reshape(x, (mask.size, *rest))
    return Masked(value, b.reshape(mask, (mask.size,)), mask)


@_masked("masked_select.default")
def selected(site: Site, x: Value, mask: Value):
    b = site.builder
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    return chosen(site, b.broadcast(x, shape), [b.broadcast(mask, shape)])


def _each_element(site: Site, *args: Any, **kwargs: Any):
    all_masked = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, Masked)]
    first = all_masked[0]
    for other in all_masked[1:]:
        if not _same(site.builder.graph, first.place, other.place):
            raise Decline("elements chosen by two masks")
        if other.value.shape != first.value.shape:
            raise Decline("chosen elements of two shapes")
    for each in pytree.tree_leaves((args, kwargs)):
        if isinstance(each, Value) and each.rank >= first.value.rank:
            raise Decline("chosen elements beside a tensor of as many dims")
    args, kwargs = pytree.tree_map_only(Masked, lambda each: each.value, (args, kwargs))
    dtype = site.results[0].dtype
    results = [torch.empty(first.value.shape, dtype=dtype, device="meta")]
    value = TABLE[site.target](replace(site, results=results), *args, **kwargs)
    return replace(first, value=value)


_masked(*_EACH_ELEMENT)(_each_element)


def _counted(site: Site, x: Masked) -> Value:
    """What sums are to add up: nothing where the mask does not hold."""
    b = site.builder
    mask = b.along(x.mask, 0, x.value.shape)
    return b.select(mask, x.value, b.constant(0, x.value.dtype, x.value.shape))


@_masked("sum.default", "sum.dim_IntList")
def total(site: Site, x: Masked, dim: Any = None, keepdim: bool = False, *, dtype: Any = None):
    if dim and 0 not in (d % x.value.rank for d in dim):
        raise Decline("a sum of each chosen row")
    args = (dim, keepdim) if dim else ()
    return TABLE[site.target](site, _counted(site, x), *args, dtype=dtype)


@_masked("mean.default")
def average(site: Site, x: Masked, *, dtype: Any = None):
    """Added up and divided in the type that torch computes in, rounded once."""
    if not is_float(x.value.dtype) or dtype is not None:
        raise Decline(f"a mean of chosen {x.value.dtype}")
    b = site.builder
    rows = b.reduce("sum", b.convert(x.mask, torch.int64), [0])
    elements = b.scalar("mul", rows, x.value.size // max(x.mask.size, 1))
    wide = b.convert(_counted(site, x), opmath(x.value.dtype))
    whole = b.reduce("sum", wide, list(range(wide.rank)))
    return site.finish(b.binary("div", whole, b.convert(elements, whole.dtype)))


@_masked("index_put.default")
def put(site: Site, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False):
    """y[mask] = f(x[mask]) of one mask: a choice between the two."""
    (mask,) = indices if len(indices) == 1 else (None,)
    if not isinstance(values, Masked) or not isinstance(x, Value) or accumulate:
        raise Decline("a write of, or to, chosen elements")
    if not isinstance(mask, Value) or not _same(site.builder.graph, mask, values.place):
        raise Decline("elements chosen by one mask and written by another")
    b = site.builder
    value = b.reshape(b.convert(values.value, x.dtype), x.shape)
    leading = b.broadcast_in_dim(mask, list(range(mask.rank)), x.shape)
    return b.select(leading, value, x)


def _same(graph: Graph, one: Value, other: Value, depth: int = 4) -> bool:
    """Whether two values are computed alike, as the mask of `x[x > 0] = f(x[x > 0])` is twice."""
    if one is other:
        return True
    makers = [
        next((node for node in graph.nodes if any(each is v for v in node.results)), None)
        for each in (one, other)
    ]
    if depth == 0 or any(maker is None for maker in makers):
        return False
    x, y = makers
    if (x.op, x.attrs, len(x.operands)) != (y.op, y.attrs, len(y.operands)):
        return False
    if x.op == "weft.torch_fallback":
        return False
    if [r is one for r in x.results] != [r is other for r in y.results]:
        return False
    types = [[(r.dtype, r.shape) for r in node.results] for node in (x, y)]
    operands = zip(x.operands, y.operands)
    return types[0] == types[1] and all(_same(graph, a, b, depth - 1) for a, b in operands)
