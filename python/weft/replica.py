# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module to trace in place of the user's: other module objects with the same tensors.

torch.export puts fake tensors into the modules that it traces, where other threads that call
them would meet them, and tracing runs the user's code, which may write attributes.
"""

from __future__ import annotations

import array
import copy
import dataclasses
import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from weft.references import References, is_stable
from weft.state import snapshot

_MODULE_DICTS = ("_parameters", "_buffers", "_modules")


@dataclass
class Replica:
    """What is traced. originals: what each copy stands for, by the copy's address."""

    target: Callable[..., Any]
    references: References
    originals: dict[int, Any] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)  # so that no address is used twice


def replicate(target: Callable[..., Any], references: References) -> Replica:
    """A replica of a module or of a module's bound method.

    The target itself where no copy could stand for it: a function finds its modules in its
    closure and globals, and so may a method.
    """
    itself = Replica(target, references)
    module = target.__self__ if isinstance(target, types.MethodType) else target
    if references.modules != [module] or _names_modules(references):
        return itself
    copier = _Copier()
    try:
        twin = copier.copy(target)
    except Exception:  # an object of the user's that cannot be copied
        return itself
    copied = dataclasses.replace(references, modules=[copier.copy(module)])
    replica = Replica(twin, copied, copier.originals, list(copier.copies.values()))
    # Equal states, down to which objects are the same, make equal programs.
    same = snapshot(copied, replica.originals).key == snapshot(references).key
    return replica if same else itself


def _names_modules(references: References) -> bool:
    found = [cell.cell_contents for cell in references.cells if _is_filled(cell)]
    found += [namespace.get(name) for namespace, name in references.names]
    return any(isinstance(getattr(value, "__self__", value), torch.nn.Module) for value in found)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class _Copier:
    """Copies whatever a snapshot looks into; shares tensors, functions, classes, libraries."""

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}
        self.originals: dict[int, Any] = {}

    def copy(self, value: Any) -> Any:
        if id(value) in self.copies:
            return self.copies[id(value)]
        if isinstance(value, torch.nn.Module):
            return self.module(value)
        if isinstance(value, (torch.Tensor, type, types.ModuleType, types.FunctionType)):
            return value
        if isinstance(value, types.MethodType):
            return self.entered(value, types.MethodType(value.__func__, self.copy(value.__self__)))
        if type(value) is weakref.ref:
            referent = value()
            if not isinstance(referent, torch.nn.Module):
                return value
            return self.entered(value, weakref.ref(self.copy(referent)))
        if isinstance(value, functools.partial):
            parts = [self.copy(part) for part in (value.args, value.keywords)]
            return self.entered(value, type(value)(self.copy(value.func), *parts[0], **parts[1]))
        if isinstance(value, tuple):
            items = [self.copy(item) for item in value]
            same = all(a is b for a, b in zip(items, value))
            return value if same else self.entered(value, tuple.__new__(type(value), items))
        if isinstance(value, (list, dict)):
            return self.container(value)
        if isinstance(value, (set, numpy.ndarray, bytearray, array.array)):
            return self.entered(value, copy.copy(value))
        if is_stable(type(value)) and type(value).__hash__ is not None:
            return value
        return self.object(value) if type(getattr(value, "__dict__", None)) is dict else value

    def entered(self, original: Any, made: Any) -> Any:
        self.copies[id(original)] = made
        self.originals[id(made)] = original
        return made

    def module(self, module: torch.nn.Module) -> torch.nn.Module:
        twin = self.entered(module, type(module).__new__(type(module)))
        attributes = vars(twin)
        for name, value in vars(module).items():
            # Also of children that are modules, and of parameters, the dict is its own.
            attributes[name] = self.container(value) if name in _MODULE_DICTS else self.copy(value)
        return twin

    def container(self, value: list | dict) -> Any:
        twin = self.entered(value, copy.copy(value))
        for place, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            twin[place] = self.copy(item)
        return twin

    def object(self, value: Any) -> Any:
        twin = self.entered(value, copy.copy(value))
        if twin is not value:
            vars(twin).update((name, self.copy(item)) for name, item in vars(value).items())
        return twin
