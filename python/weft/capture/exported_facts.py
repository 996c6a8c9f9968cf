# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What else there is to know of a program that torch.export has made."""

from __future__ import annotations

import hashlib

import torch

from weft.frontend.layouts import strides_in_eager
from weft.frontend.strides import is_static


def digest_of(program: torch.export.ExportedProgram) -> str:
    """Equal for programs that call the same operations with the same arguments."""
    calls = (
        f"{node.op} {node.name} {_name(node)} {node.args} {node.kwargs}"
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )
    return hashlib.blake2b("\n".join(calls).encode(), digest_size=16).hexdigest()


def _name(node: torch.fx.Node) -> str:
    """What it calls, by a name that is the same in each process."""
    if isinstance(node.target, (str, torch._ops.OpOverload)):
        return str(node.target)
    return node._pretty_print_target(node.target)


def strides_of(program: torch.export.ExportedProgram) -> tuple[tuple[int, ...] | None, ...]:
    """The strides of the leaves of the value returned."""
    return tuple(None if node is None else _strides(node) for node in _leaves(program))


def layouts_of(
    program: torch.export.ExportedProgram,
) -> tuple[tuple[tuple[int, ...], int] | None, ...]:
    """Strides and offset of the leaves of the value returned, None of what is no tensor."""
    found: list[tuple[tuple[int, ...], int] | None] = []
    for node in _leaves(program):
        strides = None if node is None else _strides(node)
        if node is None or strides is None:
            found.append(None)
            continue
        is_as_traced = strides == tuple(map(int, node.meta["val"].stride()))
        found.append((strides, int(node.meta["val"].storage_offset()) if is_as_traced else 0))
    return tuple(found)


def _strides(node: torch.fx.Node) -> tuple[int, ...]:
    return tuple(map(int, strides_in_eager(node)))


def _leaves(program: torch.export.ExportedProgram) -> list[torch.fx.Node | None]:
    """The returned tensors whose sizes are numbers, with None for the others."""
    (output,) = program.graph.find_nodes(op="output")
    kinds = program.graph_signature.output_specs
    user = [
        node
        for node, spec in zip(output.args[0], kinds, strict=True)
        if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    return [
        node
        if isinstance(node, torch.fx.Node)
        and isinstance(node.meta.get("val"), torch.Tensor)
        and is_static(node.meta["val"])
        else None
        for node in user
    ]
