# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reference interpreter of the JSON graph, on torch: evaluation.py says what each op means.

The oracle of the frontend's tests, and in float64 that of a program's first call. It computes
shapes itself, from the ops' definitions, so a graph whose explicit types disagree with them fails
here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from weft.frontend.dtypes import DTYPES
from weft.frontend.evaluation import EVALUATE, Attrs, check_operands, segment_sizes
from weft.frontend.graph import STOPS_GRADIENT
from weft.frontend.random_rounding import RandomRounding


def run_graph(
    graph: bytes, inputs: Sequence[torch.Tensor], *, double: bool = False
) -> list[torch.Tensor]:
    """The results of the graph on tensors given in the order of its inputs.

    double: floats of every width are float64.
    """
    document = json.loads(graph)
    values = run_nodes(document, inputs, double=double)
    return [values[output["value"]] for output in document["outputs"]]


_RESULTS = {"weft.sort": 2, "weft.assert": 0}


def result_counts(document: dict[str, Any]) -> list[int]:
    """How many results each node has."""
    return [_RESULTS.get(node["op"], len(node.get("types", ())) or 1) for node in document["nodes"]]


def run_nodes(
    document: dict[str, Any],
    inputs: Sequence[torch.Tensor],
    *,
    double: bool = False,
    held: Mapping[int, torch.Tensor] | None = None,
    rounding: RandomRounding | None = None,
) -> list[torch.Tensor]:
    """All values of a graph: its inputs, then the results of its nodes. held: in the place of such
    results, by the numbers of the values. rounding: moves values by their last bits."""

    def of(dtype: torch.dtype) -> torch.dtype:
        return torch.float64 if double and dtype.is_floating_point else dtype

    values = [each.to(of(each.dtype)) for each in inputs]
    for entry, value in zip(document["inputs"], values, strict=True):
        assert (of(DTYPES[entry["dtype"]]), entry["shape"]) == (value.dtype, list(value.shape)), (
            entry
        )
        assert sorted(entry["order"]) == list(range(value.dim())), entry
    if rounding is not None:
        values = [rounding.input(each) for each in values]
    _run(document["nodes"], values, of, held, rounding)
    return values


def _run(
    nodes,
    values: list[torch.Tensor],
    of: Callable[[torch.dtype], torch.dtype],
    held: Mapping[int, torch.Tensor] | None = None,
    rounding: RandomRounding | None = None,
) -> None:
    """Appends the results of all nodes. of: the type in which one is computed."""
    for node in nodes:
        operands = [values[number] for number in node["in"]]
        check_operands(node["op"], operands)
        if (level := node.get("level")) is not None:
            operands[level] = _with_level_slope(operands[level])
        types = [(of(DTYPES[dtype]), tuple(shape)) for dtype, shape in node.get("types", ())]
        if node["op"] == "weft.scan":
            results = _scan(node, operands, of, rounding)
        else:
            results = EVALUATE[node["op"]](node, node["attrs"], operands, types)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        if node["attrs"].get(STOPS_GRADIENT):
            results = [result.detach() for result in results]
        results = [result.to(of(result.dtype)) for result in results]
        for result, (dtype, shape) in zip(results, types):
            assert (result.dtype, tuple(result.shape)) == (dtype, shape), node
        if rounding is not None:
            results = [rounding.result(node, operands, result) for result in results]
        if held:
            results = [held.get(len(values) + n, result) for n, result in enumerate(results)]
        values.extend(results)


def _with_level_slope(x: torch.Tensor) -> torch.Tensor:
    """x, whose gradient is a function of x to autograd, with a derivative of zeros, as that of
    PyTorch's threshold is: by an op that has such a derivative and is x itself."""
    return torch.nn.functional.leaky_relu(x, 1.0)


def _scan(
    node,
    operands,
    of: Callable[[torch.dtype], torch.dtype],
    rounding: RandomRounding | None,
) -> list[torch.Tensor]:
    body = node["body"]

    def step(values: list[torch.Tensor]) -> list[torch.Tensor]:
        for value, (dtype, shape) in zip(values, body["arguments"], strict=True):
            assert (value.dtype, list(value.shape)) == (of(DTYPES[dtype]), shape), node
        _run(body["nodes"], values, of, rounding=rounding)
        return [values[number] for number in body["outputs"]]

    return repeat_step(step, node["attrs"], operands)


Step = Callable[[list[torch.Tensor]], list[torch.Tensor]]


def repeat_step(
    step: Step, attrs: Attrs, operands: Sequence[torch.Tensor], rest: Step | None = None
) -> list[torch.Tensor]:
    """The results of a scan of at least one step. step: from states, elements and invariants to the
    next states and the outputs, of as many steps as `attrs` says, those of one sequence or output
    together. rest: one step, for what is left at the end.
    """
    carried, read, kept, *_ = segment_sizes(attrs)
    factor, ahead = attrs.get("factor") or 1, carried + read
    states, sequences = operands[:carried], operands[carried:ahead]
    steps = range(attrs["length"])
    left = list(reversed(steps) if attrs["reverse"] else steps)
    outputs: dict[int, list[torch.Tensor]] = {}
    while left:
        run, invariants = step, operands[ahead : ahead + kept]
        if len(left) < factor:
            run, invariants = rest, operands[ahead + kept :]
        size = factor if run is step else 1
        now, left = left[:size], left[size:]
        elements = [sequence[number] for sequence in sequences for number in now]
        results = run([*states, *elements, *invariants])
        states = results[:carried]
        outputs |= {number: results[carried + i :: size] for i, number in enumerate(now)}
    stacked = zip(*(outputs[number] for number in steps), strict=True)
    return [*states, *(torch.stack(rows) for rows in stacked)]
