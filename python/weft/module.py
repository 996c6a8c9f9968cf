# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled module is a module: an object of a subclass of the user's class that shares the
original's `__dict__`, so that whatever is done to one is done to the other. Its calls are answered
in C++ (bindings/ModuleBase.h).
"""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook

from weft import _core

# What a compiled module answers itself, unless the user's class or object has the name.
FACE = frozenset(
    {
        *("artifact_path", "artifact_paths", "compile_seconds", "eager_reasons", "ir"),
        *("original", "profile", "report", "stats"),
    }
)


class CompiledModule(_core.ModuleBase):
    """The methods that a subclass of the user's class gets first. A user's own name is found before
    what is looked for here in `__getattr__`."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # `type(self)(config)` makes a module of the user's class.
        return user_class(cls)(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """The user's class hears nothing of it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            callable_ = _core.ModuleBase._held(self)
            if callable_ is not None:
                if name in FACE:
                    return getattr(callable_, name)
                if name == "__signature__":
                    return inspect.signature(callable_.original)
            raise

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *FACE}

    def __copy__(self) -> Any:
        callable_ = _core.ModuleBase._held(self)
        return _compiled_again(copy.copy(callable_.original), callable_.settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy is compiled too, by programs of its own."""
        callable_ = _core.ModuleBase._held(self)
        return _compiled_again, (callable_.original, callable_.settings)

    def recompile(self) -> Any:
        """Of a torch.fx.GraphModule: it sets its class's `forward` and `__call__`."""
        original = _core.ModuleBase._held(self).original
        if not isinstance(original, torch.fx.GraphModule):
            return self.__getattr__("recompile")
        return original.recompile()


def user_class(kind: type) -> type:
    """The class of which a compiled module's is a subclass."""
    return kind.__mro__[kind.__mro__.index(_core.ModuleBase) + 1]


# One subclass for each class, as long as anyone uses it.
_classes: weakref.WeakValueDictionary[type, type] = weakref.WeakValueDictionary()


def compiled_module(original: torch.nn.Module, callable_: _core.Callable) -> torch.nn.Module:
    """The module that `callable_` answers the calls of."""
    _watch_registrations()
    made = _core.ModuleBase.__new__(_class_for(type(original)))
    object.__setattr__(made, "__dict__", vars(original))
    _core.ModuleBase._hold(made, callable_)
    return made


def _class_for(kind: type) -> type:
    found = _classes.get(kind)
    if found is None:
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        names |= {"__doc__": kind.__doc__}
        found = type(kind)(kind.__name__, (CompiledModule, kind), names)
        _core.ModuleBase._adopt(found)
        _classes[kind] = found
    return found


def compile_in_place(module: torch.nn.Module, callable_: _core.Callable) -> None:
    """The object gets a class of its own, a subclass of its class, whose calls `callable_` answers.
    Copies of it are as those of a module that is not compiled."""
    kind = type(module)

    def plain(self: torch.nn.Module) -> torch.nn.Module:
        twin = kind.__new__(kind)
        object.__setattr__(twin, "__dict__", vars(self))
        return twin

    def attribute(self: torch.nn.Module, name: str) -> Any:
        try:
            return kind.__getattr__(self, name)
        except AttributeError:
            if name not in FACE:
                raise
            return getattr(callable_, name)

    names = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__new__": lambda cls, *args, **kwargs: kind(*args, **kwargs),
        "__call__": callable_,
        "__copy__": lambda self: copy.copy(plain(self)),
        "__reduce_ex__": lambda self, protocol: (_itself, (plain(self),)),
        "__getattr__": attribute,
        "_weft_callable": callable_,
    }
    module.__class__ = type(kind)(kind.__name__, (kind,), names)


def callable_of(compiled: Any) -> _core.Callable | None:
    """What answers the calls of what weft.compile returned, None of anything else."""
    if isinstance(compiled, _core.Callable):
        return compiled
    if isinstance(compiled, _core.ModuleBase):
        return _core.ModuleBase._held(compiled)
    found = vars(type(compiled)).get("_weft_callable")
    return found if isinstance(found, _core.Callable) else None


def _itself(module: torch.nn.Module) -> torch.nn.Module:
    return module


def _compiled_again(original: torch.nn.Module, settings: dict[str, Any]) -> torch.nn.Module:
    from weft.compiled import compile

    return compile(original, **settings)


class _Itself(torch.nn.Module):
    """A module's compiled self among its children: it has no parameters or children of its own, or
    every walk over the module would go round in circles."""

    def __init__(self, compiled: CompiledModule) -> None:
        super().__init__()
        object.__setattr__(self, "_compiled", weakref.ref(compiled))
        # The parent holds it, as it would have held the child.
        object.__setattr__(self, "_callable", _core.ModuleBase._held(compiled))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._callable(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_callable"], name)


def _keep_out_of_itself(parent: torch.nn.Module, name: str, child: Any) -> Any:
    """`model.compiled = weft.compile(model)` makes no circle."""
    if isinstance(child, CompiledModule) and vars(child) is vars(parent):
        return _Itself(child)
    return None


@functools.cache
def _watch_registrations() -> None:
    register_module_module_registration_hook(_keep_out_of_itself)
