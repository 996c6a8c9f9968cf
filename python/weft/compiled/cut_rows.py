# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments whose rows were cut short, which programs for ranges of sizes take as copies."""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.compiled.flat_calls import FlatCall


def is_cut_short(tensor: torch.Tensor) -> bool:
    """Whether it holds integers in rows that were cut short, as `tokens[:, :-1]` does. Everything
    computed from it is laid out as if computed from a copy without gaps."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or 1 in tensor.shape:
        return False
    rows = [size * stride for size, stride in zip(tensor.shape, tensor.stride())][1:]
    return tensor.stride()[-1:] == (1,) and all(map(operator.ge, tensor.stride(), rows))


def without_gaps(
    call: FlatCall, args: tuple, kwargs: dict[str, Any], which: Set[int]
) -> tuple[tuple, dict[str, Any]]:
    """The call with copies of these leaves, none of which an object holds."""
    copies = [
        x.contiguous() if isinstance(x, torch.Tensor) and start in which else x
        for start, x in zip(call.starts(), pytree.tree_leaves((args, kwargs)))
    ]
    return pytree.tree_unflatten(copies, call.structure)
