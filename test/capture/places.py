# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program can reach, as places that hold a value and as objects that have contents.

A path names the same place in every world of a program.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from capture.corpus import World

_MOST_OBJECTS = 400
_OF_CLASSES = frozenset({"__module__", "__dict__", "__weakref__", "__doc__", "__qualname__",
                         "__abstractmethods__", "_abc_impl", "__dataclass_fields__",
                         "__dataclass_params__", "__match_args__", "__slots__",
                         "__parameters__", "__annotations__"})  # fmt: skip
_HOOKS_AND_SETS = ("_backward", "_forward", "_state_dict", "_load_state_dict", "_non_persistent",
                   "_is_full_backward", "_compiled_call_impl")  # fmt: skip


_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (types.MethodType, ("__self__", "__func__")),
    (functools.partial, ("func", "args", "keywords")),
    (property, ("fget",)),
    ((staticmethod, classmethod), ("__func__",)),
)


def _parts_of(value: Any) -> tuple[str, ...]:
    """Attributes that hold what a wrapper of functions stands for."""
    return next((parts for kinds, parts in _PARTS if isinstance(value, kinds)), ())


@dataclass(frozen=True)
class Place:
    """put: holds another value from now on; it returns what puts the old one back. remove: the
    same, for no value at all; None where that cannot be."""

    path: str
    value: Any
    put: Callable[[Any], Callable[[], Any]]
    remove: Callable[[], Callable[[], Any]] | None


@dataclass
class Reached:
    """places: by path. objects: those with contents that may be changed, by the path that led to
    them first."""

    places: dict[str, Place]
    objects: dict[str, Any]


def of_target(world: World) -> Reached:
    walk = _Walk(world.module.__name__)
    walk.visit(world.case.target, "target")
    return Reached(walk.places, walk.objects)


def of_arguments(world: World, args: list[Any], kwargs: dict[str, Any]) -> Reached:
    walk = _Walk(world.module.__name__)
    walk.items_of_list(args, "arguments")
    walk.items_of_dict(kwargs, "keywords")
    return Reached(walk.places, walk.objects)


def is_of_world(value: Any, module: str) -> bool:
    """Whether a class or function is one of the program's file."""
    return getattr(value, "__module__", None) == module


class _Walk:
    def __init__(self, module: str) -> None:
        self.module = module
        self.places: dict[str, Place] = {}
        self.objects: dict[str, Any] = {}
        self.seen: dict[int, Any] = {}

    def add(self, path: str, value: Any, put: Callable, remove: Callable | None) -> None:
        if len(self.places) < _MOST_OBJECTS:
            self.places.setdefault(path, Place(path, value, put, remove))
            self.visit(value, path)

    def visit(self, value: Any, path: str) -> None:
        if id(value) in self.seen or type(value) in (int, float, str, bool, bytes, type(None)):
            return
        self.seen[id(value)] = value
        if isinstance(value, torch.jit.ScriptModule):  # whose attributes are in C++
            return
        if isinstance(value, torch.nn.Module):
            self.objects[path] = value
            self.module_of_torch(value, path)
        elif isinstance(value, torch.Tensor):
            self.objects[path] = value
            self.attributes(value, path)
        elif isinstance(value, types.FunctionType):
            if is_of_world(value, self.module):
                self.objects[path] = value
                self.function(value, path)
        elif isinstance(value, type):
            self.kind(value, path)
        elif parts := _parts_of(value):
            for part in parts:
                self.visit(getattr(value, part), f"{path}.{part}")
        elif isinstance(value, weakref.ref):
            self.visit(value(), f"{path}()")
        elif isinstance(value, (list, deque)):
            self.objects[path] = value
            self.items_of_list(value, path)
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                self.visit(item, f"{path}[{number}]")
        elif isinstance(value, dict):
            self.objects[path] = value
            self.items_of_dict(value, path)
        elif isinstance(value, set) or hasattr(value, "__array_interface__"):
            self.objects[path] = value
        elif not isinstance(value, types.ModuleType):
            self.object(value, path)

    def items_of_list(self, values: Any, path: str) -> None:
        for number in range(len(values)):
            self.add(f"{path}[{number}]", values[number], _put_item(values, number), None)

    def items_of_dict(self, values: dict, path: str) -> None:
        for key in list(values):
            name = f"{path}[{key!r}]"
            self.add(name, values[key], _put_item(values, key), _remove_item(values, key))

    def module_of_torch(self, module: torch.nn.Module, path: str) -> None:
        for name, value in list(vars(module).items()):
            if name in ("_parameters", "_buffers", "_modules"):
                for key in list(value):
                    put, remove = _put_item(value, key), _remove_item(value, key)
                    self.add(f"{path}.{name}[{key!r}]", value[key], put, remove)
            elif not name.startswith(_HOOKS_AND_SETS):
                put, remove = _put_item(vars(module), name), _remove_item(vars(module), name)
                self.add(f"{path}.{name}", value, put, remove)
        self.kind(type(module), f"type({path})")

    def attributes(self, value: Any, path: str) -> None:
        for name in list(getattr(value, "__dict__", {})):
            own = vars(value)
            self.add(f"{path}.{name}", own[name], _put_item(own, name), _remove_item(own, name))

    def function(self, function: types.FunctionType, path: str) -> None:
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self.add(f"{path} closure {name}", value, _put_cell(cell), None)
        defaults = function.__defaults__ or ()
        for number, value in enumerate(defaults):
            put = _put_default(function, number)
            self.add(f"{path}.__defaults__[{number}]", value, put, None)
        keywords = function.__kwdefaults__ or {}
        for name in list(keywords):
            self.add(f"{path}.__kwdefaults__[{name!r}]", keywords[name],
                     _put_item(keywords, name), None)  # fmt: skip
        self.attributes(function, path)
        space = function.__globals__
        if space.get("__name__") != self.module:  # of a library that made it
            return
        for name in dict.fromkeys(_names(function.__code__)):
            if name in space and not name.startswith("__"):
                put, remove = _put_item(space, name), _remove_item(space, name)
                self.add(f"global {name}", space[name], put, remove)

    def kind(self, kind: type, path: str) -> None:
        """A class of the program's: what it and its bases hold."""
        for base in kind.__mro__:
            if not is_of_world(base, self.module) or id(base) in self.seen and base is not kind:
                continue
            self.seen[id(base)] = base
            if issubclass(base, enum.Enum):  # whose members stay what they are
                continue
            self.objects[f"class {base.__qualname__}"] = base
            for name, value in list(vars(base).items()):
                if name in _OF_CLASSES or isinstance(value, types.MemberDescriptorType):
                    continue
                put, remove = _put_member(base, name), _remove_member(base, name)
                self.add(f"class {base.__qualname__}.{name}", value, put, remove)

    def object(self, value: Any, path: str) -> None:
        if not is_of_world(type(value), self.module) and type(value) is not types.SimpleNamespace:
            return
        self.objects[path] = value
        self.attributes(value, path)
        self.kind(type(value), f"type({path})")


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _put_item(values: Any, key: Any) -> Callable:
    def put(value: Any) -> Callable:
        old = values[key]
        values[key] = value
        return lambda: values.__setitem__(key, old)

    return put


def _remove_item(values: dict, key: Any) -> Callable:
    def remove() -> Callable:
        old = dict(values)
        del values[key]

        def undo() -> None:
            """In the old order."""
            values.clear()
            values.update(old)

        def undo_namespace() -> None:
            values[key] = old[key]

        return undo_namespace if "__builtins__" in old else undo

    return remove


def _put_cell(cell: types.CellType) -> Callable:
    def put(value: Any) -> Callable:
        old = cell.cell_contents
        cell.cell_contents = value
        return lambda: setattr(cell, "cell_contents", old)

    return put


def _put_default(function: types.FunctionType, number: int) -> Callable:
    def put(value: Any) -> Callable:
        old = function.__defaults__
        function.__defaults__ = (*old[:number], value, *old[number + 1 :])
        return lambda: setattr(function, "__defaults__", old)

    return put


def _put_member(kind: type, name: str) -> Callable:
    def put(value: Any) -> Callable:
        old = vars(kind)[name]
        setattr(kind, name, value)
        return lambda: setattr(kind, name, old)

    return put


def _remove_member(kind: type, name: str) -> Callable:
    def remove() -> Callable:
        old = vars(kind)[name]
        delattr(kind, name)
        return lambda: setattr(kind, name, old)

    return remove
