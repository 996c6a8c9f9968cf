# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.load`: an artifact on its own, called with tensors, without the module it came from."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from weft import _core, errors
from weft.artifacts.fallbacks import torch_host
from weft.frontend.dtypes import DTYPES, NAMES


def load(path: str | Path) -> LoadedArtifact:
    """Opens an artifact for calls with all its arguments, weights included.

    Raises: errors.ArtifactError, if the file is missing, damaged, of another version of
    Weft or for another CPU.
    """
    return LoadedArtifact(_core.Artifact.load(Path(path)))


class LoadedArtifact:
    """A callable. `signature` lists its arguments: name, kind, dtype, shape, strides."""

    def __init__(self, artifact: _core.Artifact) -> None:
        self.path = Path(artifact.path)
        self.manifest: dict[str, Any] = json.loads(artifact.manifest)
        entry = self.manifest["entries"]["main"]
        self.signature: list[dict[str, Any]] = entry["arguments"]
        self._results: list[dict[str, Any]] = entry["results"]
        self._program = _core.Program(artifact)
        self._host = torch_host(self.manifest)
        self._binding = threading.RLock()
        self._weights = _core.HeldWeights(bound_arguments(self.manifest))

    def __call__(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The program's results, for arguments in the signature's order or by name.

        Weights may change between calls, or be other ones: what was prepared from them is
        prepared anew. Those it was prepared from last are kept alive. A change that leaves
        the version counter alone is found by samples; WEFT_CHECK_WEIGHTS=1 compares all.
        Raises: errors.ArgumentError, naming the argument, what was expected and what was
        found; errors.AssertError, if a check inside the program fails; errors.Error under a
        torch mode that gives tensors another meaning.
        """
        arguments = self._in_order(args, kwargs)
        for spec, argument in zip(self.signature, arguments, strict=True):
            _check(spec, argument)
        results = [_allocate(spec) for spec in self._results]
        if self._program.has_bind:
            # Another thread may call with other weights: theirs must not come between.
            with self._binding:
                self._bind(arguments)
                self._program.run(arguments, results, self._host)
        else:
            self._program.run(arguments, results, self._host)
        for number, spec in enumerate(self._results):
            if alias := spec.get("alias"):
                ((kind, index),) = alias.items()
                source = arguments[index] if kind == "argument" else results[index]
                results[number].copy_(source.detach())
        return tuple(results)

    def _bind(self, arguments: list[torch.Tensor]) -> None:
        if self._weights.changed(arguments):
            self._program.bind(arguments, self._host)
            self._weights.settle(arguments)

    def __repr__(self) -> str:
        return f"<weft artifact {self.path}>"

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = [spec["name"] for spec in self.signature]
        for name in kwargs:
            if name not in names:
                raise errors.ArgumentError(f"expected an argument among {names}, found {name!r}")
        rest = [name for name in names[len(args) :] if name in kwargs]
        if len(args) + len(kwargs) != len(names) or len(rest) != len(kwargs):
            found = len(args) + len(kwargs)
            raise errors.ArgumentError(
                f"expected {len(names)} arguments ({', '.join(names)}), found {found}"
            )
        return [*args, *(kwargs[name] for name in rest)]


def bound_arguments(manifest: dict[str, Any]) -> list[int]:
    """The arguments of @main from which @bind prepares something."""
    names = [argument["name"] for argument in manifest["entries"]["main"]["arguments"]]
    bind = manifest["entries"].get("bind", {"arguments": []})
    return [names.index(argument["name"]) for argument in bind["arguments"]]


def _allocate(spec: dict[str, Any]) -> torch.Tensor:
    shape, strides, dtype = spec["shape"], spec["strides"], DTYPES[spec["dtype"]]
    result = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
    if type(result) is not torch.Tensor or is_functorch_wrapped_tensor(result):
        raise errors.Error(
            f"expected to be called on tensors with memory, found a torch mode that makes "
            f"{type(result).__qualname__}s"
        )
    return result


def _check(spec: dict[str, Any], argument: Any) -> None:
    """Raises: errors.ArgumentError for whatever DLPack could not hand over as it should be."""

    def refuse(expected: str, found: Any) -> None:
        raise errors.ArgumentError(f"argument {spec['name']!r}: expected {expected}, found {found}")

    if not isinstance(argument, torch.Tensor):
        refuse("a torch.Tensor", type(argument).__qualname__)
    if type(argument) not in (torch.Tensor, torch.nn.Parameter):
        refuse("a plain torch.Tensor", f"the subclass {type(argument).__qualname__}")
    if is_functorch_wrapped_tensor(argument):
        refuse("a tensor with memory", "one inside a functorch transform")
    if argument.is_nested:
        refuse("a plain torch.Tensor", "a nested tensor")
    if argument.device.type != "cpu":
        refuse("a tensor on device cpu", f"device {argument.device}")
    if argument.layout != torch.strided:
        refuse("layout torch.strided", argument.layout)
    if argument.dtype != DTYPES[spec["dtype"]]:
        refuse(f"dtype {spec['dtype']}", NAMES.get(argument.dtype, str(argument.dtype)))
    if list(argument.shape) != spec["shape"]:
        refuse(f"shape {spec['shape']}", list(argument.shape))
    if argument.is_neg():
        refuse("a tensor with its own values", "a lazily negated view")
    if argument.requires_grad and torch.is_grad_enabled():
        refuse("a call under torch.no_grad()", "a tensor that requires gradients")
