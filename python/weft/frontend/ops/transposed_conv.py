# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions, as dense convolutions of stride 1 whose channels interleave.

Along one dim, result[i] sums x[j] * weight[k] over j * stride + k * dilation = i + padding.
What the two have in common leaves gaps between the results that have taps at all: put in last,
as zeros. Then phase p is what reads the taps p, p + stride, ... They stand at p * dilation +
stride * q and read x[q - dilation * m] for m = 0, 1, ...: phases with equally many taps t are
one dilated convolution with t taps and as many times the channels. That is all of them where
the stride divides the kernel, else those below the remainder and the others.
The results (channels * phases, steps) are stored as (channels, steps * phases) and cut to size.
Source: W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontend.builder import Builder
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value


@dataclass(frozen=True)
class Dim:
    """One spatial dim: sizes of input, kernel (taps, without what lies between) and result."""

    size: int
    kernel: int
    result: int
    stride: int
    padding: int
    dilation: int

    @property
    def gap(self) -> int:
        """Every so many positions may have taps."""
        return math.gcd(self._step, self.dilation)

    @property
    def phases(self) -> int:
        return self._step // self.gap

    @property
    def _step(self) -> int:
        """A single input meets every tap once, whatever the stride: one tap for each phase."""
        if self.size > 1:
            return self.stride
        return self.dilation * max(-(-self.stride // self.dilation), self.kernel)

    @property
    def apart(self) -> int:
        """Between the inputs that the taps of a phase read."""
        return self.dilation // self.gap

    @property
    def first(self) -> int:
        """The first step that holds a result; a step is a position of every phase."""
        return self.padding // self.gap // self.phases

    @property
    def steps(self) -> int:
        return (self.padding + self.result - 1) // self.gap // self.phases + 1 - self.first

    @property
    def delays(self) -> list[int]:
        """How many steps behind its convolution each phase stands, in the phases' order."""
        return [phase * self.apart // self.phases for phase in range(self.phases)]

    @property
    def early(self) -> int:
        """Steps ahead of the first that a convolution makes for the phases behind it."""
        return max(self.delays)


@dataclass(frozen=True)
class Phases:
    """Phases first, ..., end - 1 of one dim, with `taps` taps each."""

    first: int
    end: int
    taps: int

    @property
    def count(self) -> int:
        return self.end - self.first


def _phases_of(dim: Dim) -> list[Phases]:
    taps, more = divmod(dim.kernel, dim.phases)
    split = [Phases(0, more, taps + 1), Phases(more, dim.phases, taps)]
    return [phases for phases in split if phases.count]


@dataclass(frozen=True)
class TransposedConv:
    """x: (b, c, sizes...); weight: (groups, c / groups, o / groups, taps, phases, ...), each
    dim's kernel filled up to a multiple of its phases; bias: (o)."""

    b: Builder
    x: Value
    weight: Value
    bias: Value | None
    dims: Sequence[Dim]

    @property
    def groups(self) -> int:
        return self.weight.shape[0]

    @property
    def _has_gaps(self) -> bool:
        return any(dim.gap > 1 for dim in self.dims)

    def result(self) -> Value:
        """(b, o, results...)"""
        b, n = self.b, len(self.dims)
        split = self._joined([])
        for i, dim in enumerate(self.dims):
            if dim.apart > 1 and dim.phases > 1:
                split = self._in_place(split, dim, 2 + i, 3 + n + i)
        pairs = [place for i in range(n) for place in (3 + n + i, 2 + i)]
        result = b.transpose(split, [0, 1, 2 + n, *pairs])
        sizes = [dim.steps * dim.phases for dim in self.dims]
        result = b.reshape(result, [split.shape[0], self.groups * split.shape[2 + n], *sizes])
        if self._has_gaps:
            result = self._with_gaps(result)
        for i, dim in enumerate(self.dims):
            start = dim.padding - dim.first * dim.phases * dim.gap
            result = b.slice(result, 2 + i, start, start + dim.result)
        if self.bias is not None and self._has_gaps:
            result = self._with_bias(result, self.bias)
        return result

    def _with_bias(self, result: Value, bias: Value) -> Value:
        b = self.b
        return b.binary("add", result, b.convert(b.along(bias, 1, result.shape), result.dtype))

    def _in_place(self, split: Value, dim: Dim, phases: int, steps: int) -> Value:
        """Phases where they stand among the results, each as many steps on as it is behind."""
        b = self.b
        parts: list[Value] = [split] * dim.phases
        for phase, delay in enumerate(dim.delays):
            part = b.slice(split, phases, phase, phase + 1)
            start = dim.early - delay
            place = phase * dim.apart % dim.phases
            parts[place] = b.slice(part, steps, start, start + dim.steps)
        return b.concat(parts, phases)

    def _with_gaps(self, result: Value) -> Value:
        """Zeros behind each result that has taps."""
        b, gaps = self.b, [dim.gap for dim in self.dims]
        outer, sizes = result.shape[:2], result.shape[2:]
        result = b.reshape(result, [*outer, *(m for size in sizes for m in (size, 1))])
        high = [0, 0, *(m for gap in gaps for m in (0, gap - 1))]
        result = b.pad(result, [0] * result.rank, high, 0)
        return b.reshape(result, [*outer, *(size * gap for size, gap in zip(sizes, gaps))])

    def _joined(self, chosen: list[Phases]) -> Value:
        """All phases of the dims behind those whose phases are chosen:
        (b, groups, phases..., o / groups, steps...)."""
        if len(chosen) == len(self.dims):
            return self._dense(chosen)
        parts = [self._joined([*chosen, phases]) for phases in _phases_of(self.dims[len(chosen)])]
        return self.b.concat(parts, 2 + len(chosen))

    def _dense(self, chosen: list[Phases]) -> Value:
        b, n, o = self.b, len(chosen), self.weight.shape[2]
        counts = [phases.count for phases in chosen]
        steps = [dim.early + dim.steps for dim in self.dims]
        channels = self.groups * math.prod(counts) * o
        shape = [self.x.shape[0], channels, *steps]
        if all(phases.taps for phases in chosen):
            pairs = list(zip(self.dims, chosen))
            apart = [dim.apart for dim in self.dims]
            low = [(phases.taps - 1) * dim.apart + dim.early - dim.first for dim, phases in pairs]
            high = [dim.first + dim.steps - dim.size for dim in self.dims]
            # Results that padding takes away may leave inputs unread.
            x = b.pad(
                self.x, [0, 0, *(min(p, 0) for p in low)], [0, 0, *(min(p, 0) for p in high)], 0
            )
            low, high = [max(p, 0) for p in low], [max(p, 0) for p in high]
            weight = self._weight(chosen, channels)
            result = b.conv(x, weight, [1] * n, low, high, apart, self.groups)
        else:
            result = b.broadcast(b.constant(0, self.x.dtype), shape)
        # Inside the convolution where it can be; in a gap there is nothing but the bias.
        if self.bias is not None and not self._has_gaps:
            bias = b.reshape(self.bias, [self.groups, o])
            bias = b.broadcast_in_dim(bias, [0, n + 1], [self.groups, *counts, o])
            result = self._with_bias(result, b.reshape(bias, [channels]))
        return b.reshape(result, [shape[0], self.groups, *counts, o, *steps])

    def _weight(self, chosen: list[Phases], channels: int) -> Value:
        """(groups * phases... * o / groups, c / groups, taps...), the last tap first."""
        b, n, weight = self.b, len(chosen), self.weight
        for i, phases in enumerate(chosen):
            weight = b.slice(weight, 3 + 2 * i, 0, phases.taps)
            weight = b.slice(weight, 4 + 2 * i, phases.first, phases.end)
        taps, places = range(3, 3 + 2 * n, 2), range(4, 4 + 2 * n, 2)
        if any(phases.taps > 1 for phases in chosen):
            weight = b.reverse(weight, taps)
        weight = b.transpose(weight, [0, *places, 2, 1, *taps])
        return b.reshape(weight, [channels, weight.shape[n + 2], *(p.taps for p in chosen)])


def transposed_conv(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    dims: Sequence[Dim],
    groups: int,
) -> Value:
    """x: (b, c, sizes...); weight: (c, o / groups, k...); bias: (o); result: (b, o, results...)."""
    c, o, *_ = weight.shape
    taps = [-(-dim.kernel // dim.phases) for dim in dims]
    missing = [t * dim.phases - dim.kernel for t, dim in zip(taps, dims)]
    weight = b.pad(weight, [0] * weight.rank, [0, 0, *missing], 0)
    split = [size for t, dim in zip(taps, dims) for size in (t, dim.phases)]
    weight = b.reshape(weight, [groups, c // groups, o, *split])
    if bias is not None and b.graph.training:
        # Its gradient is a sum of those of all phases, which is to be rounded once.
        bias = b.convert(bias, opmath(bias.dtype))
    return TransposedConv(b, x, weight, bias, dims).result()
