# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a module or function can reach besides its arguments.

For a module: itself and its methods. For a function or method: its closure, its defaults and
the globals that its code names, followed into the user's functions, classes and containers.
Of installed libraries only what their code names itself counts, by identity.
"""

from __future__ import annotations

import builtins
import collections
import functools
import gc
import os
import random
import sys
import types
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from weft._core import Callable as CompiledCallable
from weft.capture.code_names import codes, global_paths, imports, strings, texts
from weft.capture.free_numbers import is_number
from weft.capture.library_paths import LIBRARIES
from weft.capture.module_hooks import forward_hooks
from weft.capture.signature import PLAIN, Same

# Modules whose functions and constants do not change under a program.
_STABLE = frozenset({"torch", "numpy", "weft"}) | sys.stdlib_module_names - {"__main__"}
_ENVIRONMENT = (("environ",), ("getenv",))
# Through these, code reaches what no name tells.
_OF_THE_PROCESS = frozenset({"builtins", "importlib", "os", "posix", "sys"})
_GLOBAL = (vars(random)["_inst"], vars(numpy.random.mtrand)["_rand"])  # generators
# What tells of an object which attributes it has.
_OF_ALL_NAMES = {"dir", "vars", "__dict__", "getmembers", "signature", "getfullargspec"}
# What reads by a name that is text.
_BY_TEXT = frozenset("getattr hasattr attrgetter __getattribute__ eval exec".split())
# Of a module, what is looked into for itself.
_OF_MODULES = frozenset({"_parameters", "_buffers", "_modules"})


@dataclass
class References:
    """modules: in the order found. names: (namespace, name) pairs whose value matters. values:
    plain values and functions, compared by value or identity. labels: what the user calls each.
    numbers: of the names, instead, those that are numbers of the user's, with what he calls each.
    code: the user's own functions and methods, whose lines can be named. attributes: names that
    code of the user's reads or sets. environment: of variables that it may read. namespaces: of
    modules, of which any name matters. reads_all: whether code asks for what an object has, without
    naming it."""

    modules: list[torch.nn.Module] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)
    cells: list[types.CellType] = field(default_factory=list)
    functions: list[types.FunctionType] = field(default_factory=list)
    names: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    numbers: dict[tuple[int, str], tuple[dict[str, Any], str]] = field(default_factory=dict)
    code: list[types.FunctionType] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    environment: set[str] = field(default_factory=set)
    namespaces: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None
    _names: dict[int, str] = field(default_factory=dict)  # of modules and tensors, by address

    def add(self, value: Any, label: str) -> None:
        self.values.append(value)
        self.labels.append(label)

    def name(self, value: Any, label: str) -> None:
        self._names.setdefault(id(value), label)

    def label(self, value: Any) -> str:
        """What the user calls a module or a tensor."""
        return self._names.get(id(value)) or type(value).__name__

    @property
    def reads_all(self) -> bool:
        return not _OF_ALL_NAMES.isdisjoint(self.attributes)

    @property
    def makes_names(self) -> bool:
        """Whether code may read what its own names and texts do not tell."""
        return self.reads_all or not _BY_TEXT.isdisjoint(self.attributes)


def find_references(target: Callable[..., Any]) -> References:
    """What `target` (a module, a function or a bound method) reaches now."""
    references = References()
    search = _Search(references)
    is_function = isinstance(target, types.FunctionType)
    search.value(target, target.__qualname__ if is_function else "self")
    modules = iter(references.modules)  # which grow meanwhile
    while True:
        for module in modules:
            for child in search.children(module):
                search.methods(type(child))
                for name, value in vars(child).items():
                    search.attribute(value, name)
                for tensor in (*child._parameters.values(), *child._buffers.values()):
                    search.within(tensor)
                for _, hook, _ in forward_hooks(child):
                    search.hook(hook)
        count = len(references.modules)
        search.modules_in_hand()
        if references.reads_all:
            held = search.in_hand.values()
            references.namespaces = [vars(module) for module in held if is_users_module(module)]
        if count == len(references.modules):
            return references
        modules = iter(references.modules[count:])


class _Search:
    def __init__(self, references: References) -> None:
        self.found = references
        self.seen: set[int] = set()
        self.looked: dict[int, Any] = {}  # into which, kept alive
        self.in_hand: dict[int, types.ModuleType] = {}
        self.strings: set[str] = set()  # of code of the user's
        self.names_in_hand: set[tuple[int, str]] = set()

    def value(self, value: Any, name: str) -> None:
        if isinstance(value, torch.nn.Module):
            if not any(value is module for module in self.found.modules):
                self.found.modules.append(value)
                self.found.name(value, name)
        elif isinstance(value, torch.Tensor):
            if not any(value is tensor for tensor in self.found.tensors):
                self.found.tensors.append(value)
                self.found.name(value, name)
                self.within(value)
        elif isinstance(value, types.MethodType):
            self.value(value.__self__, name)
            self.value(value.__func__, getattr(value.__func__, "__qualname__", name))
        elif isinstance(value, types.FunctionType):
            self.found.add(value, name)
            self.function(value)
        elif isinstance(value, CompiledCallable):
            self.value(value.original, name)
        elif isinstance(value, types.ModuleType):
            self.hold(value)
        else:
            self.found.add(value, name)
            self.methods(value if isinstance(value, type) else type(value))
            self.within(value)

    def hook(self, hook: Any) -> None:
        """A function made anew is the same hook, if its code and what it reaches are."""
        if type(hook) is types.FunctionType:
            self.function(hook)
        else:
            self.value(hook, "a hook")

    def within(self, value: Any) -> None:
        """What functions and methods reach that lie in containers and in objects of the user's."""
        waiting = [value]
        while waiting:
            each = waiting.pop()
            kind = type(each)
            if kind in PLAIN or id(each) in self.looked:
                continue
            self.looked[id(each)] = each
            if isinstance(each, types.MethodType):
                waiting += (each.__self__, each.__func__)
            elif isinstance(each, types.FunctionType):
                if not is_library(each):
                    self.function(each)
            elif isinstance(each, types.ModuleType):
                self.hold(each)
            elif isinstance(each, functools.partial):
                waiting += (each.func, each.args, each.keywords)
            elif isinstance(each, _WRAPPERS):
                waiting += _wrapped(each)
            elif isinstance(each, (tuple, list, set, frozenset, collections.deque)):
                waiting.extend(each)
            elif isinstance(each, dict):
                waiting.extend(each.values())
            elif isinstance(each, CompiledCallable):
                waiting.append(each.original)
            elif isinstance(each, torch.nn.Module):
                self.methods(kind)
                waiting.append(vars(each))
            elif isinstance(each, torch.Tensor):  # what the user has set on it
                waiting.extend(vars(each).values())
            elif isinstance(each, type):
                if not is_stable(each) and not is_library_class(each):
                    self.methods(each)
            elif isinstance(each, types.SimpleNamespace):
                waiting.append(vars(each))
            elif not is_stable(kind) and not is_library_class(kind):
                self.methods(kind)
                waiting.append(getattr(each, "__dict__", None))

    def children(self, module: torch.nn.Module) -> list[torch.nn.Module]:
        try:
            return [*module.modules()]
        except TypeError as error:  # a class that compares by value, such as a dataclass
            self.found.reason = f"the module's children cannot be told apart: {error}"
            return []

    def attribute(self, value: Any, name: str) -> None:
        """What the snapshot of a module's attributes guards by identity alone."""
        if isinstance(value, types.MethodType):
            value = value.__func__
        if isinstance(value, types.FunctionType):
            self.function(value)
        elif callable(value) and not isinstance(value, (type, torch.nn.Module)):
            self.methods(type(value))
        if name not in _OF_MODULES:
            self.within(value)

    def function(self, function: types.FunctionType) -> None:
        if id(function) in self.seen or is_stable(function):
            return
        self.seen.add(id(function))
        self.found.functions.append(function)
        self.found.code.append(function)
        self.found.add(Same(function.__code__), f"{function.__qualname__}.__code__")
        library = is_library(function)
        if (registry := registry_of(function)) is not None:
            self.value(registry, f"the implementations of {function.__qualname__}")
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.reached(default, f"a default of {function.__qualname__}", library)
        free = function.__code__.co_freevars
        for name, cell in zip(free, function.__closure__ or (), strict=True):
            self.found.cells.append(cell)
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                self.found.reason = self.found.reason or f"{name!r} is not bound yet"
                continue
            if isinstance(value, types.FunctionType):
                self.function(value)  # that this one decorates
            self.reached(value, name, library)
        for code in codes(function.__code__):
            if not library:
                self.found.attributes.update(code.co_names)
                self.strings.update(texts(code.co_consts))
                if "__subclasses__" in code.co_names:
                    self.found.reason = "asks a class for its subclasses, which have no guard"
            self.globals(function, code, library)
            if not library:
                self.imports(code)

    def reached(self, value: Any, name: str, library: bool) -> None:
        """A value that a function names. Tensors and modules of a library are as any."""
        if library and not isinstance(value, (torch.Tensor, torch.nn.Module)):
            self.found.add(Same(value), name)
            if isinstance(value, types.FunctionType) and not is_stable(value):
                self.found.code.append(value)
        else:
            self.value(value, name)

    def methods(self, kind: type) -> None:
        """What the methods and properties of a class reach, and those of its class."""
        if type(kind) is not type:
            self.methods(type(kind))
        for base in kind.__mro__:
            if id(base) in self.seen or is_stable(base):
                continue
            self.seen.add(id(base))
            for member in vars(base).values():
                for function in _wrapped(member):
                    self.function(function)
                if not isinstance(member, types.FunctionType):
                    self.within(member)

    def globals(self, function: types.FunctionType, code: types.CodeType, library: bool) -> None:
        for path in global_paths(code):
            namespace: Any = function.__globals__
            module = None
            for name in path:
                self.found.names.append((namespace, name))
                if name not in namespace:
                    if namespace is function.__globals__ and name in vars(builtins):
                        self.found.names.append((vars(builtins), name))
                        self.found.add(Same(vars(builtins)[name]), name)
                    if module is not None:  # which may be asked for it
                        self.hold(module)
                    break
                value = namespace[name]
                if not library and (
                    value is os.getenv
                    or value is os.environ
                    or (value is os and path[1:2] in _ENVIRONMENT)
                ):
                    # Their names are among the code's constants; observation.py notices others.
                    self.found.environment.update(strings(function.__code__))
                if is_builtin(value) and bound_to(value) is None:
                    self.found.add(Same(value), ".".join(path))
                    break
                if not library and is_number(value):
                    self.found.numbers[id(namespace), name] = namespace, ".".join(path)
                    break
                if not isinstance(value, types.ModuleType) or library:
                    self.reached(value, ".".join(path), library)
                    break
                # Python's modules and torch's, too: tools patch their functions.
                self.found.add(value, name)
                namespace, module = vars(value), value
            else:
                if isinstance(value, types.ModuleType):
                    self.hold(value)

    def imports(self, code: types.CodeType) -> None:
        """What `import module` and `from module import name` within a function find."""
        for module_name, names in imports(code):
            self.found.names.append((sys.modules, module_name))
            module = sys.modules.get(module_name)
            if module is None:
                continue
            self.hold(module)
            for name in () if is_stable(module) else names:
                self.found.names.append((vars(module), name))
                if name in vars(module):
                    self.reached(vars(module)[name], f"{name!r} of {module_name}", library=False)

    def hold(self, module: types.ModuleType) -> None:
        """One that code has in hand: by a global, a closure, an attribute, within a container."""
        if id(module) in self.in_hand:
            return
        self.in_hand[id(module)] = module
        self.found.add(module, module.__name__)
        if type(module) is not types.ModuleType and not is_stable(type(module)):
            self.value(type(module), f"the class of {module.__name__}")
        for name in vars(module).keys() & {"__getattr__", "__dir__"}:
            self.reached(vars(module)[name], f"{name!r} of {module.__name__}", library=False)

    def modules_in_hand(self) -> None:
        """What of them goes by a name or text in the user's code, as tools patch it. Of a module
        of the user's also what that reaches, and all names where `getattr(settings, name)` may
        read any."""
        before = None
        while before != (now := (len(self.in_hand), len(self.found.attributes), len(self.strings))):
            before, names = now, self.found.attributes | self.strings
            for module in [*self.in_hand.values()]:
                known = not is_users_module(module)
                # What one of the user's does not have, code may ask for, or find with a default.
                for name in sorted(names & vars(module).keys() if known else names):
                    if (id(module), name) not in self.names_in_hand:
                        self.names_in_hand.add((id(module), name))
                        self.found.names.append((vars(module), name))
                        if name not in vars(module):
                            continue
                        value = vars(module)[name]
                        if isinstance(value, types.ModuleType):
                            self.hold(value)
                        else:
                            self.reached(value, f"{name!r} of {module.__name__}", known)
        for module in self.in_hand.values() if self.found.makes_names else ():
            for name, value in () if is_stable(module) else vars(module).items():
                if (id(module), name) not in self.names_in_hand:
                    self.names_in_hand.add((id(module), name))
                    self.found.names.append((vars(module), name))
                    kept = value if isinstance(value, PLAIN) else Same(value)
                    self.found.add(kept, f"{module.__name__}.{name}")


# What decorators of Python's make of a function.
_WRAPPERS = (
    *(property, staticmethod, classmethod, functools._lru_cache_wrapper),
    *(functools.cached_property, functools.partialmethod, functools.singledispatchmethod),
)


def _wrapped(value: Any) -> list[types.FunctionType]:
    """The functions of the user's that such an object calls, or the object if it is one."""
    inner: tuple[Any, ...] = ()
    match value:
        case types.FunctionType():
            return [value]
        case property():
            inner = (value.fget, value.fset, value.fdel)
        case staticmethod() | classmethod():
            inner = (value.__func__,)
        case functools._lru_cache_wrapper():
            inner = (vars(value).get("__wrapped__"),)
        case functools.cached_property() | functools.partialmethod():
            inner = (value.func,)
        case functools.singledispatchmethod():
            inner = (value.dispatcher, value.func)
    return [function for each in inner for function in _wrapped(each)]


def registry_of(function: types.FunctionType) -> dict[type, Any] | None:
    """The registry of implementations that `functools.singledispatch` chooses from, to which others
    may be added."""
    view = vars(function).get("registry")
    if not isinstance(view, types.MappingProxyType) or "dispatch" not in vars(function):
        return None
    (registry,) = gc.get_referents(view)
    assert isinstance(registry, dict)
    return registry


def is_builtin(value: Any) -> bool:
    """Whether it is a function of C or Cython, of which there is nothing more to see."""
    kinds = ("builtin_function_or_method", "cython_function_or_method")
    return type(value).__name__ in kinds


def bound_to(value: Any) -> Any:
    """The object that a method of C is bound to, as `table.get` is to the table. None for any other
    value, and for methods of the generators that Python and NumPy draw from by themselves."""
    if not is_builtin(value) and not isinstance(value, types.MethodWrapperType):
        return None
    owner = getattr(value, "__self__", None)
    kept = (types.ModuleType, type)
    return None if isinstance(owner, kept) or any(owner is each for each in _GLOBAL) else owner


def is_library(function: types.FunctionType) -> bool:
    return function.__code__.co_filename.startswith(LIBRARIES)


def is_library_class(kind: type) -> bool:
    return is_library_module(sys.modules.get(kind.__module__))


def is_library_module(module: types.ModuleType | None) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(LIBRARIES)


def is_users_module(module: types.ModuleType) -> bool:
    return not (is_stable(module) or is_library_module(module))


def is_stable(value: Any) -> bool:
    """Whether a function, class or module belongs to Python or torch."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _STABLE
    module = getattr(value, "__module__", None)
    return (
        isinstance(module, str)
        and module.partition(".")[0] in _STABLE
        or (getattr(builtins, getattr(value, "__name__", ""), None) is value)
    )


def is_watched_import(
    name: str, names: Iterable[str], level: int, watched: Container[tuple[int, str]]
) -> bool:
    """Whether `import name`, or `from name import names`, gives what it gave when references were
    found. watched: the ids of namespaces with names in them."""
    module = sys.modules.get(name)
    if level or module is None or name.partition(".")[0] in _OF_THE_PROCESS:
        return False
    if is_stable(module):
        return True
    found = vars(module)
    return bool(names) and all(each in found and (id(found), each) in watched for each in names)


@functools.cache
def names_of_torch() -> tuple[str, ...]:
    """Functions of `torch` that its layers call."""
    found: set[types.CodeType] = set()
    seen: set[int] = set()  # what several modules have imported
    for name, module in [*sys.modules.items()]:
        if name.startswith(("torch.nn.modules.", "torch.nn.functional")):
            for value in [*vars(module).values()]:
                if id(value) in seen:
                    continue
                seen.add(id(value))
                for function in [value, *(vars(value).values() if isinstance(value, type) else ())]:
                    if isinstance(function, types.FunctionType):
                        found.update(codes(function.__code__))
    named = {name for code in found for name in code.co_names}
    return tuple(sorted(name for name in named if callable(vars(torch).get(name))))
