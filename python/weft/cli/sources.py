# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the command line is given to work on: a .onnx or .pt2 file, or a factory in a .py file,
with the inputs of one call."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from weft import errors
from weft.benchmark.case import Case
from weft.benchmark.exported import load_exported, stored_inputs
from weft.benchmark.systems import REFERENCE, SYSTEMS, Prepared, float64
from weft.cli.main import form_of


@dataclass(frozen=True)
class Source:
    """A `Subject` of measurements. inputs: a file of torch.save. shapes: of the inputs of an ONNX
    model that leaves them open."""

    text: str
    inputs: Path | None = None
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def name(self) -> str:
        return Path(self.text).name

    def load(self) -> Case:
        """The module with the arguments of a call.

        Raises: errors.Error, saying what is wrong with the files; OSError.
        """
        form = form_of(self.text)
        if form == "onnx":
            return self._onnx()
        if form == "pt2":
            return load_exported(Path(self.text), self.inputs)
        return self._factory()

    def system(self, name: str) -> Callable[[Case, int], Prepared]:
        return {**SYSTEMS, REFERENCE: float64}[name]

    def _onnx(self) -> Case:
        from weft.onnx.graph import read_model
        from weft.onnx.module import OnnxModule

        module = OnnxModule(read_model(self.text)).eval()
        names = [each.name for each in module.graph.inputs]
        unknown = [name for name, _ in self.shapes if name not in names]
        if unknown:
            raise errors.ConfigError(f"expected --shape of an input among {names}, found {unknown}")
        args = self._stored(names) if self.inputs else self._drawn(module)
        positional, _ = module.arguments(args)
        return Case(self.name, module, tuple(positional))

    def _stored(self, names: list[str]) -> list[Any]:
        args, kwargs = stored_inputs(self.inputs)
        if len(args) + len(kwargs) != len(names) or not all(name in names for name in kwargs):
            found = [*range(len(args)), *kwargs]
            raise errors.ConfigError(f"expected inputs {names} in {self.inputs}, found {found}")
        return [*args, *(kwargs[name] for name in names[len(args) :])]

    def _drawn(self, module: Any) -> list[torch.Tensor]:
        """Random numbers, the same in every run; zeros where they are integers."""
        generator = torch.Generator().manual_seed(0)
        shapes, made = dict(self.shapes), []
        for each in module.graph.inputs:
            shape = shapes.get(each.name, each.shape)
            if each.dtype is None or each.name in module.graph.handed_on:
                raise errors.ConfigError(f"expected --inputs, as {each.name!r} is no plain data")
            if shape is None or not all(isinstance(size, int) for size in shape):
                declared = "" if shape is None else f" beyond {[*shape]}"
                raise errors.ConfigError(
                    f"expected --inputs or --shape {each.name}=…, as the model leaves its shape "
                    f"open{declared}"
                )
            if each.dtype.is_floating_point:
                made.append(torch.randn(shape, generator=generator).to(each.dtype))
            else:
                made.append(torch.zeros(shape, dtype=each.dtype))
        return made

    def _factory(self) -> Case:
        path, _, name = self.text.rpartition(":")
        made = _made(Path(path), name)
        args: Any = ()
        kwargs: Any = {}
        if isinstance(made, tuple):
            if len(made) not in (2, 3):
                raise errors.ConfigError(
                    f"expected {name} to return a module, (module, args) or (module, args, "
                    f"kwargs), found {len(made)} values"
                )
            made, args, *rest = made
            kwargs = rest[0] if rest else {}
        if not callable(made):
            kind = type(made).__qualname__
            raise errors.ConfigError(
                f"expected {name} to return a module or function, found {kind}"
            )
        args = args if isinstance(args, tuple | list) else (args,)
        if self.inputs:
            args, kwargs = stored_inputs(self.inputs)
        elif not args and not kwargs:
            raise errors.ConfigError(f"expected --inputs, as {name} returns no arguments of a call")
        return Case(self.name, made, tuple(args), dict(kwargs))


def _made(path: Path, name: str) -> Any:
    """What the factory returns. Raises: errors.ConfigError, naming its line, if it fails."""
    if not path.is_file():
        raise errors.ConfigError(f"expected a Python file, found none at {path}")
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module  # where pickled classes look for themselves
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
        found = getattr(module, name, None)
        if not callable(found):
            raise errors.ConfigError(f"expected a factory {name!r} in {path}, found none")
        return found if isinstance(found, torch.nn.Module) else found()
    except errors.Error:
        raise
    except Exception as error:
        raise errors.ConfigError(f"{path}: {said(error)}") from error


def said(error: BaseException) -> str:
    """An exception of the user's code in a line, with the line that it is from."""
    first = str(error).strip().partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    return f"{type(error).__name__}: {first}{where}"
