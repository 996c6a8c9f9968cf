# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a cache that stay as they are in a sequence, and are others in the next: those of the
keys and values of an encoder's output, beside the decoder's own, which grow.

A program that is made for any length of the latter is made for any length of the former at once:
otherwise the next prompt would need another.
"""

from __future__ import annotations

import torch

from weft.compiled.flat_calls import FlatCall
from weft.compiled.sizes import Wanted, cache_range

# Tensors with a size that varies are copied at each call, which for longer ones takes long beside
# reading the weights.
_LONGEST = 256


def with_lengths_of_inputs(wanted: Wanted, call: FlatCall) -> Wanted:
    """wanted: the sizes that are to be symbols, with those of the cache that grow. Those are added
    of tensors like these that other arguments have as well, such as the mask of an encoder."""
    held = call.held()
    growing = [(call.leaves[n], dim) for n, dims in wanted.items() if n in held for dim in dims]
    rest = [
        (number, leaf)
        for number, leaf in enumerate(call.leaves)
        if isinstance(leaf, torch.Tensor) and number not in call.counted
    ]
    sizes = {
        leaf.shape[dim]
        for number, leaf in rest
        for other, dim in growing
        if number in held and number not in wanted and _is_like(leaf, other, dim)
    }
    sizes -= {other.shape[dim] for other, dim in growing}
    of_inputs = {size for number, leaf in rest if number not in held for size in leaf.shape[1:]}
    sizes &= of_inputs & {*range(2, _LONGEST + 1)}
    found = {number: dict(dims) for number, dims in wanted.items()}
    for number, leaf in rest if sizes else ():
        for dim, size in enumerate(leaf.shape[1:], 1):
            if size in sizes:
                low, high = cache_range(size)
                found.setdefault(number, {}).setdefault(dim, (max(low, 2), high))
    return found


def _is_like(leaf: torch.Tensor, other: torch.Tensor, dim: int) -> bool:
    """Whether they differ in that size alone."""
    own, its = list(leaf.shape), list(other.shape)
    return (
        leaf.dtype == other.dtype
        and len(own) == len(its)
        and own[:dim] + own[dim + 1 :] == its[:dim] + its[dim + 1 :]
    )
