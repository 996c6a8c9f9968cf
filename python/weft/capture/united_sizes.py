# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sizes of a traced call are one, although torch has not asked: those of a cache's layers,
and those of a mask over a cache and what is appended to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import torch

from weft.frontend.sizes.padding import NotForRange


def united_sizes(
    symbols: list[Any], leaves: list[Sequence[Any] | None], given: Sequence[Any], among: Set[int]
) -> dict[Any, Any]:
    """Symbols that stand for sizes of leaves `among` these alone, and which other one they are."""
    places: dict[Any, set[int]] = {}
    for number, shape in enumerate(leaves):
        for size in shape or ():
            if isinstance(size, torch.SymInt):
                for symbol in size.node.expr.free_symbols:
                    places.setdefault(symbol, set()).add(number)
    first: dict[int, Any] = {}
    return {
        symbol: first[hint]
        for symbol in symbols
        if places[symbol] <= among
        and first.setdefault(hint := traced_size(symbol, leaves, given), symbol) is not symbol
    }


def appended_sizes(
    symbols: list[Any],
    same: dict[Any, Any],
    leaves: list[Sequence[Any] | None],
    given: Sequence[Any],
    held: Set[int],
) -> dict[Any, Any]:
    """`same` with sizes that are those of what objects hold and as much more as tokens (integers)
    are appended. Raises: NotForRange, if there are none."""
    tokens = {
        int(size)
        for value, shape in zip(given, leaves)
        if isinstance(value, torch.Tensor) and value.dtype == torch.int64
        for size in (shape or ())[1:]
        if not isinstance(size, torch.SymInt)
    }
    own = _sizes_of(held, leaves)
    apart = [each for each in symbols if each not in same]
    longer = {
        symbol: cached + more
        for cached in apart
        for symbol in apart
        if cached in own
        and symbol not in own
        and (more := traced_size(symbol, leaves, given) - traced_size(cached, leaves, given))
        in tokens
    }
    if not longer:
        raise NotForRange("no size is that of an object and of what is appended to it")
    return {**{one: other.subs(longer) for one, other in same.items()}, **longer}


def is_number(
    symbols: list[Any],
    leaves: list[Sequence[Any] | None],
    given: Sequence[Any],
    held: Set[int],
    wanted: Mapping[int, Mapping[int, Any]],
) -> bool:
    """Whether one of several sizes that are one has turned out to be a number."""
    numbers = {
        int(shape[dim])
        for leaf in held & wanted.keys()
        for dim in wanted[leaf]
        if (shape := leaves[leaf]) is not None and not isinstance(shape[dim], torch.SymInt)
    }
    of_held = _sizes_of(held, leaves)
    return any(traced_size(each, leaves, given) in numbers for each in symbols if each in of_held)


def _sizes_of(which: Set[int], leaves: list[Sequence[Any] | None]) -> set[Any]:
    """The expressions of the leaves' sizes that are no numbers."""
    return {
        size.node.expr
        for leaf in which
        for size in leaves[leaf] or ()
        if isinstance(size, torch.SymInt)
    }


def traced_size(symbol: Any, leaves: list, given: Sequence[Any]) -> int:
    """The size that the symbol stood for while it was traced."""
    for value, shape in zip(given, leaves):
        for dim, size in enumerate(shape or ()):
            if isinstance(size, torch.SymInt) and size.node.expr == symbol:
                return int(value.shape[dim])
    raise NotForRange(f"the size {symbol} is that of no argument alone")
