# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In which order a backward gives its gradients, so that hooks run as in eager execution.

There the gradient of what the forward used last is ready first. A program gives all gradients at
once; which tensor autograd then goes on with is up to its queue, a heap in which all tensors that
accumulate gradients are equal.
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
    """Of each input, such that what is used later, or by an operand ahead of others, is less."""
    count = len(document["inputs"])
    uses = [(0, 0)] * count
    for index, node in reversed([*enumerate(document["nodes"])]):
        for place, operand in enumerate(node["in"]):
            if operand < count:
                uses[operand] = (-index, place)
    return uses


def _taken_from_heap(count: int) -> list[int]:
    """In which order std::priority_queue gives `count` equal elements that were put in one by one.

    Source: std::__adjust_heap of libstdc++: from the root down the right child takes its parent's
    place, as neither is less, and the last element that of the last such child.
    """
    heap, taken = [*range(count)], []
    while heap:
        taken.append(heap[0])
        last = heap.pop()
        hole, right = 0, 2
        while right < len(heap):
            heap[hole] = heap[right]
            hole, right = right, 2 * right + 2
        if right == len(heap) and right > 1:
            heap[hole] = heap[right - 1]
            hole = right - 1
        if heap:
            heap[hole] = last
    return taken
