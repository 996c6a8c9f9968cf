# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What autograd saves for a call in eager execution. It decides whether a change between a forward
and its backward has an effect.

Changing a saved tensor in place is an error, and changing any other tensor is allowed. If a tensor
is given other memory (`p.data = new`), a node that saved the tensor itself reads the new memory,
while a node that saved a view of it, such as a transposed weight, reads the old memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.autograd.graph import Node

_PREFIX = "_raw_saved_"

# Nodes that save their operands only for their sizes, since the elements that they need are in a
# result. Everything that other nodes save counts as read.
_OF_SIZES = frozenset(
    (
        *("AdaptiveMaxPool2DBackward0", "AdaptiveMaxPool3DBackward0", "CummaxBackward0"),
        *("CumminBackward0", "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0"),
        *("MaxPool2DWithIndicesBackward0", "MaxPool3DWithIndicesBackward0"),
    )
)


@dataclass(frozen=True)
class Saves:
    """What nodes of autograd have saved, by number.

    itself: inputs of the graph that were saved themselves. views: inputs of which another tensor in
    the same memory was saved. results: saved results. unread: pairs (whether an input, number) that
    are saved only for their sizes: they must not change, but their elements are not read; they are
    in none of the former. reads: for each result that has gradients, which of these pairs are read
    on the way backwards from it. shares: for each pair of such results, whether their ways share
    nodes that saved anything, which are gone after a backward from one of them.
    """

    itself: tuple[int, ...]
    views: tuple[int, ...]
    results: tuple[int, ...]
    unread: tuple[tuple[bool, int], ...]
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
        """Reads a record. Raises: KeyError, TypeError, if it is not one."""
        if record is None:
            return None
        unread, *reads = (
            tuple((bool(is_input), int(number)) for is_input, number in each)
            for each in (record["unread"], *record["reads"])
        )
        itself, views, results = (tuple(record[name]) for name in ("itself", "views", "results"))
        shares = tuple(map(tuple, record["shares"]))
        return Saves(itself, views, results, unread, tuple(reads), shares)


def saves_of_call(
    inputs: Sequence[torch.Tensor],
    results: Mapping[int, torch.Tensor],
    outputs: Sequence[torch.Tensor | None],
    ahead: Sequence[Node | None],
) -> Saves | None:
    """What is saved for a call. inputs, results: of the graph, in eager execution. outputs: the
    results that have gradients. ahead: the `grad_fn` of each input before the call. None if hooks
    have taken the saved tensors."""
    borders = {node for node in ahead if node is not None}
    itself, views, found = set[int](), set[int](), set[int]()
    unread = set[tuple[bool, int]]()
    reads, nodes = list[tuple[tuple[bool, int], ...]](), list[set[Node]]()
    for output in outputs:
        kept = None if output is None else _saved(output.grad_fn, borders)
        if output is not None and kept is None:
            return None
        read = set[tuple[bool, int]]()
        nodes.append(set(kept or ()))
        for tensor, is_read in itertools.chain.from_iterable((kept or {}).values()):
            saved = {(True, n) for n, each in enumerate(inputs) if _is_of(tensor, each)}
            saved |= {(False, n) for n, each in results.items() if _share_memory(tensor, each)}
            read |= saved
            if not is_read:
                unread |= saved
                continue
            of_inputs = {number for is_input, number in saved if is_input}
            found |= {number for is_input, number in saved if not is_input}
            is_itself = {number for number in of_inputs if tensor is inputs[number]}
            itself |= is_itself
            views |= of_inputs - is_itself
        reads.append(tuple(sorted(read)))
    unread -= {(True, n) for n in itself | views} | {(False, n) for n in found}
    return Saves(
        tuple(sorted(itself)),
        tuple(sorted(views)),
        tuple(sorted(found)),
        tuple(sorted(unread)),
        tuple(reads),
        tuple(tuple(bool(one & other) for other in nodes) for one in nodes),
    )


def _saved(
    start: Node | None, borders: set[Node]
) -> dict[Node, list[tuple[torch.Tensor, bool]]] | None:
    """What the nodes from `start` to `borders` have saved, and whether they read its elements; None
    if hooks have taken the saved tensors."""
    pending, seen = [start], {start}
    found: dict[Node, list[tuple[torch.Tensor, bool]]] = {}
    while pending:
        node = pending.pop()
        if node is None or node in borders:
            continue
        for name, each in _raw(node):
            if each.unpack_hook is not None:
                return None
            if isinstance(each.data, torch.Tensor):
                is_read = name != "self" or node.name() not in _OF_SIZES
                found.setdefault(node, []).append((each.data, is_read))
        for following, _ in node.next_functions:
            if following not in seen:
                seen.add(following)
                pending.append(following)
    return found


def _raw(node: Node) -> Iterator[tuple[str, Any]]:
    for name in dir(type(node)):
        if name.startswith(_PREFIX):
            value = getattr(node, name)
            for each in value if isinstance(value, tuple | list) else (value,):
                yield name.removeprefix(_PREFIX), each


def _is_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor is other or _share_memory(tensor, other)


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return bool(one.numel() and one.untyped_storage()._cdata == other.untyped_storage()._cdata)
