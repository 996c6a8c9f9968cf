# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph of a whole training step: the graph of a loss, to which the optimizer's part is added.

That part reads inputs that stand for the gradients; the compiler replaces these by the gradients
(weft-form-step).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import DTYPES
from weft.frontend.graph import Graph, Value
from weft.frontend.interpreter import result_counts
from weft.training.update_rules import UpdateRule, clipped


@dataclass(frozen=True)
class Updated:
    """A parameter of the step: the number of its input, its parameter group, and the group's
    rule. together: equal for parameters of one group that have been updated equally often."""

    input: int
    group: int
    rule: UpdateRule
    together: int


@dataclass(frozen=True)
class Clipping:
    """Clipping of gradients, as by torch.nn.utils.clip_grad_norm_, then clip_grad_value_."""

    max_norm: float | None
    value: float | None

    def clip(self, params: Sequence[torch.Tensor]) -> None:
        """Clips the gradients of `params` in place."""
        if self.max_norm is not None:
            torch.nn.utils.clip_grad_norm_(params, self.max_norm)
        if self.value is not None:
            torch.nn.utils.clip_grad_value_(params, self.value)


def step_graph(graph: bytes, updates: Sequence[Updated], clipping: Clipping) -> bytes:
    """The graph of the step, as JSON.

    The inputs of `graph` are followed by one input with the numbers of all parameters that are
    updated together, in the order of the first of these, then by the states of each parameter, then
    by the stand-ins for the gradients, in the order of `updates`. The outputs of `graph` are
    followed, for each parameter, by the new parameter and its new states.
    """
    document = json.loads(graph)
    update = Graph()
    b = Builder(update)
    entries = [document["inputs"][each.input] for each in updates]
    params = [_input(update, entry, "param") for entry in entries]
    numbers = {}
    for each, entry in zip(updates, entries, strict=True):
        if each.together not in numbers:
            count = len(each.rule.numbers(_ANY_GROUP, 1))
            value = Value(DTYPES[entry["dtype"]], (count,))
            numbers[each.together] = update.add_input("numbers", "input", (0,), value)
    states = [
        [_input(update, entry, slot) for slot in each.rule.slots]
        for each, entry in zip(updates, entries, strict=True)
    ]
    gradients = [_input(update, entry, "gradient") for entry in entries]
    for each, param, state, gradient in zip(
        updates, params, states, clipped(b, gradients, clipping.max_norm, clipping.value)
    ):
        if each.rule.maximize:
            gradient = b.unary("neg", gradient)
        group = numbers[each.together]
        spread = [
            b.broadcast_in_dim(b.reshape(b.slice(group, 0, n, n + 1), ()), (), param.shape)
            for n in range(group.size)
        ]
        for value in each.rule.emit(b, param, gradient, state, spread):
            update.add_output(value)
    bound = [each.input for each in updates]
    return _joined(document, json.loads(update.to_json()), bound)


# Hyperparameters of an arbitrary group, to count the numbers that a rule reads.
_ANY_GROUP = {
    "lr": 0.1, "weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0, "betas": (0.5, 0.5),
    "eps": 1.0,
}  # fmt: skip


def _input(graph: Graph, entry: dict[str, Any], name: str) -> Value:
    value = Value(DTYPES[entry["dtype"]], tuple(entry["shape"]))
    return graph.add_input(name, "input", range(value.rank), value)


def _joined(first: dict[str, Any], second: dict[str, Any], bound: Sequence[int]) -> bytes:
    """Both graphs in one, where the first inputs of `second` are the inputs `bound` of `first`."""
    own, added = len(first["inputs"]), len(second["inputs"]) - len(bound)
    results = sum(result_counts(first))
    others = len(second["inputs"])

    def of_first(value: int) -> int:
        return value if value < own else value + added

    def of_second(value: int) -> int:
        if value < len(bound):
            return bound[value]
        if value < others:
            return own + value - len(bound)
        return own + added + results + value - others

    taken = {entry["name"] for entry in first["inputs"]}
    for entry in second["inputs"][len(bound) :]:
        while entry["name"] in taken:
            entry["name"] += "_"
        taken.add(entry["name"])
    locations = first["locs"]
    document = {
        "version": first["version"],
        "name": first["name"],
        "inputs": first["inputs"] + second["inputs"][len(bound) :],
        "nodes": [_renumbered(node, "in", of_first) for node in first["nodes"]]
        + [_renumbered(node, "in", of_second) for node in second["nodes"]],
        "outputs": [{**each, "value": of_first(each["value"])} for each in first["outputs"]]
        + [{**each, "value": of_second(each["value"])} for each in second["outputs"]],
        "locs": {**locations, "nodes": locations["nodes"] + [None] * len(second["nodes"])},
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _renumbered(node: dict[str, Any], key: str, number) -> dict[str, Any]:
    return {**node, key: [number(value) for value in node[key]]}
