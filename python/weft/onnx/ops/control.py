# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that run subgraphs: branches, loops, scans.

Where the condition or the number of steps is known while a program is traced, the branch is
chosen and the loop unrolled; elsewhere the trace ends there and PyTorch runs the model.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.onnx.module import Scope
from weft.onnx.table import Node, op
from weft.onnx.values import number, real_values

Results = tuple[list[Any], list[bool]]


@op("If", "then_branch else_branch", runs=True)
def if_(node: Node, scope: Scope, condition: Tensor) -> Results:
    branch = node.get("then_branch" if number(condition) else "else_branch")
    return scope.call(branch)


@op("Loop", "body", runs=True)
def loop(
    node: Node, scope: Scope, most: Tensor | None, condition: Tensor | None, *state: Any
) -> Results:
    body, carried, known = node.get("body"), list(state), scope.knows(node)[2:]
    limit = None if most is None else number(most)
    goes_on = condition is None or bool(number(condition))
    held = condition is None or scope.knows(node)[1]
    gathered: list[list[Any]] = [[] for _ in body.outputs[1 + len(state) :]]
    count = 0
    while goes_on and (limit is None or count < limit):
        scope.steps(node, count)
        with real_values():
            arguments = [torch.tensor(count), torch.tensor(goes_on), *carried]
        results, is_known = scope.call(body, arguments, [True, held, *known])
        carried, known = results[1 : 1 + len(state)], is_known[1 : 1 + len(state)]
        for each, value in zip(gathered, results[1 + len(state) :]):
            each.append(value)
        goes_on, held = bool(number(results[0])), is_known[0]
        count += 1
    stacked = [_stacked(node, each) for each in gathered]
    return carried + stacked, [*known, *[False] * len(stacked)]


def _stacked(node: Node, values: list[Tensor], axis: int = 0) -> Tensor:
    if not values:
        raise node.unsupported("a loop that runs no step and gathers values is not supported")
    return torch.stack(values, axis)


@op(
    "Scan",
    "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
    "scan_output_directions",
    since=9,
    runs=True,
)
def scan(node: Node, scope: Scope, *inputs: Any) -> Results:
    body, count = node.get("body"), node.get("num_scan_inputs")
    states = len(inputs) - count
    carried, scanned = list(inputs[:states]), inputs[states:]
    axes = node.get("scan_input_axes", [0] * count)
    backwards = node.get("scan_input_directions", [0] * count)
    outputs = _scanned(node, scope, body, carried, scanned, axes, backwards)
    gathered = len(body.outputs) - states
    out_axes = node.get("scan_output_axes", [0] * gathered)
    reversed_ = node.get("scan_output_directions", [0] * gathered)
    results = outputs[0]
    for each, axis, back in zip(outputs[1], out_axes, reversed_, strict=True):
        results.append(_stacked(node, each[::-1] if back else each, axis))
    return results, [False] * len(results)


@op("Scan", "body num_scan_inputs directions", since=8, runs=True)
def scan_8(node: Node, scope: Scope, lengths: Tensor | None, *inputs: Any) -> Results:
    """With a batch as the first axis of everything."""
    if lengths is not None:
        raise node.unsupported("sequence lengths are not supported")
    body, count = node.get("body"), node.get("num_scan_inputs")
    states = len(inputs) - count
    backwards = node.get("directions", [0] * count)
    rows = []
    for i in range(inputs[0].shape[0]):
        row = [each[i] for each in inputs]
        carried, gathered = _scanned(
            node, scope, body, row[:states], row[states:], [0] * count, backwards
        )
        rows.append(carried + [_stacked(node, each) for each in gathered])
    results = [torch.stack(each) for each in zip(*rows)]
    return results, [False] * len(results)


def _scanned(
    node: Node,
    scope: Scope,
    body: Any,
    carried: list[Any],
    scanned: Any,
    axes: list[int],
    backwards: list[int],
) -> tuple[list[Any], list[list[Any]]]:
    steps = scanned[0].shape[axes[0]]
    states = len(carried)
    gathered: list[list[Any]] = [[] for _ in body.outputs[states:]]
    scope.steps(node, steps)
    for step in range(steps):
        parts = [
            each.select(axis, steps - 1 - step if back else step)
            for each, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        arguments = [*carried, *parts]
        results, _ = scope.call(body, arguments, [False] * len(arguments))
        carried = results[:states]
        for each, value in zip(gathered, results[states:]):
            each.append(value)
    return carried, gathered


@op("SequenceMap", "body", since=17, runs=True)
def sequence_map(node: Node, scope: Scope, sequence: list[Tensor], *rest: Any) -> Results:
    body = node.get("body")
    gathered: list[list[Any]] = [[] for _ in body.outputs]
    for i, item in enumerate(sequence):
        arguments = [item, *(each[i] if isinstance(each, list) else each for each in rest)]
        results, _ = scope.call(body, arguments, [False] * len(arguments))
        for each, value in zip(gathered, results):
            each.append(value)
    return gathered, [False] * len(gathered)
