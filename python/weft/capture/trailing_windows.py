# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last elements along a dim, as `x[:, -window:]` takes them: all of them, where there are no
more than those. PyTorch tells the two apart by where the part would begin, and treats the size at
which it begins at 0 as a third case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import has_free_symbols


def _trailing(args: tuple, kwargs: dict[str, Any]) -> Any:
    """All of the dim for all sizes up to the window's."""
    return torch.Tensor.__getitem__(args[0], _without_starts(args[0].shape, args[1]))


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.Tensor.__getitem__: _trailing,
}


def _without_starts(shape: Sequence[Any], index: Any) -> Any:
    """The index, with slices from the beginning instead of those that reach as far back."""
    parts = index if type(index) is tuple else (index,)
    if not all(each is None or each is ... or type(each) in (slice, int) for each in parts):
        return index
    taken = sum(each is not None and each is not ... for each in parts)
    made, dim = [], 0
    for each in parts:
        if type(each) is slice and dim < len(shape) and _reaches_all(shape[dim], each.start):
            each = slice(None, each.stop, each.step)
        made.append(each)
        if each is ...:
            dim += len(shape) - taken
        elif each is not None:
            dim += 1
    return tuple(made)


def _reaches_all(size: Any, start: Any) -> bool:
    """Whether counting back to the start gives the first element; the answer becomes a guard where
    it is yes."""
    return (
        type(start) is int
        and start < 0
        and isinstance(size, torch.SymInt)
        and has_free_symbols(size)
        and size.node.hint is not None
        and size.node.hint <= -start
        and bool(size <= -start)
    )
