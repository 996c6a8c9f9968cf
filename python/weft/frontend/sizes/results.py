# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program for a range returns: which elements of padded results count, and where these and
views of them lie in memory, as functions of the symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.frontend.lowered import OutputTarget, Product, SizedLayout, Valid, ViewOf
from weft.frontend.sizes.extents import Dim, is_static, size_of
from weft.frontend.sizes.numbers import factors_of

if TYPE_CHECKING:
    from weft.frontend.sizes.padding import Padding

# Of the leaves of the value returned: strides and offset of each, None of what is no tensor.
Layouts = Sequence[tuple[tuple[int, ...], int] | None]
_MOST_FACTORS = 2  # of a stride, beside a number


def output(p: Padding, same: Sequence[OutputTarget]) -> OutputTarget:
    """same: of each sample. Raises: NotForRange."""
    base = same[0]
    for other in same[1:]:
        facts = [(o.kind, o.index, o.result, o.view is None) for o in (base, other)]
        if (
            facts[0] != facts[1]
            or base.value != other.value
            or type(base.value) is not type(other.value)
        ):
            p.refuse("a result depends on a size and is no tensor")
    if base.chosen is not None:
        p.refuse("the call returns chosen elements")
    if base.view is not None:
        of = base.view.base
        is_padded = not isinstance(of, int) and of.kind == "user" and of.index in p.padded
        sized = _view(p, [each.view for each in same if each.view is not None])
        return replace(base, view=sized, is_original=is_padded)
    if base.result is None:
        return base
    result = p.drafts[0].graph.outputs[base.result]
    dims = p.dims_of(result.value)
    if all(map(is_static, dims)):
        return base
    if base.is_complex:
        p.refuse("complex numbers with symbolic sizes")
    for dim in dims:
        if any(factor.extent is None and not factor.is_static for factor in dim):
            p.refuse("a result's size is no linear function of the symbols")
    valid = tuple(
        tuple((f.sizes[0], f.extent.coefficients if f.extent else None,
               f.extent.constant if f.extent else 0) for f in dim)
        for dim in dims
    )  # fmt: skip
    if base.kind == "input" and not p.drafts[0].graph.training:  # which has its own strides
        return replace(base, valid=Valid(valid, result.order, None, product(p, [0])))
    if base.kind in ("buffer", "input"):
        p.refuse("the call writes to a tensor of a symbolic size")
    layouts = [each[base.index] for each in p.layouts] if base.index is not None else [None]
    known = [each for each in layouts if each is not None]
    if len(known) < len(layouts):
        return replace(base, valid=Valid(valid, result.order, None, product(p, [0])))
    strides, offsets = zip(*known)
    own = _strides(p, strides, dims, result.order)
    return replace(base, valid=Valid(valid, result.order, own, product(p, offsets)))


def _view(p: Padding, same: Sequence[ViewOf]) -> ViewOf:
    base = same[0]
    if len({(each.identity, each.dtype) for each in same}) > 1 or any(
        each.base != base.base for each in same
    ):
        p.refuse("a result is a view of one tensor at some sizes and of another at others")
    if base.identity:
        return base
    sizes, strides = (
        tuple(product(p, of_dim) for of_dim in zip(*(getattr(each, name) for each in same)))
        for name in ("sizes", "strides")
    )
    offset = product(p, [each.offset for each in same])
    return replace(base, sized=SizedLayout(sizes, strides, offset))


def product(p: Padding, values: Sequence[int]) -> Product:
    """Raises: NotForRange."""
    if len(set(values)) == 1:
        return (((), values[0]),)
    factors = factors_of(p, values, _MOST_FACTORS)
    if factors is None:
        p.refuse("where a result lies in memory is no product of sizes")
        raise AssertionError
    return tuple((each.coefficients, each.constant) for each in factors)


def _strides(
    p: Padding, of_samples: Sequence[tuple[int, ...]], dims: Sequence[Dim], order: Sequence[int]
) -> tuple[Product, ...] | None:
    """None where they follow from the order."""
    found = [factors_of(p, each, _MOST_FACTORS) for each in zip(*of_samples)]
    if None not in found:
        return tuple(
            tuple((each.coefficients, each.constant) for each in factors)
            for factors in found
            if factors is not None
        )
    for sample, strides in enumerate(of_samples):
        shape = [size_of(dim, sample) for dim in dims]
        if any(
            strides[d] != math.prod(shape[other] for other in order[place + 1 :])
            for place, d in enumerate(order)
        ):
            p.refuse("a result's strides are no products of sizes")
    return None
