# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which inputs of a graph autograd connects with which of its results."""

from __future__ import annotations

import functools
import operator
from collections.abc import Container, Mapping, Sequence
from typing import Any

from weft.frontend.dtypes import DTYPES
from weft.frontend.evaluation import segment_sizes
from weft.frontend.graph import STOPS_GRADIENT
from weft.frontend.interpreter import result_counts

# Ops whose results are not floats, whatever their operands are.
_DISCRETE = frozenset({"weft.cmp", "weft.arg_reduce"})


def connections(document: dict[str, Any], wrt: Sequence[int]) -> list[list[bool]]:
    """For each result of the graph and each input of `wrt`, whether a gradient may pass between
    them.

    document: the graph, lowered for training. For a scan's results all steps count.
    """
    # For each value the inputs that reach it, as bits.
    reached: list[int] = [0] * len(document["inputs"])
    for place, number in enumerate(wrt):
        reached[number] |= 1 << place
    _follow(document, reached)
    return [
        [bool(reached[output["value"]] >> place & 1) for place in range(len(wrt))]
        for output in document["outputs"]
    ]


def within(
    document: dict[str, Any], outputs: Sequence[int], read: Container[int | None]
) -> dict[int, tuple[int, ...]]:
    """For each of these results of a graph that is computed from others of them, in a way that
    passes gradients, the numbers of the others; in an order in which a result follows the ones that
    it is computed from.

    read: the results that others may be computed from; a copy counts as the tensor that it copies.
    """
    value = {number: document["outputs"][number]["value"] for number in outputs}
    ordered = sorted(outputs, key=value.__getitem__)
    own = {value[number]: 1 << place for place, number in enumerate(ordered) if number in read}
    reached = [0] * len(document["inputs"])
    _follow(document, reached, own)
    found = {
        number: tuple(
            other
            for other in ordered
            if value[other] != value[number]
            and other in read
            and reached[value[number]] & own[value[other]]
        )
        for number in ordered
    }
    return {number: others for number, others in found.items() if others}


def parts(document: dict[str, Any], wrt: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """For each of these results of a graph the number of its part. Results of different parts have
    no values that pass gradients in common, so that autograd runs and frees them separately."""
    reached = [0] * len(document["inputs"])
    for number in wrt:
        reached[number] = 1
    _follow(document, reached)
    leads = [0] * len(reached)  # for each value the results that it leads to, as bits
    for place, number in enumerate(outputs):
        leads[document["outputs"][number]["value"]] |= 1 << place
    found = [1 << place for place in range(len(outputs))]
    first = len(reached)
    for node, count in reversed([*zip(document["nodes"], result_counts(document), strict=True)]):
        first -= count
        together = functools.reduce(operator.or_, leads[first : first + count], 0)
        if together and any(reached[first : first + count]):
            for operand in node["in"]:
                leads[operand] |= together
            apart = [each for each in found if not each & together]
            joined = [each for each in found if each & together]
            found = [*apart, functools.reduce(operator.or_, joined)]
    return [
        next(number for number, each in enumerate(found) if each >> place & 1)
        for place in range(len(outputs))
    ]


def computed_of(document: dict[str, Any], number: int) -> set[int]:
    """The values of a graph from which this result is computed in any way, including its own."""
    producers: dict[int, Sequence[int]] = {}
    first = len(document["inputs"])
    for node, count in zip(document["nodes"], result_counts(document), strict=True):
        producers.update(dict.fromkeys(range(first, first + count), node["in"]))
        first += count
    pending = [document["outputs"][number]["value"]]
    found = set(pending)
    while pending:
        new = {*producers.get(pending.pop(), ())} - found
        found |= new
        pending += new
    return found


def has_empty_values(document: dict[str, Any]) -> bool:
    """Whether any value of the graph has no elements."""
    return any(0 in shape for node in document["nodes"] for _, shape in node.get("types", ()))


def _follow(
    block: dict[str, Any], reached: list[int], own: Mapping[int, int] | None = None
) -> None:
    """Appends what reaches the results of the nodes of a graph, or of a scan's body. own: bits that
    values have by themselves."""
    for node, count in zip(block["nodes"], result_counts(block), strict=True):
        operands = [reached[operand] for operand in node["in"]]
        if node["op"] in _DISCRETE or node["attrs"].get(STOPS_GRADIENT):
            results = [0] * count
        elif node["op"] == "weft.scan":
            results = _of_scan(node, operands)
        else:
            results = [functools.reduce(operator.or_, operands, 0)] * count
        first = len(reached)
        reached.extend(
            (bits if _may_be_float(node, place) else 0) | (own or {}).get(first + place, 0)
            for place, bits in enumerate(results)
        )


def _of_scan(node: dict[str, Any], operands: list[int]) -> list[int]:
    """What reaches the states, and the outputs of any step."""
    body = node["body"]
    carried, *_ = segment_sizes(node["attrs"])
    states = operands[:carried]
    while True:
        reached = [*states, *operands[carried:]]
        _follow(body, reached)
        results = [reached[number] for number in body["outputs"]]
        after = [a | b for a, b in zip(states, results)]
        if after == states:
            return [*states, *results[carried:]]
        states = after


def _may_be_float(node: dict[str, Any], place: int) -> bool:
    if types := node.get("types"):
        return DTYPES[types[place][0]].is_floating_point
    return node["op"] != "weft.sort" or place == 0
