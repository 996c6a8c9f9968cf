# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the values of a graph were computed from: how large that was and how coarsely it was
rounded. It tells how large the rounding error of a value that cancels may be."""

from __future__ import annotations

from typing import Any

import torch

from weft.frontend import interpreter
from weft.frontend.dtypes import DTYPES

# Ops that are linear in all operands, or in the first if others are numbers, so that a sum's
# rounding passes through them unchanged. In those that add, large operands may give a small result.
_ADDING = {"weft.add", "weft.sub", "weft.reduce"}
_LINEAR = {
    *_ADDING,
    "weft.broadcast_in_dim",
    "weft.convert",
    "weft.div",
    "weft.mul",
    "weft.reshape",
    "weft.slice",
    "weft.transpose",
}


class ValueHistory:
    """The history of a graph's values. values: all of them, as interpreter.run_nodes gives them."""

    def __init__(self, document: dict[str, Any], values: list[torch.Tensor]) -> None:
        self._values = values
        self._nodes: dict[int, dict[str, Any]] = {}
        self._coarsest = [_eps(each["dtype"]) for each in document["inputs"]]
        for node, count in zip(document["nodes"], interpreter.result_counts(document)):
            own = [_eps(dtype) for dtype, _ in node.get("types", ())]
            coarsest = max([0.0, *own, *(self._coarsest[each] for each in node["in"])])
            for _ in range(count):
                self._nodes[len(self._coarsest)] = node
                self._coarsest.append(coarsest)

    def coarsest_of(self, number: int) -> float:
        """The largest eps among the types of what a value was computed from."""
        return self._coarsest[number]

    def magnitude_ahead_of(self, number: int, depth: int = 2) -> float:
        """The largest magnitude of the operands of the value's op, and of their operands: if these
        cancel, their last bits remain."""
        operands = self._nodes[number]["in"] if depth and number in self._nodes else []
        sizes = [self._size(each) for each in operands]
        ahead = (self.magnitude_ahead_of(each, depth - 1) for each in operands)
        return max([0.0, *sizes, *ahead])

    def magnitude_added_up(self, number: int) -> float:
        """The largest of what was added up into a value, through linear ops; 0 if nothing was. For
        a batch norm's mean, for example, it is the largest value of the input."""
        largest, left, seen = 0.0, [number], set()
        while left:
            node = self._nodes.get(left.pop())
            if node is None or id(node) in seen or node["op"] not in _LINEAR:
                continue
            seen.add(id(node))
            if node["op"] in _ADDING:
                largest = max([largest, *map(self._size, node["in"])])
            left += node["in"]
        return largest

    def _size(self, number: int) -> float:
        value = self._values[number].detach()
        finite = value[value.isfinite()].abs() if value.is_floating_point() else value.flatten()[:0]
        return float(finite.max()) if finite.numel() else 0.0


def _eps(name: str) -> float:
    dtype = DTYPES[name]
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
