# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling as reductions of windows over a padded operand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from weft.frontend.dtypes import identity, is_float
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.reduce import accumulated
from weft.frontend.table import Site, lowers

# Elements of a window that a program looks at one by one.
MOST_STEPS = 64


@lowers("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(site: Site, x: Value, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    geometry = WindowGeometry(site, x, kernel, stride, padding, dilation, ceil_mode)
    return site.builder.graph.with_level_slope(geometry.reduce("max", x, identity("max", x.dtype)))


@lowers("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_indices(
    site: Site, x: Value, kernel, stride=(), padding=0, dilation=1, ceil_mode=False
):
    if not site.used - {0}:
        return max_pool(site, x, kernel, stride, padding, dilation, ceil_mode), None
    geometry = WindowGeometry(site, x, kernel, stride, padding, dilation, ceil_mode)
    return largest_with_places(geometry, x)


def largest_with_places(geometry: WindowGeometry, x: Value) -> tuple[Value, Value]:
    """The largest elements and where they lie, counted over the pooled dims, by torch's steps: the
    first of equal ones, the last NaN, and the first within where nothing is above -inf."""
    b, dims = geometry.site.builder, range(len(geometry.kernel))
    if math.prod(geometry.kernel) > MOST_STEPS or math.prod(geometry.sizes) >= 2**31:
        raise Decline(f"places in windows of {geometry.kernel}")
    padded = geometry.padded(x, identity("max", x.dtype))
    base, chosen = geometry.first_places()
    value = b.constant(identity("max", x.dtype), x.dtype, chosen.shape)
    for steps in itertools.product(*map(range, geometry.kernel)):
        element = padded
        for dim in dims:
            start, out = steps[dim] * geometry.dilation[dim], geometry.results[dim]
            limit = start + (out - 1) * geometry.stride[dim] + 1
            element = b.slice(element, geometry.outer + dim, start, limit, geometry.stride[dim])
        above = b.compare("gt", element, value)
        if is_float(x.dtype):
            above = b.binary("or", above, b.compare("ne", element, element))
        value = b.graph.with_level_slope(b.select(above, element, value), 1)
        ahead = sum(s * d * w for s, d, w in zip(steps, geometry.dilation, geometry.weights))
        chosen = b.select(above, b.constant(ahead, chosen.dtype, chosen.shape), chosen)
    return value, b.convert(b.binary("add", base, chosen), torch.int64)


@lowers("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    site: Site,
    x: Value,
    kernel,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    b = site.builder
    geometry = WindowGeometry(site, x, kernel, stride, padding, 1, ceil_mode)
    total = geometry.reduce("sum", accumulated(site, x), 0)
    if divisor_override is not None:
        return site.finish(b.scalar("div", total, divisor_override))
    if geometry.is_for_range and (ceil_mode or not count_include_pad):
        counted = geometry.counted(total, count_include_pad)
        return site.finish(b.binary("div", total, counted))
    counts = geometry.counts(count_include_pad)
    if all(len(set(along)) <= 1 for along in counts):
        divisor = math.prod(along[0] for along in counts if along)
        return site.finish(b.scalar("div", total, divisor))
    first = total.rank - len(counts)
    for number, along in enumerate(counts):
        row = b.dense(torch.tensor(along, dtype=total.dtype))
        total = b.binary("div", total, b.along(row, first + number, total.shape))
    return site.finish(total)


class WindowGeometry:
    """The windows over the last dims of an operand (n, c, s...) or (c, s...).

    The upper padding is what the result's size needs: less than torch's where the last
    window does not reach the end, more in ceil mode. In a program for a range of sizes it is the
    same whatever the size.
    """

    def __init__(
        self, site: Site, x: Value, kernel, stride, padding, dilation, ceil_mode=False
    ) -> None:
        self.site = site
        self.is_for_range = site.builder.graph.keeps_trivial
        n = int(site.target.split("pool")[1][0])
        self.outer = x.rank - n
        self.sizes, self.results = x.shape[self.outer :], site.shape[self.outer :]
        self.kernel = _spread(kernel, n)
        self.stride = _spread(stride, n) if stride not in ((), [], None) else self.kernel
        self.low, self.dilation = _spread(padding, n), _spread(dilation, n)
        self.high = [
            max((out - 1) * s + (k - 1) * d + 1 - low - size, 0)
            for out, s, k, d, low, size in zip(
                self.results, self.stride, self.kernel, self.dilation, self.low, self.sizes
            )
        ]
        if self.is_for_range:
            more = [step - 1 if ceil_mode else 0 for step in self.stride]
            self.high = [low + each for low, each in zip(self.low, more)]

    @property
    def weights(self) -> list[int]:
        """How many elements apart neighbours along each dim lie."""
        return [math.prod(self.sizes[dim + 1 :]) for dim in range(len(self.sizes))]

    def padded(self, x: Value, filler) -> Value:
        zeros = [0] * self.outer
        return self.site.builder.pad(x, zeros + list(self.low), zeros + self.high, filler)

    def first_places(self) -> tuple[Value, Value]:
        """int32, of the result's shape: where each window begins, in the padding or not, and how
        far behind that its first element lies."""
        b, shape = self.site.builder, self.site.shape
        begins, behind = [], []
        for dim, weight in enumerate(self.weights):
            d = self.dilation[dim]
            number = b.iota(torch.int32, [self.results[dim]], 0)
            begin = b.scalar("sub", b.scalar("mul", number, self.stride[dim]), self.low[dim])
            outside = b.scalar("max", b.unary("neg", begin), 0)
            steps = b.scalar("div", b.scalar("add", outside, d - 1), d)
            for found, each in ((begins, begin), (behind, b.scalar("mul", steps, d))):
                found.append(b.along(b.scalar("mul", each, weight), self.outer + dim, shape))
        return b.total(begins), b.total(behind)

    def reduce(self, kind: str, x: Value, filler) -> Value:
        zeros, ones = [0] * self.outer, [1] * self.outer
        b = self.site.builder
        kernel, low, high = list(self.kernel), list(self.low), list(self.high)
        if self.is_for_range:
            return self._slid(kind, b.pad(x, zeros + low, zeros + high, filler))
        for number, out in enumerate(self.results):
            if out == 1:
                x, kernel[number] = self._only_window(x, number)
                low[number] = high[number] = 0
        x = b.pad(x, zeros + low, zeros + high, filler)
        for dim, (out, s, k, d) in enumerate(
            zip(self.results, self.stride, kernel, self.dilation), self.outer
        ):
            x = b.slice(x, dim, 0, (out - 1) * s + (k - 1) * d + 1)
        return b.reduce_window(kind, x, ones + kernel, ones + self.stride, ones + self.dilation)

    def _slid(self, kind: str, padded: Value) -> Value:
        """The result without the windows behind its end for which there is room."""
        ones = [1] * self.outer
        form = ones + self.kernel, ones + self.stride, ones + self.dilation
        made = self.site.builder.reduce_window(kind, padded, *form)
        for dim, out in enumerate(self.results, self.outer):
            made = self.site.builder.slice(made, dim, 0, out)
        return made

    def counted(self, total: Value, include_pad: bool) -> Value:
        """The numbers of elements that `counts` gives, computed, since they depend on the size; in
        the shape of `total`."""
        b, zeros = self.site.builder, [0] * self.outer
        shape = [1] * self.outer + list(self.sizes)
        edge = zeros + self.low
        ones = b.constant(1, total.dtype, shape)
        inside = b.pad(ones, edge, edge, 1 if include_pad else 0)
        rest = [high - low for high, low in zip(self.high, self.low)]
        sums = self._slid("sum", b.pad(inside, [0] * len(shape), zeros + rest, 0))
        return b.broadcast_in_dim(sums, list(range(total.rank)), total.shape)

    def _only_window(self, x: Value, number: int) -> tuple[Value, int]:
        """`x` from where the only window along a dim first meets it, and how often it does: of a
        window that is longer than `x`, the rest would be padding."""
        size, low, d = self.sizes[number], self.low[number], self.dilation[number]
        first = -(-low // d)
        count = min((size - 1 + low) // d, self.kernel[number] - 1) - first + 1
        start = first * d - low
        end = start + (count - 1) * d + 1
        return self.site.builder.slice(x, self.outer + number, start, end), count

    def counts(self, include_pad: bool) -> list[list[int]]:
        """Elements that count in each window, by dim; windows end at torch's upper padding."""
        counts = []
        for size, out, k, s, low in zip(
            self.sizes, self.results, self.kernel, self.stride, self.low
        ):
            first, last = (-low, size + low) if include_pad else (0, size)
            starts = [i * s - low for i in range(out)]
            counts.append([min(at + k, last) - max(at, first) for at in starts])
        return counts


def _spread(value: int | Sequence[int], n: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * n if len(values) == 1 else values
