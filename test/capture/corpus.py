# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the corpus, and worlds in which they run.

A file of `programs/` is a group. A world is a module of its own, made of that file anew, so that
globals, classes and functions belong to one world alone and may be changed in it.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

_FOLDER = Path(__file__).parent / "programs"
_numbers = itertools.count()

Arguments = tuple[tuple, dict[str, Any]]


@dataclass
class Case:
    """A program in one world.

    target: what is compiled. arguments: makes those of the next call. changes: by name, what else
    may be changed between two calls: each does it and returns what undoes it. state: objects
    besides those that the target reaches whose state is compared.
    """

    target: Callable[..., Any]
    arguments: Callable[[], Arguments]
    changes: dict[str, Callable[[], Callable[[], Any]]] = field(default_factory=dict)
    state: tuple = ()


def call(*args: Any, **kwargs: Any) -> Arguments:
    return args, kwargs


def program(function: Callable[[], Case] | None = None, *, grad: bool = False) -> Any:
    """Registers the factory of a program. grad: its calls record gradients."""

    def register(factory: Callable[[], Case]) -> Callable[[], Case]:
        factory.records_gradients = grad
        return factory

    return register if function is None else register(function)


@dataclass(frozen=True)
class Name:
    """Of a program: its group and its factory's name."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}.{self.name}"


@dataclass
class World:
    """grad: whether calls record gradients."""

    module: types.ModuleType
    case: Case
    grad: bool

    def close(self) -> None:
        sys.modules.pop(self.module.__name__, None)


def groups() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.py") if path.stem != "__init__")


def names() -> list[Name]:
    """Of all programs, in the order of their files."""
    return [Name(group, name) for group in groups() for name in _factories(_load(group))]


def make_world(name: Name) -> World:
    module = _load(name.group)
    sys.modules[module.__name__] = module
    torch.manual_seed(0)
    factory = vars(module)[name.name]
    return World(module, factory(), factory.records_gradients)


def _factories(module: types.ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if hasattr(value, "records_gradients"):
            yield name


def _load(group: str) -> types.ModuleType:
    name = f"capture_world_{next(_numbers)}_{group}"
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{group}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
