# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program depends on besides a call's arguments: modules, closures, globals.

A `Snapshot` of it has a key, equal for equal states; the tensors of modules, which a program reads
by name, so that states which differ in them alone share programs; and guards, that C++ checks on
every call (equal keys and the same tensors follow from holding guards).
"""

from __future__ import annotations

import abc
import functools
import os
import types
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from typing import Any

import numpy
import torch
from torch.distributions import Distribution
from torch.nn.modules import module as torch_module
from torch.nn.parameter import is_lazy

from weft.capture import process_state, python_random, remembered_calls
from weft.capture.abstract_classes import registered
from weft.capture.free_numbers import NO_PLACES, FreeNumbers, can_be_place, is_number
from weft.capture.guard_texts import OF_TORCH, Entry, metadata
from weft.capture.held_in_c import FIXED, OF_ATTRIBUTES, VALUES, base_in_c, items
from weft.capture.kinds_of_state import (
    BUFFERS,
    BY_IDENTITY,
    LOCKS,
    MOST_WATCHED_BYTES,
    OF_THREADS,
    STREAMS,
    VIEWS,
    has_identity,
    is_of_trace,
    is_reader,
    never_changes,
)
from weft.capture.module_hooks import (
    BOOKKEEPING,
    FORWARD,
    HOOKS,
    TENSORS,
    by_code,
    forward_hooks,
    has_others,
    tables,
)
from weft.capture.observation import is_standard_stream
from weft.capture.reachability import (
    References,
    bound_to,
    is_builtin,
    is_library,
    is_library_class,
    is_stable,
    names_of_torch,
)
from weft.capture.signature import PLAIN, Declined, Same, check_tensor
from weft.capture.snapshots import Snapshot

_GLOBAL_HOOKS = tuple(f"_global{name}" for name in HOOKS)
_MOST_OBJECTS = 100_000
_CALL_PROTOCOL = ("__call__", "_call_impl", "_wrapped_call_impl", "__getattr__", "forward")


def snapshot(
    references: References,
    originals: dict[int, Any] | None = None,
    free: Set[Any] = NO_PLACES,
) -> Snapshot:
    """The state that `references` reach, as it is now.

    free: attributes whose values are no part of it where they are numbers that a program can take.
    originals: objects that others stand for, by the others' addresses; the key is that of
    the originals.
    """
    return _Walk(originals or {}, free).run(references)


class _Walk:
    def __init__(self, originals: dict[int, Any], free: Set[Any]) -> None:
        self.free = FreeNumbers(free)
        self.result = Snapshot(free=self.free.found, numbers=self.free.numbers)
        self.originals = originals
        self.seen: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # of the tensors of modules
        self.slotted: dict[type, bool] = {}
        self.attribute_names: set[str] = set()  # that code of the user's reads
        self.named = True  # whether programs can call the module that is looked into by a name

    def run(self, references: References) -> Snapshot:
        key: list[Any] = []
        self.attribute_names = references.attributes
        for name in _GLOBAL_HOOKS:
            hooks = getattr(torch_module, name)
            self.result.guards.watch_hooks(hooks)
            if hooks:
                self.result.reason = "a hook is set on all modules"
        key.append(Entry(f"{OF_TORCH}functions", self.library()))
        for module in references.modules:
            label = references.label(module)
            key.append(Entry(label, self.module(module, type(module).__name__)))
        for tensor in references.tensors:
            key.append(Entry(references.label(tensor), self.constant(tensor)))
            self.tensor(tensor, "a tensor of the function's closure or globals")
        for cell in references.cells:
            self.result.guards.watch_cell(cell)
            self.result.bindings.add_cell(cell)
        for function in references.functions:
            key.append(Entry(function.__qualname__, self.function(function, references)))
        for namespace in references.namespaces:
            self.result.guards.watch_names(namespace)
            key.append(frozenset(namespace))
        key.append(self.environment(references.environment))
        for (_, name), (namespace, label) in references.numbers.items():
            key.append(Entry(label, self.attribute(name, namespace[name], owner=namespace)))
        for namespace, name in references.names:
            self.result.guards.watch_name(namespace, name, self.free.has(namespace, name))
            self.result.bindings.add_name(namespace, name)
        for label, value in zip(references.labels, references.values, strict=True):
            key.append(Entry(label, self.value(value)))
        if references.reason is not None:
            self.result.reason = references.reason
        # A state that PyTorch has to deal with is another one than the same without hooks.
        self.result.key = (self.result.reason, *key)
        return self.result

    def library(self) -> tuple:
        """What torch's own layers call: tools patch it."""
        guards, functions = self.result.guards, vars(torch.nn.functional)
        guards.watch_object(torch.Tensor)
        guards.watch_object(Distribution)  # whether it checks its arguments
        names = [(functions, name) for name, value in functions.items() if callable(value)]
        names += [(vars(torch), name) for name in names_of_torch()]
        for each in names:
            guards.watch_name(*each)
        patched = (namespace.get(name) for namespace, name in names)
        return tuple(
            map(Same, (*patched, *vars(torch.Tensor).values(), Distribution._validate_args))
        )

    def function(self, function: types.FunctionType, references: References) -> Any:
        """What it is called, and those of its attributes that code names."""
        guards, named, every = self.result.guards, references.attributes, references.reads_all
        names = ("__name__", "__qualname__", "__module__", "__doc__")
        key: list[Any] = [Entry(f".{n}", self.value(getattr(function, n))) for n in names]
        if every or "__annotations__" in named:
            key.append(self.value(function.__annotations__))  # made when they are asked for
        guards.watch_function(function)
        attributes = vars(function)
        if every or (not is_library(function) and named & attributes.keys()):
            guards.watch_dict(attributes)
            key += (
                Entry(f".{k}", self.value(v)) for k, v in attributes.items() if every or k in named
            )
        return tuple(key)

    def environment(self, names: set[str]) -> Any:
        """Those of the process's variables that code may read."""
        if not names:
            return None
        self.result.guards.watch_dict(os.environ._data)
        return tuple(
            Entry(f"os.environ[{name!r}]", self.value(os.environ.get(name)))
            for name in sorted(names)
        )

    def module(self, module: torch.nn.Module, path: str) -> tuple:
        number = self.seen.get(id(module))
        if number is not None:
            return ("again", number)
        self._enter(module)
        if isinstance(module, torch.jit.ScriptModule):
            return (self.unwatched(module),)
        attributes = vars(module)
        self.slots(module)
        guards = self.result.guards
        guards.watch_object(module, self.free.names(attributes))
        key: list[Any] = [self.hooks(module, path)]
        if "_compiled_call_impl" in attributes and module._compiled_call_impl is not None:
            self.result.reason = f"{path} has been compiled by torch.compile"
        key.append(Entry(".__class__", self.type(type(module))))
        for kind in TENSORS:
            key.append(self.tensors(attributes[kind], path))
        children = attributes["_modules"]
        guards.watch_dict(children)
        for name, child in children.items():
            inner = None if child is None else self.module(child, f"{path}.{name}")
            key.append(Entry(f"[{name}]" if name.isdigit() else f".{name}", inner))
        # The code of a GraphModule is its class's `forward`; its attributes record its making.
        graph = isinstance(module, torch.fx.GraphModule)
        for name, value in attributes.items():
            if name == "training" or (name not in BOOKKEEPING and not graph):
                key.append(Entry(f".{name}", self.attribute(name, value, owner=attributes)))
        return tuple(key)

    def hooks(self, module: torch.nn.Module, path: str) -> Any:
        if has_others(module):
            self.result.reason = self.result.reason or f"{path} has hooks"
        for name, hooks, with_keywords in tables(module):
            if hooks and name in FORWARD:
                self.result.guards.watch_dict(hooks)
                self.result.guards.watch_dict(with_keywords)
                self.result.hooked = True
            else:
                self.result.guards.watch_hooks(hooks)
        return tuple((n, self.value(by_code(hook)), kw) for n, hook, kw in forward_hooks(module))

    def attribute(
        self, name: str, value: Any, library: bool = False, owner: dict[str, Any] | None = None
    ) -> Any:
        """Of a module or another object: a lock that no code of the user's takes is no reason, nor
        is a clock that none reads. library: of an object of a library's, as a logger is; its code
        is taken as it is, and what it prints is heard. owner: the dict that has it."""
        if owner is not None and is_number(value):
            return self.free.stand_in(owner, name, value) or self.value(value)
        if name not in self.attribute_names:
            if isinstance(value, LOCKS) or is_reader(value):
                return self.same(value)
            if library and (isinstance(value, OF_THREADS) or is_standard_stream(value)):
                return self.same(value)
        return self.value(value)

    def unnamed(self, module: torch.nn.Module) -> tuple:
        """One that lies in a container or an object: its tensors are constants of programs, which
        do not serve others in their places."""
        before, self.named = self.named, False
        try:
            return self.module(module, type(module).__name__)
        finally:
            self.named = before

    def tensors(self, named: dict[str, torch.Tensor | None], path: str) -> tuple:
        self.result.guards.watch_dict(named)
        for name, tensor in named.items():
            if tensor is not None:
                self.tensor(tensor, f"{path}.{name}")
        return tuple(Entry(f".{name}", self.parameter(each)) for name, each in named.items())

    def constant(self, tensor: torch.Tensor) -> Any:
        """One that no module has: it is itself, with what the user has set on it."""
        if id(tensor) in self.seen:
            return self.same(tensor)
        self._enter(tensor)
        tensor = self.originals.get(id(tensor), tensor)
        self.result.guards.watch_object(tensor)
        held = tuple(Entry(f".{k}", self.value(v)) for k, v in vars(tensor).items())
        return (self.same(tensor), held)

    def parameter(self, tensor: torch.Tensor | None) -> Any:
        """By what code can tell of it without its values, and which others are the same one."""
        if tensor is None:
            return None
        tensor = self.originals.get(id(tensor), tensor)
        number = self.numbers.setdefault(id(tensor), len(self.numbers))
        if number < len(self.result.tensors):
            return ("again", number)
        self.result.tensors.append(tensor)
        self.result.reached[id(tensor)] = tensor
        self.result.guards.watch_object(tensor)
        attributes: tuple = tuple(Entry(f".{k}", self.value(v)) for k, v in vars(tensor).items())
        if not self.named:
            attributes += (self.same(tensor),)
        if is_lazy(tensor) or tensor.layout != torch.strided:
            return (number, type(tensor), attributes)
        return (number, type(tensor), *metadata(tensor), attributes)

    def tensor(self, tensor: torch.Tensor, name: str) -> None:
        if torch.is_grad_enabled() and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
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
            state = process_state.watched(value.value, self.result.guards)
            return (value, registered(value.value, self.result.guards), state)
        if kind is float:
            return (kind, value.hex())
        if kind in PLAIN:
            return (kind, value)
        if (state := process_state.watched(value, self.result.guards)) is not None:
            return (self.same(value), state)
        if isinstance(value, python_random.KINDS):
            self.result.generators.append(value)
            told = python_random.tells_state(value, self.attribute_names)
            return self.unwatched(value) if told else self.same(value)
        if isinstance(value, torch.nn.Module):
            return self.unnamed(value)
        if kind is weakref.ref and isinstance(value(), torch.Tensor):
            return (kind, self.same(value()))  # a recurrent layer has those of its parameters
        if is_reader(value):  # that no name leads to, to hear it
            return self.unwatched(value)
        if isinstance(value, (*OF_THREADS, *LOCKS, *STREAMS, *VIEWS)):
            return self.unwatched(value)
        if isinstance(value, type):
            return self.type(value)
        if isinstance(value, torch.Tensor):
            return self.constant(value)
        if (owner := bound_to(value)) is not None:
            return (self.same(value), self.value(owner))
        if isinstance(value, BY_IDENTITY) or is_builtin(value):
            return self.same(value)
        if kind.__module__ == "unittest.mock":
            return self.mock(value)
        if isinstance(value, functools.partial):
            return self.partial(value)
        if kind is types.MethodType:  # answers for the attributes of its function
            return (kind, self.value(value.__func__), self.value(value.__self__))
        if never_changes(value):
            return self.opaque(value)
        number = self.seen.get(id(value))
        if number is not None:
            return ("again", number)
        self._enter(value)
        if isinstance(value, remembered_calls.KIND):
            return self.remembered(value)
        is_set = isinstance(value, (set, frozenset))
        if isinstance(value, (tuple, list, dict)) or (is_set and all(map(has_identity, value))):
            return self.container(value)
        return self.object(value)

    def container(self, value: Any) -> tuple:
        """With its attributes, and what its class adds, where it is none of Python's own kinds."""
        kind, guards = type(value), self.result.guards
        held: Any
        if isinstance(value, tuple):
            held = self.entries(value, tuple.__iter__(value))
        elif isinstance(value, list):
            guards.watch_list(value, self.free.names(value))
            held = self.entries(value, list.__iter__(value))
        elif isinstance(value, dict):
            guards.watch_dict(value, self.free.names(value))
            mine = ((k, v) for k, v in items(value) if not is_of_trace(value, k, v))
            held = tuple(self.item(value, k, v) for k, v in mine)
        else:
            if isinstance(value, set):
                guards.watch_set(value)
            held = frozenset(map(self.value, value))
        if kind in (tuple, list, dict, set, frozenset):
            return (kind, held)
        if isinstance(value, defaultdict):
            guards.watch_answer(functools.partial(getattr, value, "default_factory"))
            held += (Entry(".default_factory", self.value(value.default_factory)),)
        return (kind, held, self.attributes(value))

    def entries(self, owner: Any, values: Iterable[Any]) -> tuple:
        return tuple(Entry(f"[{i}]", self.within(owner, i, x)) for i, x in enumerate(values))

    def item(self, owner: Any, key: Any, value: Any) -> tuple:
        """An item of a dict."""
        both = (self.value(key), self.within(owner, key, value))
        return Entry(f"[{key!r}]", both[1]) if type(key) in PLAIN else both

    def within(self, owner: Any, key: Any, value: Any) -> Any:
        """What a container holds."""
        is_place = is_number(value) and can_be_place(owner, key)
        return (is_place and self.free.stand_in(owner, key, value)) or self.value(value)

    def type(self, kind: type) -> Any:
        """A class and its attributes, which `forward` may be or read."""
        stable = is_stable(kind) and not issubclass(kind, torch.nn.Module)
        abstract = isinstance(kind, abc.ABCMeta)
        if id(kind) in self.seen or (stable and not abstract):
            return self.same(kind)
        self._enter(kind)
        guards, key = self.result.guards, [self.same(kind)]
        key.append(registered(kind, guards))
        if stable:
            return tuple(key)
        if not is_stable(type(kind)):  # a metaclass of the user's
            key.append(self.type(type(kind)))
        for base in kind.__mro__:
            if base is object or (is_stable(base) and not issubclass(base, torch.nn.Module)):
                continue
            guards.watch_object(base)
            guards.watch_type(base)
            names_of = (base.__name__, base.__qualname__)
            key.append(Entry(base.__qualname__, (self.same(base), *names_of)))
            if is_stable(base):
                names = _CALL_PROTOCOL if base is torch.nn.Module else vars(base)
                named = base.__qualname__
                members = (Entry(f"{named}.{n}", Same(vars(base).get(n))) for n in names)
                key.append(Entry(f"{OF_TORCH}{named}", tuple(members)))
            else:
                self.result.bindings.add_class(base)
                named = base.__qualname__
                for name, value in vars(base).items():
                    member = self.member(name, value, is_library_class(base))
                    key.append(Entry(f"{named}.{name}", member))
        return tuple(key)

    def member(self, name: str, value: Any, library: bool) -> Any:
        """A member of a class. Python's own descriptors stand for themselves: what they call is
        code."""
        is_descriptor = hasattr(type(value), "__get__") and is_stable(type(value))
        if is_descriptor and not isinstance(value, (types.MethodType, remembered_calls.KIND)):
            return Same(value)
        return self.attribute(name, value, library)

    def object(self, value: Any) -> Any:
        """Any other object: its class and attributes, such as a model's configuration."""
        if not hasattr(value, "__dict__"):
            return self.opaque(value)
        base, inner = base_in_c(type(value)), None
        if base in VALUES:
            inner = self.value(VALUES[base](value))
        elif isinstance(value, BUFFERS):
            inner = self.opaque(value)
        elif base in FIXED:
            inner = self.same(value)
        elif base not in OF_ATTRIBUTES:
            inner = self.unwatched(value)
        return (self.attributes(value), inner)

    def attributes(self, value: Any) -> tuple:
        self.slots(value)
        held: tuple = ()
        if hasattr(value, "__dict__"):
            owner = vars(value)
            self.result.guards.watch_object(value, self.free.names(owner))
            library = is_library_class(type(value))
            entries = ((n, self.attribute(n, v, library, owner)) for n, v in owner.items())
            held = tuple(Entry(f".{name}", key) for name, key in entries)
        return (Entry(".__class__", self.type(type(value))), held)

    def slots(self, value: Any) -> None:
        """Attributes outside of `__dict__` have no guard."""
        kind = type(value)
        if kind not in self.slotted:
            bases = (base for base in kind.__mro__ if not is_stable(base))
            members = (member for base in bases for member in vars(base).values())
            self.slotted[kind] = any(isinstance(m, types.MemberDescriptorType) for m in members)
        if self.slotted[kind]:
            self.unwatched(value)

    def remembered(self, value: Any) -> Any:
        """A function that remembers its results: they are not made anew, and a call that adds to
        them has an effect."""
        entries = remembered_calls.entries(value)
        self.result.guards.watch_dict(entries)
        results = remembered_calls.results(value)
        return (self.object(value), tuple(self.value(each) for each in results))

    def partial(self, value: functools.partial) -> tuple:
        self.result.guards.watch_object(value)
        held = (value.func, value.args, value.keywords, vars(value))
        return (self.same(value), *map(self.value, held))

    def mock(self, value: Any) -> tuple:
        """Its attributes alone: to look further makes more of its kind."""
        self.result.guards.watch_object(value)
        plain = ((k, v) for k, v in vars(value).items() if type(v) in PLAIN)
        return (self.same(value), tuple(Entry(f".{k}", self.value(v)) for k, v in plain))

    def opaque(self, value: Any) -> Any:
        """An object without attributes to watch: one that never changes, memory that is
        compared on every call, or a reason to leave the calls to PyTorch."""
        kind = type(value)
        if isinstance(value, BUFFERS):
            if not isinstance(value, numpy.ndarray) or not value.dtype.hasobject:
                if memoryview(value).nbytes <= MOST_WATCHED_BYTES:
                    self.result.guards.watch_buffer(value)
                    return (self.same(value), bytes(memoryview(value).tobytes()))
        # What compares by value and has a hash never changes, by Python's convention. An object of
        # the user's may have attributes in slots all the same, and its class code.
        elif kind.__hash__ is not None and not isinstance(value, Iterator):
            if is_stable(kind) or (kind.__hash__ is not object.__hash__ and is_library_class(kind)):
                return self.same(value)
        return self.unwatched(value)

    def unwatched(self, value: Any) -> Same:
        if self.result.reason is None:
            what = f"an object of {type(value).__qualname__}"
            if is_reader(value):
                what = f"what {value.__qualname__} tells"
            self.result.reason = f"{what}, which has no guard"
        return self.same(value)

    def same(self, value: Any) -> Same:
        value = self.originals.get(id(value), value)
        self.result.reached[id(value)] = value
        return Same(value)

    def _enter(self, value: Any) -> None:
        if len(self.seen) >= _MOST_OBJECTS:
            raise Declined("the module reaches too many objects to guard")
        self.seen[id(value)] = len(self.seen)
        self.result.reached[id(value)] = value
