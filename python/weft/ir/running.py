# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.ir.run`: a module at any stage, on arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from weft import errors
from weft.artifacts.load import LoadedArtifact, load
from weft.ir.elements import to_array, to_tensor
from weft.ir.interpreting import interpret
from weft.ir.module import Module


def run(module: Module, stage: str, *arrays: Any, **options: Any) -> Any:
    """What `main` computes when the module has come to `stage`: `graph` is interpreted op by op,
    a later stage compiled from what the module is there.

    arrays: tensors or arrays in the order of the parameters; those that the module was captured
    with may be left out at the end, as a model's weights. options: those of `weft.compile`.
    Returns an array, or a tensor if tensors were given; a tuple of several.
    Raises: errors.IRError for arrays that do not fit; errors.CompileError.
    """
    results = executable(module, stage, **options)([to_tensor(each) for each in arrays])
    as_tensors = any(isinstance(each, torch.Tensor) for each in arrays)
    converted = tuple(each if as_tensors else to_array(each) for each in results)
    return converted[0] if len(converted) == 1 else converted


def executable(
    module: Module, stage: str, **options: Any
) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    """Runs `main` of the module at a stage on its inputs; see `run`."""
    lowered = module if stage == module.stage else module.lower(stage, **options)
    if stage == "graph":
        count = len(lowered["main"].params)
        return lambda tensors: interpret(lowered, _completed(module, tensors, count))
    return _compiled(lowered, options)


def _compiled(
    module: Module, options: dict[str, Any]
) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    program, complete = loaded(module, options)

    def call(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad():
            return list(program(*complete(tensors)))

    return call


def loaded(
    module: Module, options: dict[str, Any]
) -> tuple[LoadedArtifact, Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]]:
    """The module's program, and what makes its arguments of inputs.

    Raises: errors.CompileError.
    """
    with tempfile.TemporaryDirectory(prefix="weft-ir-") as folder:
        path = Path(folder) / "module.so"
        module.compile(path, **options)
        program = load(path)  # it stays mapped without its file

    def complete(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        tensors = _completed(module, tensors, len(program.signature))
        if len(tensors) != len(program.signature):
            names = ", ".join(spec["name"] for spec in program.signature)
            raise errors.IRError(
                f"expected {len(program.signature)} inputs ({names}), found {len(tensors)}"
            )
        return [_laid_out(t, spec) for t, spec in zip(tensors, program.signature)]

    return program, complete


def _laid_out(tensor: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    """The tensor with the strides that the program wants, a copy if it has others."""
    tensor, strides = tensor.detach(), tuple(spec["strides"])
    if list(tensor.shape) != spec["shape"] or tensor.stride() == strides:
        return tensor
    laid_out = torch.empty_strided(spec["shape"], strides, dtype=tensor.dtype)
    return laid_out.copy_(tensor)


def _completed(
    module: Module, tensors: Sequence[torch.Tensor], count: int
) -> Sequence[torch.Tensor]:
    """The tensors, completed to `count` by the last ones that the module was captured with."""
    missing = count - len(tensors)
    if 0 < missing <= len(module.tensors):
        return [*tensors, *module.tensors[-missing:]]
    return tensors
