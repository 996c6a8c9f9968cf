# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interprets what the frontend makes from a call of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.frontend import Lowered, lower
from weft.frontend.interpreter import run_graph


def run_module(module: torch.nn.Module, args: tuple, kwargs: dict | None = None) -> tuple:
    """Exports, lowers and interprets a call. Gives the flat outputs, after applying effects, and
    `Lowered`."""
    kwargs = kwargs or {}
    with torch.no_grad():
        program = torch.export.export(module, args, kwargs)
        lowered = lower(program)
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        return run_lowered(lowered, module, flat), lowered


def run_lowered(lowered: Lowered, module: torch.nn.Module, flat: Sequence[Any]) -> list[Any]:
    def source(entry) -> torch.Tensor:
        match entry.kind:
            case "user":
                return flat[entry.index]
            case "parameter":
                return module.get_parameter(entry.name)
            case "buffer":
                return module.get_buffer(entry.name)
        return entry.tensor

    results = run_graph(lowered.graph, [source(entry).detach() for entry in lowered.inputs])
    for target in lowered.outputs:
        if target.kind == "buffer":
            module.get_buffer(target.name).copy_(results[target.result])
        elif target.kind == "input":
            flat[target.index].copy_(results[target.result])
    leaves: list[Any] = []

    def leaf(target) -> Any:
        if target.kind == "constant":
            return target.value
        if target.view is None:
            return results[target.result]
        view = target.view
        base = view.base
        tensor = leaf(lowered.outputs[base]) if isinstance(base, int) else source(base)
        if view.identity:
            return tensor
        tensor = tensor.as_strided((0,), (1,), tensor.storage_offset()).view(view.dtype)
        return tensor.as_strided(view.sizes, view.strides, tensor.storage_offset() + view.offset)

    for target in lowered.outputs:
        if target.kind in ("user", "constant"):
            leaves.append(leaf(target))
    return leaves
