# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of images as columns, and back (aten/src/ATen/native/im2col.h)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weft.frontend.builder import count_windows
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import Site, lowers

_MOST_TAPS = 64  # of a window: each is an op, where indices would be one


@lowers("im2col.default")
def im2col(site: Site, x: Value, kernel_size, dilation, padding, stride):
    """x: (n..., c, h, w), n absent or one. To (n..., c * taps, windows)."""
    b = site.builder
    _check(kernel_size)
    around = [0] * (x.rank - 2) + list(padding)
    images = b.pad(x, around, around, 0)
    counts = list(map(count_windows, images.shape[-2:], kernel_size, stride, dilation))
    taps = []
    for place in itertools.product(*map(range, kernel_size)):
        tap = images
        for d in range(2):
            start = place[d] * dilation[d]
            limit = start + (counts[d] - 1) * stride[d] + 1
            tap = b.slice(tap, x.rank - 2 + d, start, limit, stride[d])
        taps.append(b.reshape(tap, [*x.shape[:-2], 1, counts[0] * counts[1]]))
    return b.reshape(b.concat(taps, x.rank - 2), site.shape)


@lowers("col2im.default")
def col2im(site: Site, x: Value, output_size, kernel_size, dilation, padding, stride):
    """x: (n..., c * taps, windows). The sum of what falls together, (n..., c, h, w).

    Taps fewer than a stride apart never fall together: they lie beside one another in a block, and
    blocks are summed.
    """
    b = site.builder
    _check(kernel_size)
    if any(s > 1 and d > 1 for s, d in zip(stride, dilation, strict=True)) or 0 in output_size:
        raise Decline(f"windows {stride} apart with taps {dilation} apart")
    padded = [output_size[d] + 2 * padding[d] for d in range(2)]
    counts = list(map(count_windows, padded, kernel_size, stride, dilation))
    lead = list(site.shape[:-2])
    n, blocks = len(lead), [-(-kernel_size[d] // stride[d]) for d in range(2)]
    columns = b.reshape(x, [*lead, *kernel_size, *counts])
    missing = [blocks[d] * stride[d] - kernel_size[d] for d in range(2)]
    columns = b.pad(columns, [0] * (n + 4), [*[0] * n, *missing, 0, 0], 0)
    terms = []
    for number in itertools.product(*map(range, blocks)):
        block = columns
        for d in range(2):
            block = b.slice(block, n + d, number[d] * stride[d], (number[d] + 1) * stride[d])
        block = b.transpose(block, [*range(n), n + 2, n, n + 3, n + 1])
        sizes = [counts[d] * stride[d] for d in range(2)]
        low = [number[d] * stride[d] * dilation[d] - padding[d] for d in range(2)]
        high = [output_size[d] - sizes[d] - low[d] for d in range(2)]
        # One that lies in the padding alone is seen by nobody.
        if any(low[d] + sizes[d] <= 0 or low[d] >= output_size[d] for d in range(2)):
            continue
        block = b.reshape(block, [*lead, *sizes])
        terms.append(b.pad(block, [*[0] * n, *low], [*[0] * n, *high], 0))
    return b.total(terms)


def _check(kernel_size: Sequence[int]) -> None:
    if kernel_size[0] * kernel_size[1] > _MOST_TAPS:
        raise Decline(f"windows of {kernel_size}")
