# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules. A compiled module is an object of a subclass of the user's class that shares
the original's `__dict__`, so that whatever is done to one is done to the other. Its calls are
answered in C++ (bindings/ModuleBase.h)."""

from __future__ import annotations

import copy
import copyreg
import functools
import importlib
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from weft import _core
from weft.compiled.imported import Imported
from weft.compiled.module_subclass import (
    call_eagerly,
    forward_is_the_call,
    forward_like,
    slot_of,
    slots,
    subclass,
    takes_arguments,
    user_class,
)

# The names that a compiled module adds, unless the user's class or object has the name.
FACE = frozenset(
    {
        *("artifact_path", "artifact_paths", "compile_seconds", "eager_reasons", "graph", "ir"),
        *("graph_for", "original", "profile", "report", "stats", "visualize", "wait"),
        *("guards", "log", "why_miss"),  # for observed calls
    }
)
# Those of them that may be called at any time.
_METHODS = ("graph", "graph_for", "ir", "profile", "report", "stats", "visualize", "wait")
_OF_BASE = ("_adopt", "_held", "_hold")
_held, _hold = _core.ModuleBase._held, _core.ModuleBase._hold
_class_of = object.__dict__["__class__"]


class _Face(torch.nn.Module):
    """The first base of a subclass of the user's class. A user's own name is found before the names
    that `__getattr__` adds. `__class__` is the user's class, which torch's tools set and derive
    from; only `type` gives the subclass."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """`type(self)(config)` makes a module of the user's class, and
        `type(self).__new__(type(self))` one without attributes."""
        kind = user_class(cls)
        if kind is cls or (not args and not kwargs and takes_arguments(kind)):
            return kind.__new__(kind, *args, **kwargs)
        return kind(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Hides the subclass from the user's class. A subclass that the user defines would
        otherwise have its calls answered like those of the class that it overrides."""
        if "_weft_user_class" not in vars(cls) and user_class(cls) is not cls:
            name = user_class(cls).__qualname__
            raise TypeError(
                f"expected a class that weft.compile has not made as the base of "
                f"{cls.__qualname__}: make a subclass of {name}, the compiled module's __class__"
            )

    @property
    def __class__(self) -> type:
        return _class_now(self)

    @__class__.setter
    def __class__(self, kind: type) -> None:
        _module_of(self).__class__ = kind
        _follow(self, kind)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            before, _ = type(self), _class_now(self)
            if type(self) is not before:
                return getattr(self, name)
            callable_ = callable_of(self)
            if callable_ is not None and name in FACE:
                return getattr(callable_, name)
            if callable_ is not None and name == "__signature__":
                return inspect.signature(callable_.original)
            raise

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *_METHODS}


class _Beside(_Face):
    """A compiled module beside its original. Copies of it are compiled too, and have their own
    programs."""

    def __copy__(self) -> Any:
        return _compiled_again(copy.copy(_module_of(self)), callable_of(self).settings)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = copy.deepcopy(_module_of(self), memo)
        if id(self) not in memo:
            memo[id(self)] = _compiled_again(twin, callable_of(self).settings)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _compiled_again, (_module_of(self), callable_of(self).settings)


class CompiledModule(_core.ModuleBase, _Beside):
    """The class of compiled modules; all compiled modules of one class of the user's share a
    subclass."""

    __new__ = _Face.__new__

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The original may hold its own compiled module, which is therefore made before the
        original."""
        state = (_module_of(self), callable_of(self).settings)
        return _blank, (), state, None, None, _fill


class _InPlace(_Face):
    """A module that is compiled in place. Copies of it are like those of a module that is not
    compiled."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = user_class(type(self))
        function, arguments, *rest = kind.__reduce_ex__(self, protocol)
        arguments = tuple(kind if each is type(self) else each for each in arguments)
        return function, arguments, *rest


def compiled_module(original: torch.nn.Module, callable_: _core.Callable) -> torch.nn.Module:
    """The module whose calls `callable_` answers."""
    _watch_registrations()
    kind = user_class(type(original))
    if slots(kind):
        made = object.__new__(_class_beside_slots(original, callable_))
        object.__setattr__(made, "__dict__", vars(original))
        _show(made, callable_)
        return made
    made = _blank()
    _become(made, original, callable_)
    return made


def compile_in_place(
    module: torch.nn.Module, make: Callable[[Callable[..., Any]], _core.Callable]
) -> None:
    """Lets the object's calls be answered by what `make` returns for its uncompiled calls. An
    object that was compiled beside an original keeps its class; another one gets a class for
    itself."""
    if _is(module, CompiledModule):
        _answer(module, make(_held(module).original))
        return
    kind = user_class(type(module))
    callable_ = make(types.MethodType(call_eagerly, module))
    _class_of.__set__(module, _class_of_one(kind, _InPlace, callable_))


def callable_of(compiled: Any) -> _core.Callable | None:
    """The callable that answers the calls of what weft.compile returned; None for anything else."""
    if _is(compiled, _core.Callable):
        return compiled
    if _is(compiled, CompiledModule):
        return _held(compiled)
    if _is(compiled, Imported):
        return compiled.callable
    found = vars(type(compiled)).get("_weft_callable")
    return found if _is(found, _core.Callable) else None


def is_in_place(module: Any) -> bool:
    return _is(module, _InPlace)


def _is(compiled: Any, kind: type) -> bool:
    """`isinstance` would use `__class__`, which is the user's class."""
    return issubclass(type(compiled), kind)


# Classes.

# One subclass for each class, which lives as long as it is used.
_classes: weakref.WeakValueDictionary[type, type] = weakref.WeakValueDictionary()


def _class_for(kind: type) -> type:
    found = _classes.get(kind)
    if found is None:
        # Functions of the base must not hide the user's.
        own = {each: inspect.getattr_static(kind, each) for each in _OF_BASE if hasattr(kind, each)}
        found = _subclass(kind, CompiledModule, own)
        _core.ModuleBase._adopt(found)
        _classes[kind] = found
    return found


def _class_of_one(
    kind: type, first: type, callable_: _core.Callable, names: dict[str, Any] | None = None
) -> type:
    """A class for a single object, whose calls `callable_` answers."""
    answering = {"__call__": callable_, "_weft_callable": callable_}
    return _subclass(kind, first, answering | (names or {}))


def _class_beside_slots(original: torch.nn.Module, callable_: _core.Callable) -> type:
    """A class for an original with slots, which leave no room for the base in C++. The original's
    slots serve both objects."""
    kind = user_class(type(original))
    names = {name: slot_of(slot, original) for name, slot in slots(kind).items()}
    return _class_of_one(kind, _Beside, callable_, names)


def _subclass(kind: type, first: type, names: dict[str, Any]) -> type:
    if issubclass(kind, torch.fx.GraphModule):
        names["recompile"] = _recompile
    elif forward_is_the_call(kind):
        names["forward"] = forward_like(kind.forward, callable_of)
    return subclass(kind, first, names)


def _recompile(self: Any) -> Any:
    """As `recompile` of a torch.fx.GraphModule, which sets `forward` and `__call__` of its
    class."""
    return _module_of(self).recompile()


# Objects.


def _blank() -> Any:
    return _core.ModuleBase.__new__(_class_for(torch.nn.Module))


def _become(made: Any, original: torch.nn.Module, callable_: _core.Callable) -> None:
    _class_of.__set__(made, _class_for(user_class(type(original))))
    object.__setattr__(made, "__dict__", vars(original))
    _answer(made, callable_)


def _answer(made: CompiledModule, callable_: _core.Callable) -> None:
    _hold(made, callable_)
    _show(made, callable_)


def _show(made: _Beside, callable_: _core.Callable) -> None:
    """Lets torch.fx find the compiled modules that other modules hold, instead of their
    originals."""
    held = weakref.ref(made)
    callable_.face.traced = lambda *args, **kwargs: call_eagerly(held(), *args, **kwargs)


def _fill(made: Any, state: tuple[torch.nn.Module, dict[str, Any]]) -> None:
    original, settings = state
    _become(made, original, callable_of(_compiled_again(original, settings)))


def _compiled_again(original: Any, settings: dict[str, Any]) -> Any:
    from weft.compiled.api import compile

    return compile(original, **settings)


def _module_of(compiled: Any) -> torch.nn.Module:
    """The original; for a module that is compiled in place, an object that shares its
    `__dict__`."""
    if not _is(compiled, _InPlace):
        return callable_of(compiled).original
    kind = user_class(type(compiled))
    twin = object.__new__(kind)
    object.__setattr__(twin, "__dict__", vars(compiled))
    return twin


def _class_now(compiled: Any) -> type:
    """The user's class, which parametrizations and lazy parameters replace."""
    kind = user_class(type(compiled))
    if _is(compiled, _InPlace) or callable_of(compiled) is None:
        return kind
    now = user_class(type(_module_of(compiled)))
    if now is not kind:
        _follow(compiled, now)
    return now


def _follow(compiled: Any, kind: type) -> None:
    callable_ = callable_of(compiled)
    if _is(compiled, CompiledModule):
        made = _class_for(kind)
    elif _is(compiled, _InPlace):
        made = _class_of_one(kind, _InPlace, callable_)
    else:
        made = _class_beside_slots(callable_.original, callable_)
    _class_of.__set__(compiled, made)


def method_itself(target: Any) -> Any:
    """The user's method, if `target` is a compiled module's `forward`."""
    if not isinstance(target, types.MethodType) or not hasattr(target, "_weft_forward"):
        return target
    compiled = target.__self__
    module = compiled if is_in_place(compiled) else _module_of(compiled)
    return types.MethodType(user_class(type(module)).forward, module)


# Copies of compiled functions and methods.


def _reduced(callable_: _core.Callable) -> Any:
    """A function is copied by its name, if that refers to the compiled one; a method is compiled
    again, for the copy of its module."""
    original = callable_.original
    if isinstance(original, types.FunctionType):
        name = (original.__module__, original.__qualname__)
        if original.__module__ in sys.modules and _named(*name) is callable_:
            return _named, name
    return _compiled_again, (original, callable_.settings)


def _named(module: str, qualified_name: str) -> Any:
    found: Any = importlib.import_module(module)
    for name in qualified_name.split("."):
        found = getattr(found, name, None)
    return found


copyreg.pickle(_core.Callable, _reduced)


# A module among its own attributes.


class _Itself(torch.nn.Module):
    """A module's compiled self as an entry among its children, where the compiled module itself
    would make every walk over the module endless. The attribute is the compiled module."""

    def extra_repr(self) -> str:
        return "compiled"


def _keep_out_of_itself(parent: torch.nn.Module, name: str, child: Any) -> Any:
    """Lets `model.compiled = weft.compile(model)` make no cycle of modules."""
    if not _is(child, _Beside) or vars(child) is not vars(parent):
        return None
    if not hasattr(type(parent), name):  # otherwise the class's attribute would be found first
        vars(parent)[name] = child
    return _Itself().train(parent.training)


@functools.cache
def _watch_registrations() -> None:
    torch_module.register_module_module_registration_hook(_keep_out_of_itself)
