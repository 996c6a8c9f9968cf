# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear and cubic interpolation along the last dims (aten/src/ATen/native/cpu/UpSampleKernel.cpp).

torch weighs the neighbours; its decomposition of the linear one adds a part of their difference
instead, which is no number between two infinite elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from weft.frontend.dtypes import is_float, opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.index import gathered_along
from weft.frontend.table import Site, lowers

_LINEAR = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
_SLOPE = -0.75  # of torch's cubics

# Along one dim, for each result: where its neighbours stand, and their weights.
_Taps = list[tuple[Value, Value]]


@lowers(*(f"{name}.vec" for name in (*_LINEAR, "upsample_bicubic2d")))
def upsample(site: Site, x: Value, output_size, align_corners, scale_factors):
    return _interpolate(site, x, align_corners, scale_factors or ())


@lowers(*(f"{name}.default" for name in (*_LINEAR, "upsample_bicubic2d")))
def upsample_to(site: Site, x: Value, output_size, align_corners, *scales):
    return _interpolate(site, x, align_corners, scales)


def _interpolate(site: Site, x: Value, align_corners: bool, scales: Sequence) -> Value:
    if not is_float(x.dtype):
        raise Decline(f"interpolation of {x.dtype}")
    b, n = site.builder, x.rank - 2
    taps_of: Callable[..., _Taps] = _cubic_taps if "cubic" in site.target else _linear_taps
    scales = [*scales, *[None] * (n - len(scales))]
    along = [taps_of(site, x, 2 + i, align_corners, scale) for i, scale in enumerate(scales)]
    result = b.convert(x, opmath(x.dtype))
    # One dim at a time, the innermost first: what the others read was blended once.
    for dim in reversed(range(2, x.rank)):
        terms = []
        for at, weight in along[dim - 2]:
            found = gathered_along(b, result, dim, at)
            terms.append(b.binary("mul", found, b.along(weight, dim, found.shape)))
        result = b.total(terms)
    return site.finish(result)


def _source(site: Site, x: Value, dim: int, align_corners: bool, scale: float | None) -> Value:
    """The positions along `dim`, among the elements, of the results."""
    b, size, count = site.builder, x.shape[dim], site.shape[dim]
    at = b.convert(b.iota(torch.int64, [count], 0), opmath(x.dtype))
    if align_corners:
        if count == 1:
            return b.scalar("mul", at, 0)
        return b.binary("mul", at, b.quotient(size - 1, count - 1, at.dtype, at.shape))
    middle = b.scalar("add", at, 0.5)
    if b.graph.keeps_trivial and not scale:
        return _source_at_any_size(site, middle, size, count)
    # torch's compilers fuse the product and the difference, which cancels digits: so the product
    # is made of two, one of which is exact (T. J. Dekker, "A floating-point technique for
    # extending the available precision", 1971).
    step = torch.tensor(1 / scale if scale else size / count, dtype=at.dtype).item()
    high = _leading_half(step, at.dtype)
    coarse = b.scalar("sub", b.scalar("mul", middle, high), 0.5)
    return b.binary("add", coarse, b.scalar("mul", middle, step - high))


def _source_at_any_size(site: Site, middle: Value, size: int, count: int) -> Value:
    """As `_source`, of a step that may depend on sizes: conversions cut it, and leave so few digits
    that the product with a middle below 32768 is exact."""
    b = site.builder
    step = b.quotient(size, count, middle.dtype, middle.shape)
    fewer = torch.bfloat16 if middle.dtype == torch.float32 else torch.float32
    high = b.convert(b.convert(step, fewer), middle.dtype)
    coarse = b.scalar("sub", b.binary("mul", middle, high), 0.5)
    return b.binary("add", coarse, b.binary("mul", middle, b.binary("sub", step, high)))


def _leading_half(number: float, dtype: torch.dtype) -> float:
    """`number` to half the digits of `dtype`."""
    digits = 12 if dtype == torch.float32 else 26
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(mantissa, digits)), exponent - digits)


def _linear_taps(site: Site, x: Value, dim: int, align_corners: bool, scale) -> _Taps:
    b, size, count = site.builder, x.shape[dim], site.shape[dim]
    if size == count and not (b.graph.keeps_trivial and not scale):
        # Whatever the scale: but of what is no number, zero times it is added.
        place = b.iota(torch.int64, [count], 0)
        return [(place, b.constant(n, opmath(x.dtype), [count])) for n in (1, 0)]
    at = b.scalar("max", _source(site, x, dim, align_corners, scale), 0)
    last = b.constant(size - 1, torch.int64, [count])
    low = b.binary("min", b.convert(at, torch.int64), last)
    beside = b.constant(1, torch.int64, [count])
    if b.graph.keeps_trivial and not scale:
        # Sizes may turn out to be equal, and an element is no neighbour of itself then.
        step = b.quotient(size, count, at.dtype, [count])
        beside = b.convert(b.compare("ne", step, 1.0), torch.int64)
    high = b.binary("min", b.binary("add", low, beside), last)
    part = b.scalar("min", b.binary("sub", at, b.convert(low, at.dtype)), 1)
    rest = b.binary("sub", b.constant(1, at.dtype, [count]), part)
    return [(low, rest), (high, part)]


def _cubic_taps(site: Site, x: Value, dim: int, align_corners: bool, scale) -> _Taps:
    """The four elements around each result; beyond the ends, the outermost ones."""
    b, size = site.builder, x.shape[dim]
    at = _source(site, x, dim, align_corners, scale)
    low = b.unary("floor", at)
    part = b.scalar("min", b.scalar("max", b.binary("sub", at, low), 0), 1)
    low = b.convert(low, torch.int64)
    places = [
        b.scalar("min", b.scalar("max", b.scalar("add", low, offset), 0), size - 1)
        for offset in (-1, 0, 1, 2)
    ]
    return list(zip(places, cubic_weights(site, part), strict=True))


def cubic_weights(site: Site, part: Value) -> list[Value]:
    """Of the elements around a point, `part` of an element behind the second of them.

    R. Keys, "Cubic convolution interpolation for digital image processing", 1981, as products:
    the sums of powers, which torch fuses, cancel digits.
    """
    b = site.builder
    rest = b.binary("sub", b.constant(1, part.dtype, part.shape), part)
    both = (part, rest), (rest, part)
    far, near = ([weight(site, *pair) for pair in both] for weight in (_far, _near))
    return [far[0], near[0], near[1], far[1]]


def _near(site: Site, x: Value, rest: Value) -> Value:
    """(a + 2) x^3 - (a + 3) x^2 + 1, the weight of an element at a distance x = 1 - rest."""
    b = site.builder
    one = b.constant(1, x.dtype, x.shape)
    inner = b.binary("sub", one, b.scalar("mul", x, _SLOPE + 2))
    return b.binary("mul", rest, b.scalar("add", b.binary("mul", x, inner), 1))


def _far(site: Site, x: Value, rest: Value) -> Value:
    """a y^3 - 5 a y^2 + 8 a y - 4 a, the weight of an element at a distance y = x + 1."""
    b = site.builder
    return b.scalar("mul", b.binary("mul", x, b.binary("mul", rest, rest)), _SLOPE)
