# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that a program makes one by one of all steps of a loop, as `sum(outputs)` of a list does, as
one reduction: the graph is then the same however many steps there are."""

from __future__ import annotations

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Graph, Node, Value

# Of other types PyTorch rounds each partial sum.
_TYPES = (torch.float32, torch.float64, torch.int64, torch.int32)


def join_sums_of_steps(graph: Graph) -> None:
    """In place. What else reads a partial sum goes on doing so."""
    makers = {id(value): node for node in graph.nodes for value in node.results}
    chains = _Chains(makers)
    whole: dict[int, Value] = {}  # what each sum is of, by its node
    for node in graph.nodes:
        if node.op == "weft.add" and (of := chains.whole_of(node)) is not None:
            whole[id(node)] = of
    if not whole:
        return
    nodes, location, graph.nodes = graph.nodes, graph.location, []
    builder = Builder(graph)
    for node in nodes:
        if id(node) not in whole:
            graph.nodes.append(node)
            continue
        graph.location = node.location
        builder.reduce("sum", whole[id(node)], [0])
        graph.nodes[-1].results = node.results
    graph.location = location
    graph.prune()


class _Chains:
    """makers: the node of each value, by identity."""

    def __init__(self, makers: dict[int, Node]) -> None:
        self._makers = makers
        # Of what the first steps are summed, and how many.
        self._sums: dict[int, tuple[Value, int]] = {}

    def whole_of(self, add: Node) -> Value | None:
        """The value all of whose steps the sum adds, each once and in order."""
        left, right = map(self._shown, add.operands)
        step, before = self._step(right), self._sums.get(id(left))
        if self._is_zero(right):  # with which `sum` begins
            step, before = self._step(left), None
        elif before is None and (first := self._step(left)) is not None and first[1] == 0:
            before = (first[0], 1)
        if step is None or add.results[0].dtype not in _TYPES:
            return None
        of, number = step
        if number != (0 if before is None else before[1]) or (before and before[0] is not of):
            return None
        self._sums[id(add.results[0])] = (of, number + 1)
        return of if number + 1 == of.shape[0] else None

    def _shown(self, value: Value) -> Value:
        """What a broadcast that does nothing shows."""
        node = self._makers.get(id(value))
        while node is not None and node.op == "weft.broadcast_in_dim":
            (x,) = node.operands
            if x.shape != value.shape or list(node.attrs["dims"]) != list(range(x.rank)):
                break
            value, node = x, self._makers.get(id(x))
        return value

    def _step(self, value: Value) -> tuple[Value, int] | None:
        """The value whose step this is, along the first dim, and the number of the step."""
        node = self._makers.get(id(value))
        if node is None or node.op != "weft.reshape":
            return None
        node = self._makers.get(id(node.operands[0]))
        if node is None or node.op != "weft.slice":
            return None
        (x,), start = node.operands, node.attrs["start"]
        one = (start[0] + 1, *x.shape[1:])
        if value.shape != x.shape[1:] or tuple(node.attrs["limit"]) != one or any(start[1:]):
            return None
        return x, start[0]

    def _is_zero(self, value: Value) -> bool:
        node = self._makers.get(id(value))
        return (
            node is not None
            and node.op == "weft.constant"
            and node.attrs["value"].get("splat") == 0
        )
