# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's kernels compute op by op in a program, to find the first one that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from weft import frontend
from weft.frontend.inplace import mutates
from weft.frontend.locations import location_of


@dataclass(frozen=True)
class Values:
    """graph: with the results of all ops. inputs: its own. expected, places: of each op, what
    PyTorch computes, and `aten.tanh.default at model.py:12 (forward)`."""

    graph: bytes
    inputs: list[torch.Tensor]
    expected: list[torch.Tensor]
    places: list[str]


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
