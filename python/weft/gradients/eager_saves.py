# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What autograd saves for a call in eager execution. It decides whether a change between a forward
and its backward has an effect.

Changing a saved tensor in place is an error, and changing any other tensor is allowed. If a tensor
is given other memory (`p.data = new`), a node that saved the tensor itself reads the new memory,
while a node that saved a view of it, such as a transposed weight, reads the old memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    on the way backwards from it. freed: of each kind of nodes that saved anything, the results from
    which they are reached, by place among those that have gradients, and the inputs to which they
    lead. A backward from one of these to one of those frees them.
    """

    itself: tuple[int, ...]
    views: tuple[int, ...]
    results: tuple[int, ...]
    unread: tuple[tuple[bool, int], ...]
    reads: tuple[tuple[tuple[bool, int], ...], ...]
    freed: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

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
        freed = tuple((tuple(places), tuple(ends)) for places, ends in record["freed"])
        return Saves(itself, views, results, unread, tuple(reads), freed)


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
        _freed(nodes, Ends.of(inputs, ahead)),
    )


@dataclass(frozen=True)
class Ends:
    """Where the graph of a call ends. leaves: the inputs without a history, by identity. nodes: of
    the others' histories, with the numbers of these inputs and of their edges."""

    leaves: Mapping[int, int]
    nodes: Mapping[Node, list[tuple[int, int | None]]]

    @staticmethod
    def of(inputs: Sequence[torch.Tensor], ahead: Sequence[Node | None]) -> Ends:
        """ahead: the `grad_fn` of each input before the call."""
        leaves, nodes = dict[int, int](), dict[Node, list[tuple[int, int | None]]]()
        for number, (each, node) in enumerate(zip(inputs, ahead, strict=True)):
            if node is None:
                leaves.setdefault(id(each), number)
            else:
                edge = each.output_nr if each.grad_fn is node else None  # else the call changed it
                nodes.setdefault(node, []).append((number, edge))
        return Ends(leaves, nodes)

    def at(self, node: Node, edge: int) -> set[int] | None:
        """The inputs to which this edge of the graph leads at once; None if it goes on."""
        if node in self.nodes:
            return {number for number, its in self.nodes[node] if its in (edge, None)}
        variable = getattr(node, "variable", None)
        if variable is None:
            return None
        number = self.leaves.get(id(variable))
        return set() if number is None else {number}


def _freed(
    nodes: Sequence[set[Node]], ends: Ends
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """nodes: those that saved anything, by the place of the result."""
    reached = _reached(set().union(*nodes), ends)
    kinds = {
        (
            tuple(place for place, its in enumerate(nodes) if node in its),
            tuple(sorted(reached[node])),
        )
        for node in reached
        if any(node in its for its in nodes)
    }
    return tuple(sorted(kinds))


def _reached(starts: Iterable[Node], ends: Ends) -> dict[Node, set[int]]:
    """The inputs to which each of these nodes, and of those behind them, leads."""
    found: dict[Node, set[int]] = {}
    pending = list(starts)
    while pending:
        node = pending[-1]
        following = [(each, edge) for each, edge in node.next_functions if each is not None]
        inner = [each for each, edge in following if ends.at(each, edge) is None]
        missing = [each for each in inner if each not in found]
        if missing and node not in found:
            pending += missing
            continue
        pending.pop()
        inputs = found.setdefault(node, set())
        for each, edge in following:
            direct = ends.at(each, edge)
            inputs |= found[each] if direct is None else direct
    return found


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
