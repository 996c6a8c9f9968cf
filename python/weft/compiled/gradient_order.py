# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which a backward gives its gradients, so that hooks run as in eager execution.

There the gradient of the tensor that the forward used last is ready first. A program gives all
gradients at once; with which tensor autograd then goes on depends on its queue, a heap in which all
nodes that accumulate gradients are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def in_order_of_hooks(document: dict[str, Any], wrt: Sequence[int]) -> tuple[int, ...]:
    """The inputs `wrt` in the order in which the gradients are to be given.

    document: the graph.
    """
    last = sorted(wrt, key=_first_uses(document).__getitem__)
    places = _taken_from_heap(len(last))
    given = [0] * len(last)
    for place, number in zip(places, last, strict=True):
        given[place] = number
    return tuple(given)


def _first_uses(document: dict[str, Any]) -> list[tuple[int, int]]:
    """A key for each input by its first use: the later the first use, the smaller the key; among
    the operands of one op, the first has the smallest key."""
    count = len(document["inputs"])
    uses = [(0, 0)] * count
    for index, node in reversed([*enumerate(document["nodes"])]):
        for place, operand in enumerate(node["in"]):
            if operand < count:
                uses[operand] = (-index, place)
    return uses


def in_segments(
    document: dict[str, Any], wrt: Sequence[int], sizes: Sequence[int], count: int
) -> list[tuple[int, ...]]:
    """The inputs `wrt` in at most `count` segments of about equal numbers of bytes, beginning with
    the inputs whose gradients are ready first. Within a segment they are in the order in which
    gradients are to be given, if these are followed by what leads to the next segment.

    sizes: of `wrt`, in bytes.
    """
    uses, size = _first_uses(document), dict(zip(wrt, sizes, strict=True))
    ready = sorted(wrt, key=uses.__getitem__)
    total = max(sum(sizes), 1)
    groups: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for number in ready:
        groups[min(before * count // total, count - 1)].append(number)
        before += size[number]
    groups = [group for group in groups if group]
    segments = []
    for place, group in enumerate(groups):
        leads_on = place + 1 < len(groups)
        given = [0] * len(group)
        for at, number in zip(_taken_from_heap(len(group), leads_on), group, strict=True):
            given[at] = number
        segments.append(tuple(given))
    return segments


def _taken_from_heap(count: int, leads_on: bool = False) -> list[int]:
    """The order in which std::priority_queue gives `count` equal elements that were put in one by
    one, followed, if it `leads_on`, by one that is less.

    Source: std::__adjust_heap of libstdc++. From the root down the right child takes its parent's
    place, unless it is less than the left one, and the last element takes the place of the last
    such child, or of one above it that is less.
    """
    heap, taken = [*range(count + leads_on)], list[int]()
    while len(taken) < count:
        taken.append(heap[0])
        last = heap.pop()
        hole, child = 0, 2
        while child < len(heap):
            child -= heap[child] == count
            heap[hole] = heap[child]
            hole, child = child, 2 * child + 2
        if child == len(heap) and child > 1:
            heap[hole] = heap[child - 1]
            hole = child - 1
        while hole and last != count and heap[(hole - 1) // 2] == count:
            heap[hole], hole = count, (hole - 1) // 2
        if heap:
            heap[hole] = last
    return taken
