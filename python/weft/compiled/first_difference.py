# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which op of a program differs first from PyTorch, for the report of one that was kept away.

Every op's value becomes a result of a program made for this, and is compared with what PyTorch's
own kernel makes of the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map_only

from weft import frontend
from weft.artifacts.builds import build
from weft.artifacts.load import LoadedArtifact
from weft.frontend.inplace import mutates
from weft.frontend.locations import location_of

if TYPE_CHECKING:
    from weft.compiled.specialize import Specialized

# Relative to the mean of an op's result: an op's own rounding.
_TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@dataclass(frozen=True)
class Values:
    """graph: with the results of all ops. inputs: its own. expected, places: of each op, what
    PyTorch computes, and `aten.tanh.default at model.py:12 (forward)`."""

    graph: bytes
    inputs: list[torch.Tensor]
    expected: list[torch.Tensor]
    places: list[str]


def explain(specialized: Specialized, values: Callable[[], Values]) -> str:
    """`, first in aten.tanh.default at model.py:12 (forward)`; also left in WEFT_DUMP's folder as
    `difference.txt`. values: those of the program, made anew."""
    try:
        with torch.no_grad():
            found = _first_difference(specialized, values())
    except Exception as error:  # the program may be what does not compile in this form
        found = f", in an op that cannot be told ({type(error).__name__}: {error})"
    if folder := os.environ.get("WEFT_DUMP"):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "difference.txt"), "a", encoding="utf-8") as file:
            file.write(f"{specialized.shapes}{found}\n")
    return found


def values_of(
    program: torch.export.ExportedProgram, inputs: dict[frontend.InputSource, torch.Tensor]
) -> Values:
    """What PyTorch's kernels make of these inputs, op by op."""
    everything = frontend.lower_all_values(program)
    by_key = {_key(source): tensor for source, tensor in inputs.items()}
    by_name = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    given = []
    for node, source in everything.inputs:
        tensor = by_key.get(_key(source))
        if tensor is None:  # only values that the result does not need read it
            tensor = torch.zeros_like(node.meta["val"], device="cpu")
        given.append(tensor)
        by_name[node.name] = tensor
    computed = _computed(everything.ops[0].graph, by_name)
    expected = [computed[op] for op in everything.ops]
    return Values(everything.graph, given, expected, list(map(_place, everything.ops)))


def _key(source: frontend.InputSource) -> tuple:
    return (source.kind, source.index, source.name)


def _computed(graph: torch.fx.Graph, inputs: dict[str, Any]) -> dict[torch.fx.Node, Any]:
    """The values of all nodes when they are computed: later ones may write them. inputs: those of
    the placeholders, by name."""
    env: dict[torch.fx.Node, Any] = {}
    seen: dict[torch.fx.Node, Any] = {}
    writes = any(mutates(node) for node in graph.nodes)
    for node in graph.nodes:
        if node.op == "placeholder":
            env[node] = inputs[node.name]
        elif node.op == "get_attr":
            env[node] = getattr(node.graph.owning_module, node.target)
        elif node.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
            env[node] = node.target(*args, **kwargs)
        if node in env:
            value = env[node]
            seen[node] = tree_map_only(torch.Tensor, torch.clone, value) if writes else value
    return seen


def _place(op: torch.fx.Node) -> str:
    location = location_of(op)
    return str(op.target) if location is None else f"{op.target} at {location}"


def _first_difference(specialized: Specialized, values: Values) -> str:
    made = build(values.graph, specialized.build.options)
    results = LoadedArtifact(made.artifact)(*values.inputs)
    for expected, own, place in zip(values.expected, results, values.places, strict=True):
        if _differs(expected, own):
            return f", first in {place}"
    return ", though each of its ops alone does"


def _differs(expected: torch.Tensor, own: torch.Tensor) -> bool:
    if not expected.is_floating_point():
        return not torch.equal(expected, own)
    x, y = expected.double(), own.double()
    bound = _TOLERANCES[expected.dtype] * (x.abs() + x[x.isfinite()].abs().mean())
    same = (x == y) | (x.isnan() & y.isnan()) | ((x - y).abs() <= bound)
    return not bool(same.all())
