# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose rows have the same bits in any batch (`weft.compile(batch_invariant=True)`).

One program for a range of batch sizes computes every row with one order of operations. A single row
is computed as two, since torch treats a size of one differently; a batch beyond the range is
computed in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

if TYPE_CHECKING:
    from weft.compiled.ranges import RangeProgram

MOST_ROWS = 64
_Call = Callable[[tuple, dict[str, Any]], Any]


def batch_of(args: tuple, kwargs: dict[str, Any]) -> tuple[int, list[int]]:
    """The size of the batch, which is the first dimension of the first tensor that has dimensions,
    and the leaves that have as many rows. Without such a tensor the size is 0."""
    leaves = pytree.tree_leaves((args, kwargs))
    shaped = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.dim()]
    if not shaped:
        return 0, []
    batch = leaves[shaped[0]].shape[0]
    return batch, [number for number in shaped if leaves[number].shape[0] == batch]


def is_row_wise(program: RangeProgram) -> bool:
    """Whether each result has a row for each row of the batch, and no other size that may vary."""
    lowered = program.specialized.lowered
    if len(program.symbols.ranges) != 1 or lowered is None:
        return False
    tensors = [target for target in lowered.outputs if target.kind == "user"]
    return bool(tensors) and all(
        target.valid is not None and _rows(target.valid.dims[0]) for target in tensors
    )


def _rows(dim: tuple) -> bool:
    return [factor[1:] for factor in dim if factor[0] != 1] == [((1,), 0)]


def first_row(
    args: tuple,
    kwargs: dict[str, Any],
    rows: list[int],
    beside: Callable[[torch.Tensor], torch.Tensor],
) -> tuple[tuple, dict[str, Any]]:
    """A call with two rows: the first row of the batch, and the row that `beside` makes from it."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    for number in rows:
        row = leaves[number][:1]
        leaves[number] = torch.cat([row, beside(row)])
    return pytree.tree_unflatten(leaves, structure)


def same_first_row(one: tuple[bool, Any], other: tuple[bool, Any]) -> bool:
    """Whether the first rows of two calls' results are the same. Each call is given as whether it
    ran, and what it returned."""
    values = [pytree.tree_leaves(value) for ran, value in (one, other) if ran]
    return len(values) == 2 and all(
        torch.equal(x[:1].nan_to_num(), y[:1].nan_to_num())
        for x, y in zip(*values)
        if isinstance(x, torch.Tensor)
    )


def in_parts(args: tuple, kwargs: dict[str, Any], rows: list[int], batch: int, call: _Call) -> Any:
    """The joined results of `call` for parts of the batch that one program accepts. rows: the
    leaves that are cut."""
    leaves, structure = pytree.tree_flatten((args, kwargs))

    def part(first: int, end: int) -> Any:
        made = list(leaves)
        for number in rows:
            taken = leaves[number][first:end]
            made[number] = (torch.cat([taken, taken]) if end - first == 1 else taken).contiguous()
        value = call(*pytree.tree_unflatten(made, structure))
        if end - first == 1:
            value = pytree.tree_map_only(torch.Tensor, lambda x: x[:1].clone(), value)
        return value

    values = [part(first, min(first + MOST_ROWS, batch)) for first in range(0, batch, MOST_ROWS)]
    if len(values) == 1:
        return values[0]
    flat = [pytree.tree_flatten(value) for value in values]
    whole = [
        torch.cat(parts) if isinstance(parts[0], torch.Tensor) else parts[0]
        for parts in zip(*(leaves for leaves, _ in flat))
    ]
    return pytree.tree_unflatten(whole, flat[0][1])
