# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that depend on sizes, such as the divisor of a mean: which function of the symbols one is
shows in the samples, and a program computes it at each call."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from weft.frontend.graph import Value
from weft.frontend.sizes.extents import Extent

if TYPE_CHECKING:
    from weft.frontend.sizes.padding import Padding


# A number may be such a part of one that depends on the symbols, as half a size is.
_PARTS = (1, 2, 4)


def scaled(p: Padding, values: Sequence[Any], dtype: torch.dtype) -> Value:
    """A number that depends on the symbols, of `dtype` (). Raises: NotForRange."""
    b = p.builder
    for parts in _PARTS:
        if all(float(each * parts).is_integer() for each in values):
            if (count := _counted_but(p, [int(each * parts) for each in values], 1)) is not None:
                if parts == 1:
                    return b.convert(count, dtype)
                exact = b.scalar("mul", b.convert(count, torch.float64), 1 / parts)
                return b.convert(exact, dtype)
    if all(values) and all(abs(1 / v - round(1 / v)) < 1e-4 * abs(1 / v) for v in values):
        if (count := _counted_but(p, [round(1 / each) for each in values], 1)) is not None:
            one = b.constant(1.0, torch.float64)
            return b.convert(b.binary("div", one, b.convert(count, torch.float64)), dtype)
    for power, op in ((2, "sqrt"), (-2, "rsqrt")):
        if (count := _rooted(p, values, power)) is not None:
            root = b.unary(op, b.convert(count, torch.float64))
            return b.convert(root, dtype)
    if (number := _logarithm(p, values)) is not None:
        return b.convert(number, dtype)
    p.refuse("a number that depends on a size, and not linearly")
    raise AssertionError


def quotient(p: Padding, values: Sequence[tuple[int, int]], dtype: torch.dtype) -> Value:
    """Of two numbers that depend on the symbols, `dtype` (), as if rounded once: float64 has
    more than twice the digits of float32. Raises: NotForRange."""
    b, (over, under) = p.builder, zip(*values)
    numbers = [_counted_but(p, each, less) for each, less in ((over, 0), (under, 1))]
    if None in numbers or not _is_positive(p, under):
        p.refuse("a quotient of sizes that are no products of the symbols")
    wide = (b.convert(each, torch.float64) for each in numbers if each is not None)
    return b.convert(b.binary("div", *wide), dtype)


def _counted_but(p: Padding, values: Sequence[int], less: int) -> Value | None:
    """int64 (), as `_counted`; or what that gives of values that are `less` more."""
    found = _counted(p, values)
    if found is None and (whole := _counted(p, [each + less for each in values])) is not None:
        found = p.builder.scalar("sub", whole, less)
    return found


def _is_positive(p: Padding, values: Sequence[int]) -> bool:
    """Whether a number that `factors` has, or one less, is positive at all sizes."""
    for more in (0, 1):
        factors = factors_of(p, [each + more for each in values], len(p.domains))
        if factors is not None:
            leasts = [each.least(p.lows, p.mosts) for each in factors]
            return min(leasts) > 0 and math.prod(leasts) > more
    return False


def _rooted(p: Padding, values: Sequence[Any], power: int) -> Value | None:
    """int64 (): what the values are roots of, or one over a root, as far as they are exact."""
    if not all(value > 0 for value in values):
        return None
    squares = [float(value) ** power for value in values]
    if any(abs(each - round(each)) > 1e-6 * each for each in squares):
        return None
    return _counted(p, [round(each) for each in squares])


def _logarithm(p: Padding, values: Sequence[Any]) -> Value | None:
    """float64 (): a multiple of a size's logarithm, or of one over it."""
    b = p.builder
    near = {replace(e, constant=e.constant + more) for e in _extents(p) for more in (-1, 0, 1)}
    for extent in sorted(near, key=lambda each: (each.constant, each.coefficients)):
        if extent.least(p.lows, p.mosts) < 2:
            continue
        logs = [math.log(extent.at(sample)) for sample in p.samples]
        for op, times in (
            ("mul", [value / log for value, log in zip(values, logs)]),
            ("div", [value * log for value, log in zip(values, logs)]),
        ):
            if times[0] and all(abs(t - times[0]) < 2e-7 * abs(times[0]) for t in times):
                log = b.unary("log", b.convert(p.count(extent), torch.float64))
                return b.binary(op, b.constant(times[0], torch.float64), log)
    return None


def _counted(p: Padding, values: Sequence[int]) -> Value | None:
    """int64 (): a linear function of the symbols, or a multiple of a product of sizes."""
    if (factors := factors_of(p, values, len(p.domains))) is None:
        return None
    counts = [p.count(each) for each in factors]
    return functools.reduce(functools.partial(p.builder.binary, "mul"), counts)


def factors_of(p: Padding, values: Sequence[int], most: int) -> list[Extent] | None:
    """The linear functions of the symbols whose product has these values in the samples: one,
    or up to `most` sizes and a number, which are of one symbol if that alone varies."""
    if extent := p.fit(values):
        return [extent]
    ordered = sorted(_extents(p), key=lambda each: (each.coefficients, each.constant))
    for many in range(2, most + 1):
        for each in itertools.combinations_with_replacement(ordered, many):
            products = [math.prod(e.at(sample) for e in each) for sample in p.samples]
            if not all(products) or any(v % n for v, n in zip(values, products)):
                continue
            if len(times := {v // n for v, n in zip(values, products)}) == 1:
                number = Extent((0,) * len(p.highs), times.pop())
                return [*each, *([number] if number.constant != 1 else [])]
    return None


def _extents(p: Padding) -> set[Extent]:
    """The extents of all dims whose sizes depend on the symbols."""
    return {f.extent for dims in p.dims.values() for dim in dims for f in dim if f.extent}
