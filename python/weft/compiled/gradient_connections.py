# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which inputs of a graph autograd connects with which of its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from weft.frontend.dtypes import DTYPES
from weft.frontend.graph import STOPS_GRADIENT
from weft.frontend.interpreter import result_counts

# Whose results are no floats, whatever their operands are.
_DISCRETE = frozenset({"weft.cmp", "weft.arg_reduce"})


def connections(graph: bytes, wrt: Sequence[int]) -> list[list[bool]]:
    """For each result of the graph, for each input of `wrt`, whether a gradient may pass between.

    graph: in JSON, lowered for training.
    """
    document = json.loads(graph)
    reached: list[int] = [0] * len(document["inputs"])  # by which inputs, a bit for each
    for place, number in enumerate(wrt):
        reached[number] |= 1 << place
    for node, count in zip(document["nodes"], result_counts(document), strict=True):
        bits = 0
        if node["op"] not in _DISCRETE and not node["attrs"].get(STOPS_GRADIENT):
            for operand in node["in"]:
                bits |= reached[operand]
        reached.extend(bits if _may_be_float(node, place) else 0 for place in range(count))
    return [
        [bool(reached[output["value"]] >> place & 1) for place in range(len(wrt))]
        for output in document["outputs"]
    ]


def _may_be_float(node: dict[str, Any], place: int) -> bool:
    if types := node.get("types"):
        return DTYPES[types[place][0]].is_floating_point
    return node["op"] != "weft.sort" or place == 0
