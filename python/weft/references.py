# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a module or function can reach besides its arguments.

For a module: itself. For a function: its closure, its defaults and the globals that its code
names, followed into the user's functions that it calls. Whatever cannot be guarded is a
reason to leave the function to PyTorch.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from weft.signature import PLAIN, Same

# Modules whose functions and constants do not change under a program.
_STABLE = frozenset({"torch", "math", "builtins", "operator", "functools", "itertools", "typing"})


@dataclass
class References:
    """modules: in the order found. names: (namespace, name) pairs whose value matters.
    values: plain values and functions, compared by value or identity. code: the user's own
    functions and methods, whose lines can be named."""

    modules: list[torch.nn.Module] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)
    cells: list[types.CellType] = field(default_factory=list)
    functions: list[types.FunctionType] = field(default_factory=list)
    names: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    code: list[types.FunctionType] = field(default_factory=list)
    reason: str | None = None


def find_references(target: Callable[..., Any]) -> References:
    """What `target` (a module, a function or a bound method) reaches now."""
    references = References()
    search = _Search(references)
    search.value(target, "the target")
    for kind in {type(child) for module in references.modules for child in module.modules()}:
        search.methods(kind)
    return references


class _Search:
    def __init__(self, references: References) -> None:
        self.found = references
        self.seen: set[int] = set()

    def value(self, value: Any, name: str) -> None:
        if isinstance(value, torch.nn.Module):
            if not any(value is module for module in self.found.modules):
                self.found.modules.append(value)
        elif isinstance(value, torch.Tensor):
            if not any(value is tensor for tensor in self.found.tensors):
                self.found.tensors.append(value)
        elif type(value) in PLAIN:
            self.found.values.append(value)
        elif isinstance(value, tuple):
            self.found.values.append(type(value))
            for entry in value:
                self.value(entry, name)
        elif isinstance(value, types.MethodType):
            self.value(value.__self__, name)
            self.value(value.__func__, name)
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
            self.found.values.append(value)
        elif _is_stable(value):
            self.found.values.append(value)
        elif self.found.reason is None:
            self.found.reason = f"{name} is a {type(value).__qualname__}, which has no guard"

    def function(self, function: types.FunctionType) -> None:
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self.found.values.append(function)
        if _is_stable(function):
            return
        self.found.functions.append(function)
        self.found.code.append(function)
        self.found.values.append(Same(function.__code__))
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.value(default, f"a default of {function.__qualname__}")
        free = function.__code__.co_freevars
        for name, cell in zip(free, function.__closure__ or (), strict=True):
            self.found.cells.append(cell)
            try:
                self.value(cell.cell_contents, f"{name!r} of {function.__qualname__}'s closure")
            except ValueError:  # not filled yet
                self.found.reason = self.found.reason or f"{name!r} is not bound yet"
        for code in _codes(function.__code__):
            self.globals(function, code)

    def methods(self, kind: type[torch.nn.Module]) -> None:
        """Globals that the methods of a user's module class name, by identity."""
        for base in kind.__mro__:
            if _is_stable(base):
                continue
            for function in vars(base).values():
                if isinstance(function, types.FunctionType) and id(function) not in self.seen:
                    self.seen.add(id(function))
                    self.found.code.append(function)
                    for code in _codes(function.__code__):
                        self.method_globals(function, code)

    def method_globals(self, function: types.FunctionType, code: types.CodeType) -> None:
        namespace = function.__globals__
        for name, *_ in _global_paths(code):
            if name in namespace:
                self.found.names.append((namespace, name))
                value = namespace[name]
                self.found.values.append(Same(value))
                if isinstance(value, types.FunctionType) and not _is_stable(value):
                    self.found.code.append(value)

    def globals(self, function: types.FunctionType, code: types.CodeType) -> None:
        for path in _global_paths(code):
            namespace: Any = function.__globals__
            for name in path:
                self.found.names.append((namespace, name))
                if name not in namespace:
                    break
                value = namespace[name]
                if not isinstance(value, types.ModuleType) or _is_stable(value):
                    self.value(value, f"global {'.'.join(path)!r}")
                    break
                self.found.values.append(value)
                namespace = vars(value)


def _is_stable(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _STABLE
    module = getattr(value, "__module__", None)
    return (
        isinstance(module, str)
        and module.partition(".")[0] in _STABLE
        or (getattr(builtins, getattr(value, "__name__", ""), None) is value)
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code and that of the functions, lambdas and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _global_paths(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Global names with the attributes read from them: `np.pi` is ("np", "pi")."""
    path: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and path:
            path.append(instruction.argval)
            continue
        if path:
            yield tuple(path)
            path = []
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            path = [instruction.argval]
    if path:
        yield tuple(path)
