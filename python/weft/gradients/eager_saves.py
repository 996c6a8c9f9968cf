# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What autograd has saved of a call in eager execution, by which a change between a forward and its
backward counts or does not.

A change in place of what is saved is an error, a change of anything else is none. And of a tensor
that is given other memory (`p.data = new`), a node that has saved the tensor itself reads the new
memory, one that has saved a view of it, as of a transposed weight, the old one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.autograd.graph import Node

_PREFIX = "_raw_saved_"


@dataclass(frozen=True)
class Saves:
    """By number: `itself`, the inputs of a graph that nodes have saved, `views`, those that they
    have saved other tensors of in the same memory, and `results` of it. For each result that has
    gradients, what of these is read on the way backwards from it, as (whether an input, number)
    (`reads`), and for each of them whether nodes that have saved anything are on both ways, and so
    are gone after a backward from one (`shares`)."""

    itself: tuple[int, ...]
    views: tuple[int, ...]
    results: tuple[int, ...]
    reads: tuple[tuple[tuple[bool, int], ...], ...]
    shares: tuple[tuple[bool, ...], ...]

    def has(self, number: int) -> bool:
        """Whether anything of this input is saved."""
        return number in self.itself or number in self.views

    def record(self) -> dict[str, Any]:
        """The record for JSON."""
        return asdict(self)

    @staticmethod
    def of_record(record: Mapping[str, Any] | None) -> Saves | None:
        """Raises: KeyError, TypeError, if it is none."""
        if record is None:
            return None
        reads = tuple(
            tuple((bool(is_input), int(number)) for is_input, number in each)
            for each in record["reads"]
        )
        itself, views, results = (tuple(record[name]) for name in ("itself", "views", "results"))
        return Saves(itself, views, results, reads, tuple(map(tuple, record["shares"])))


def saves_of_call(
    inputs: Sequence[torch.Tensor],
    results: Mapping[int, torch.Tensor],
    outputs: Sequence[torch.Tensor | None],
    ahead: Sequence[Node | None],
) -> Saves | None:
    """inputs, results: of the graph, as eager execution has them. outputs: the results that have
    gradients. ahead: the `grad_fn` of each input before the call. None where what is saved is in
    the hands of hooks."""
    borders = {node for node in ahead if node is not None}
    itself, views = set[int](), set[int]()
    reads, nodes = list[tuple[tuple[bool, int], ...]](), list[set[Node]]()
    for output in outputs:
        kept = None if output is None else _saved(output.grad_fn, borders)
        if output is not None and kept is None:
            return None
        read = set[tuple[bool, int]]()
        nodes.append(set(kept or ()))
        for tensor in itertools.chain.from_iterable((kept or {}).values()):
            for number, each in enumerate(inputs):
                if tensor is each:
                    itself.add(number)
                elif _share_memory(tensor, each):
                    views.add(number)
                else:
                    continue
                read.add((True, number))
            read.update((False, n) for n, each in results.items() if _share_memory(tensor, each))
        reads.append(tuple(sorted(read)))
    found = {number for each in reads for is_input, number in each if not is_input}
    return Saves(
        tuple(sorted(itself)),
        tuple(sorted(views)),
        tuple(sorted(found)),
        tuple(reads),
        tuple(tuple(bool(one & other) for other in nodes) for one in nodes),
    )


def _saved(start: Node | None, borders: set[Node]) -> dict[Node, list[torch.Tensor]] | None:
    """What nodes from `start` to `borders` have saved; None if hooks have it."""
    pending, seen = [start], {start}
    found: dict[Node, list[torch.Tensor]] = {}
    while pending:
        node = pending.pop()
        if node is None or node in borders:
            continue
        for each in _raw(node):
            if each.unpack_hook is not None:
                return None
            if isinstance(each.data, torch.Tensor):
                found.setdefault(node, []).append(each.data)
        for following, _ in node.next_functions:
            if following not in seen:
                seen.add(following)
                pending.append(following)
    return found


def _raw(node: Node) -> Iterator[Any]:
    for name in dir(type(node)):
        if name.startswith(_PREFIX):
            value = getattr(node, name)
            yield from value if isinstance(value, tuple | list) else (value,)


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return bool(one.numel() and one.untyped_storage()._cdata == other.untyped_storage()._cdata)
