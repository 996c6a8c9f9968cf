# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments whose rows were cut short, which programs for ranges of sizes take as copies."""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.compiled.flat_calls import FlatCall
from weft.compiled.sizes import Wanted


def is_cut_short(tensor: torch.Tensor) -> bool:
    """Whether it holds integers in rows that were cut short, as `tokens[:, :-1]` does. Everything
    computed from it is laid out as if computed from a copy without gaps."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return False
    return _has_cut_rows(tensor)


def rows_apart(call: FlatCall, wanted: Wanted) -> set[int]:
    """The leaves that objects hold without symbolic sizes and whose rows are parts of longer ones,
    as the last tokens of a cache are. Of how much longer ones, no result's layout depends on."""
    return {
        number
        for number in call.held() - wanted.keys()
        if isinstance(leaf := call.leaves[number], torch.Tensor)
        and not leaf.is_contiguous()
        and leaf.layout == torch.strided
        and not leaf.is_conj()
        and _has_cut_rows(leaf)
    }


def _has_cut_rows(tensor: torch.Tensor) -> bool:
    """As `isCutShort` of python/bindings/SizeRange.cpp. With sizes of 1, strides leave open which
    dim is the outer one."""
    sizes, strides = tensor.shape, tensor.stride()
    if not sizes or any(size < 2 for size in sizes[1:]) or not sizes[0]:
        return False
    rows = [size * stride for size, stride in zip(sizes, strides)][1:]
    first = 0 if sizes[0] > 1 else 1
    return strides[-1] == 1 and all(map(operator.ge, strides[first:], rows[first:]))


def without_gaps(
    call: FlatCall, args: tuple, kwargs: dict[str, Any], which: Set[int]
) -> tuple[tuple, dict[str, Any]]:
    """The call with copies of these leaves; objects that hold one are others."""
    if which & call.held():
        return call.rebuilt(
            [x.contiguous() if n in which else x for n, x in enumerate(call.leaves)]
        )
    copies = [
        x.contiguous() if isinstance(x, torch.Tensor) and start in which else x
        for start, x in zip(call.starts(), pytree.tree_leaves((args, kwargs)))
    ]
    return pytree.tree_unflatten(copies, call.structure)
