# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What else there is to know of a program that torch.export has made."""

from __future__ import annotations

import hashlib

import torch

from weft.frontend.asking import strides_in_eager
from weft.frontend.strides import is_static


def digest_of(program: torch.export.ExportedProgram) -> str:
    """Equal for programs that call the same operations with the same arguments."""
    bodies = [
        str(module.graph)
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
    ]
    return hashlib.blake2b("\n".join(bodies).encode(), digest_size=16).hexdigest()


def strides_of(program: torch.export.ExportedProgram) -> tuple[tuple[int, ...] | None, ...]:
    """Of the leaves of the value returned."""
    (output,) = program.graph.find_nodes(op="output")
    kinds = program.graph_signature.output_specs
    user = [
        node
        for node, spec in zip(output.args[0], kinds, strict=True)
        if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    return tuple(
        strides_in_eager(node)
        if isinstance(node, torch.fx.Node)
        and isinstance(node.meta.get("val"), torch.Tensor)
        and is_static(node.meta["val"])
        else None
        for node in user
    )
