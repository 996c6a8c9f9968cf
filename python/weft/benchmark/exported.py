# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's own exported program as what is measured."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from weft import errors
from weft.benchmark.case import Case


def load_exported(path: Path, inputs: Path | None) -> Case:
    """The case of an exported program.

    inputs: a file of torch.save: a tuple or list of positional arguments, or a dict of
    keyword arguments; without it, the arguments that the program was exported with.
    Raises: errors.ConfigError, if there are none, or a file holds something else; OSError.
    """
    program = _loaded(torch.export.load, path)
    args, kwargs = _arguments(program, path, inputs)
    return Case(path.name, program.module(), args, kwargs, program)


def _arguments(
    program: torch.export.ExportedProgram, path: Path, inputs: Path | None
) -> tuple[tuple, dict[str, Any]]:
    if inputs is None:
        if program.example_inputs is None:
            raise errors.ConfigError(f"expected --inputs, as {path} holds no example inputs")
        args, kwargs = program.example_inputs
        return tuple(args), dict(kwargs)
    return stored_inputs(inputs)


def stored_inputs(inputs: Path) -> tuple[tuple, dict[str, Any]]:
    """Positional and keyword arguments from a file of torch.save.

    Raises: errors.ConfigError, if the file holds something else; OSError.
    """
    found = _loaded(functools.partial(torch.load, weights_only=True), inputs)
    if isinstance(found, tuple | list):
        return tuple(found), {}
    if isinstance(found, dict):
        return (), found
    kind = type(found).__qualname__
    raise errors.ConfigError(f"expected a tuple, list or dict in {inputs}, found a {kind}")


def _loaded(load: Callable[[Path], Any], path: Path) -> Any:
    try:
        return load(path)
    except OSError:
        raise
    except Exception as error:  # PyTorch has no type for a file of another format
        line = str(error).strip().partition("\n")[0]
        raise errors.ConfigError(f"{path} cannot be loaded: {line}") from error
