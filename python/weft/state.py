# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program depends on besides a call's arguments: modules, closures, globals.

A `Snapshot` of it has a key, equal for equal states; guards, that C++ checks on every call
(equal keys follow from holding guards); and copies, to put back what tracing changed.
"""

from __future__ import annotations

import array
import copy
import functools
import os
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch.nn.modules import module as torch_module

from weft import generators
from weft._core import Guards
from weft.names import Bindings, same_items
from weft.references import References, is_library, is_stable
from weft.signature import PLAIN, Declined, Same, check_tensor

_HOOKS = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
)
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)
_TENSORS = ("_parameters", "_buffers")
# Attributes of every module that do not tell its computation apart.
_BOOKKEEPING = frozenset(
    (*_HOOKS, *_TENSORS, "_modules", "_non_persistent_buffers_set")
    + tuple(f"{name}_with_kwargs" for name in _HOOKS)
    + tuple(f"{name}_always_called" for name in _HOOKS)
    + tuple(f"_{when}state_dict_{kind}hooks" for when in ("", "load_") for kind in ("", "pre_"))
    + ("_load_state_dict_post_hooks",)
)
_MOST_OBJECTS = 100_000
_MOST_WATCHED_BYTES = 64 * 1024  # compared on every call
_BUFFERS = (numpy.ndarray, bytearray, array.array)
_CONTAINERS = (tuple, list, dict, set, frozenset, torch.nn.Module)


@dataclass
class Snapshot:
    """reason: why PyTorch has to run calls in this state, or None. gradients: parameters
    that may come to require them. generators: of random numbers, whose state is no part of it."""

    key: tuple = ()
    guards: Guards = field(default_factory=Guards)
    reason: str | None = None
    gradients: list[torch.Tensor] = field(default_factory=list)
    bindings: Bindings = field(default_factory=Bindings)
    generators: list[Any] = field(default_factory=list)
    _copies: list[tuple[Any, Any]] = field(default_factory=list)

    def restore(self) -> None:
        """Gives every container, buffer and `__dict__` what it had, every name its value."""
        self.bindings.restore()
        for container, kept in self._copies:
            if container is os.environ:
                _restore_variables(kept)
            elif isinstance(container, numpy.ndarray):
                if container.flags.writeable:
                    container[...] = kept
            elif isinstance(container, (list, *_BUFFERS)):
                container[:] = kept
            elif not same_items(container, kept):
                container.clear()
                container.update(kept)


def snapshot(references: References, originals: dict[int, Any] | None = None) -> Snapshot:
    """The state that `references` reach, as it is now.

    originals: objects that others stand for, by the others' addresses; the key is that of
    the originals.
    """
    return _Walk(originals or {}).run(references)


def _has_identity(entry: object) -> bool:
    """Whether a set that holds it changes only when it holds other entries."""
    functions = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
    return type(entry) in PLAIN or isinstance(entry, (type, *functions))


def _restore_variables(kept: dict[str, str]) -> None:
    """The process's own, which a write to `os.environ` changes too."""
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]
    for name, value in kept.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


class _Walk:
    def __init__(self, originals: dict[int, Any]) -> None:
        self.result = Snapshot()
        self.originals = originals
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []  # so that no address in `seen` is used twice

    def run(self, references: References) -> Snapshot:
        key: list[Any] = []
        for name in _GLOBAL_HOOKS:
            hooks = getattr(torch_module, name)
            self.result.guards.watch_dict(hooks)
            if hooks:
                self.result.reason = "a hook is set on all modules"
        for module in references.modules:
            key.append(self.module(module, type(module).__name__))
        for tensor in references.tensors:
            key.append(self.same(tensor))
            self.tensor(tensor, "a tensor of the function's closure or globals")
        for cell in references.cells:
            self.result.guards.watch_cell(cell)
            self.result.bindings.add_cell(cell)
        for function in references.functions:
            self.result.guards.watch_function(function)
            key.append(self.attributes(function, references.attributes))
        key.append(self.environment(references.environment))
        for namespace, name in references.names:
            self.result.guards.watch_name(namespace, name)
            self.result.bindings.add_name(namespace, name)
        key.extend(self.value(value) for value in references.values)
        if references.reason is not None:
            self.result.reason = references.reason
        # A state that PyTorch has to deal with is another one than the same without hooks.
        self.result.key = (self.result.reason, *key)
        return self.result

    def attributes(self, function: types.FunctionType, named: set[str]) -> Any:
        """Of a function of the user's, those that code names."""
        attributes = vars(function)
        if is_library(function):
            return None
        self.result._copies.append((attributes, dict(attributes)))
        if not named.intersection(attributes):
            return None
        self.result.guards.watch_dict(attributes)
        return tuple((k, self.value(v)) for k, v in attributes.items() if k in named)

    def environment(self, names: set[str]) -> Any:
        """Those of the process's variables that code may read."""
        if not names:
            return None
        self.result.guards.watch_dict(os.environ._data)
        self.result._copies.append((os.environ, dict(os.environ)))
        return tuple((name, os.environ.get(name)) for name in sorted(names))

    def module(self, module: torch.nn.Module, path: str) -> tuple:
        number = self.seen.get(id(module))
        if number is not None:
            return ("again", number)
        self._enter(module)
        attributes = vars(module)
        guards = self.result.guards
        guards.watch_object(module)
        self.result._copies.append((attributes, dict(attributes)))
        for name in _HOOKS:
            hooks = attributes.get(name)
            if hooks is not None:
                guards.watch_dict(hooks)
                if hooks and self.result.reason is None:
                    self.result.reason = f"{path} has hooks"
        if "_compiled_call_impl" in attributes and module._compiled_call_impl is not None:
            self.result.reason = f"{path} has been compiled by torch.compile"
        key: list[Any] = [self.type(type(module))]
        for kind in _TENSORS:
            key.append(self.tensors(attributes[kind], path))
        children = attributes["_modules"]
        guards.watch_dict(children)
        self.result._copies.append((children, dict(children)))
        for name, child in children.items():
            key.append((name, None if child is None else self.module(child, f"{path}.{name}")))
        # The code of a GraphModule is its class's `forward`; its attributes record its making.
        graph = isinstance(module, torch.fx.GraphModule)
        for name, value in attributes.items():
            if name == "training" or (name not in _BOOKKEEPING and not graph):
                key.append((name, self.value(value)))
        return tuple(key)

    def tensors(self, named: dict[str, torch.Tensor | None], path: str) -> tuple:
        self.result.guards.watch_dict(named)
        self.result._copies.append((named, dict(named)))
        for name, tensor in named.items():
            if tensor is not None:
                self.tensor(tensor, f"{path}.{name}")
        return tuple((name, self.same(tensor)) for name, tensor in named.items())

    def tensor(self, tensor: torch.Tensor, name: str) -> None:
        if torch.is_grad_enabled() and tensor.dtype.is_floating_point:
            self.result.gradients.append(tensor)
        try:
            with torch.no_grad():
                check_tensor(tensor, name)
        except Declined as declined:
            self.result.reason = self.result.reason or declined.reason

    def value(self, value: Any) -> Any:
        """A hashable stand-in, equal for values that a program cannot tell apart."""
        kind = type(value)
        if kind is Same:
            return value
        if kind is float:
            return (kind, value.hex())
        if kind in PLAIN:
            return (kind, value)
        if isinstance(value, generators.KINDS):
            self.result.generators.append(value)
            return self.same(value)
        if isinstance(value, torch.nn.Module):
            return self.module(value, kind.__name__)
        if isinstance(value, type):
            return self.type(value)
        if isinstance(value, (torch.Tensor, types.ModuleType, types.FunctionType)):
            return self.same(value)
        if kind is weakref.ref:
            return (kind, self.same(value()))
        if is_stable(kind) and kind.__hash__ is not None and not isinstance(value, _CONTAINERS):
            return self.opaque(value)
        number = self.seen.get(id(value))
        if number is not None:
            return ("again", number)
        self._enter(value)
        if isinstance(value, tuple):
            return (kind, tuple(self.value(entry) for entry in value))
        if isinstance(value, list):
            self.result.guards.watch_list(value)
            self.result._copies.append((value, list(value)))
            return (kind, tuple(self.value(entry) for entry in value))
        if isinstance(value, dict):
            self.result.guards.watch_dict(value)
            self.result._copies.append((value, dict(value)))
            return (kind, tuple((self.value(k), self.value(v)) for k, v in value.items()))
        if kind in (set, frozenset) and all(map(_has_identity, value)):
            self.result.guards.watch_set(value)
            return (kind, frozenset(map(self.value, value)))
        return self.object(value)

    def type(self, kind: type) -> Any:
        """A class and its attributes, which `forward` may be or read."""
        if id(kind) in self.seen or is_stable(kind):
            return Same(kind)
        self._enter(kind)
        guards, key = self.result.guards, [Same(kind)]
        for base in kind.__mro__:
            if not is_stable(base):
                guards.watch_object(base)
                self.result.bindings.add_class(base)
                key += [(name, self.member(value)) for name, value in vars(base).items()]
        return tuple(key)

    def member(self, value: Any) -> Any:
        simple = type(value) in PLAIN or type(value) in (tuple, list, dict, set)
        return self.value(value) if simple else Same(value)

    def object(self, value: Any) -> Any:
        """Any other object: its class and attributes, such as a model's configuration."""
        if not hasattr(value, "__dict__"):
            return self.opaque(value)
        self.result.guards.watch_object(value)
        attributes = vars(value)
        if type(attributes) is dict:
            self.result._copies.append((attributes, dict(attributes)))
        return (self.type(type(value)), tuple((k, self.value(v)) for k, v in attributes.items()))

    def opaque(self, value: Any) -> Any:
        """An object without attributes to watch: one that never changes, memory that is
        compared on every call, or a reason to leave the calls to PyTorch."""
        kind = type(value)
        if isinstance(value, functools.partial):
            return (
                kind,
                self.value(value.func),
                self.value(value.args),
                self.value(value.keywords),
            )
        if isinstance(value, _BUFFERS):
            if not isinstance(value, numpy.ndarray) or not value.dtype.hasobject:
                if memoryview(value).nbytes <= _MOST_WATCHED_BYTES:
                    self.result.guards.watch_buffer(value)
                    self.result._copies.append((value, copy.copy(value)))
                    return (self.same(value), bytes(memoryview(value).tobytes()))
        # What compares by value and has a hash never changes, by Python's convention.
        elif kind.__hash__ is not None and not isinstance(value, Iterator):
            if kind.__hash__ is not object.__hash__ or is_stable(kind):
                return self.same(value)
        if self.result.reason is None:
            self.result.reason = f"an object of {kind.__qualname__}, which has no guard"
        return self.same(value)

    def same(self, value: Any) -> Same:
        return Same(self.originals.get(id(value), value))

    def _enter(self, value: Any) -> None:
        if len(self.seen) >= _MOST_OBJECTS:
            raise Declined("the module reaches too many objects to guard")
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
