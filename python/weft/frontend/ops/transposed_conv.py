# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions, as one dense convolution of stride 1 whose channels interleave.

Along one dim, result[i] sums x[j] * weight[k] over j * stride + k = i + padding. The results
with one remainder of (i + padding) by the stride, a phase, read every stride-th tap, and with
t taps each: all phases together are a convolution with t taps and stride times the channels,
whose result (channels * phases, steps) is stored as (channels, steps * phases) and cut to
size. Taps that a phase lacks are zero: no work is lost where the stride divides the kernel.
Source: W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontend.builder import Builder
from weft.frontend.graph import Value


@dataclass(frozen=True)
class Dim:
    """One spatial dim: sizes of input, kernel and result; how they move."""

    size: int
    kernel: int  # with the zeros of a dilation
    result: int
    stride: int
    padding: int

    @property
    def phases(self) -> int:
        """A single input meets every tap once, whatever the stride: one tap for each phase."""
        return max(self.stride, self.kernel) if self.size == 1 else self.stride

    @property
    def taps(self) -> int:
        return -(-self.kernel // self.phases)

    @property
    def first(self) -> int:
        """The first step that holds a result; a step is a position of every phase."""
        return self.padding // self.phases

    @property
    def steps(self) -> int:
        return (self.padding + self.result - 1) // self.phases + 1 - self.first


def transposed_conv(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    dims: Sequence[Dim],
    dilation: Sequence[int],
    groups: int,
) -> Value:
    """x: (b, c, sizes...); weight: (c, o / groups, k...); bias: (o); result: (b, o, results...)."""
    n = len(dims)
    low = [dim.taps - 1 - dim.first for dim in dims]
    high = [dim.steps + dim.first - dim.size for dim in dims]
    # Results that padding takes away may leave inputs unread.
    x = b.pad(x, [0, 0, *(min(n, 0) for n in low)], [0, 0, *(min(n, 0) for n in high)], 0)
    low, high = [max(n, 0) for n in low], [max(n, 0) for n in high]
    phased = _phased(b, weight, dims, dilation, groups)
    steps = b.conv(x, phased, [1] * n, low, high, [1] * n, groups)
    if bias is not None:
        shape = [groups, *(dim.phases for dim in dims), weight.shape[1]]
        phased = b.broadcast_in_dim(b.reshape(bias, [groups, shape[-1]]), [0, n + 1], shape)
        steps = b.binary("add", steps, b.along(b.reshape(phased, [steps.shape[1]]), 1, steps.shape))
    return _interleaved(b, steps, dims, groups)


def _phased(
    b: Builder, weight: Value, dims: Sequence[Dim], dilation: Sequence[int], groups: int
) -> Value:
    """(c, o / groups, k...) as the weight (groups * phases... * o, c / groups, taps...)."""
    c, o, *kernel = weight.shape
    n = len(dims)
    if any(apart > 1 for apart in dilation):
        zeros = [apart - 1 for apart in dilation]
        weight = b.reshape(weight, [c, o, *(size for k in kernel for size in (k, 1))])
        weight = b.pad(weight, [0] * weight.rank, [0, 0, *(m for z in zeros for m in (0, z))], 0)
        kernel = [k * apart for k, apart in zip(kernel, dilation)]
        weight = b.reshape(weight, [c, o, *kernel])
    missing = [dim.taps * dim.phases - k for dim, k in zip(dims, kernel)]
    weight = b.pad(weight, [0] * (n + 2), [0, 0, *missing], 0)
    split = [size for dim in dims for size in (dim.taps, dim.phases)]
    weight = b.reshape(weight, [groups, c // groups, o, *split])
    taps, phases = range(3, 3 + 2 * n, 2), range(4, 4 + 2 * n, 2)
    if any(dim.taps > 1 for dim in dims):
        weight = b.reverse(weight, taps)
    weight = b.transpose(weight, [0, *phases, 2, 1, *taps])
    channels = groups * math.prod(dim.phases for dim in dims) * o
    return b.reshape(weight, [channels, c // groups, *(dim.taps for dim in dims)])


def _interleaved(b: Builder, steps: Value, dims: Sequence[Dim], groups: int) -> Value:
    """(b, groups * phases... * o, steps...) as (b, groups * o, results...)."""
    n, batch = len(dims), steps.shape[0]
    phases = [dim.phases for dim in dims]
    o = steps.shape[1] // groups // math.prod(phases)
    split = b.reshape(steps, [batch, groups, *phases, o, *steps.shape[2:]])
    pairs = [place for i in range(n) for place in (3 + n + i, 2 + i)]
    joined = b.transpose(split, [0, 1, 2 + n, *pairs])
    result = b.reshape(joined, [batch, groups * o, *(d.steps * d.phases for d in dims)])
    for i, dim in enumerate(dims):
        start = dim.padding - dim.first * dim.phases
        result = b.slice(result, 2 + i, start, start + dim.result)
    return result
