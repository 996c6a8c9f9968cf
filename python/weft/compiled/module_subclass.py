# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The classes that compiled modules get: subclasses of the user's classes, made so that these and
their metaclasses hear nothing of it.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.fx._symbolic_trace import is_fx_symbolic_tracing
from torch.nn.modules import module as torch_module

from weft.capture.reachability import is_stable


def user_class(kind: type) -> type:
    """The class of which a compiled module's is a subclass; another class itself."""
    return getattr(kind, "_weft_user_class", kind)


def subclass(kind: type, first: type, names: dict[str, Any]) -> type:
    """Of `kind`, a user's class; what it finds in `names` and then in `first` goes before that.

    Made as Python makes a class: what a metaclass of the user's does, it has done.
    """
    names |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    names |= {"__doc__": kind.__doc__, "_weft_user_class": kind}
    maker = next(base for base in type(kind).__mro__ if is_stable(base))
    return maker.__new__(type(kind), kind.__name__, (first, kind), names)


def slots(kind: type) -> dict[str, Any]:
    """The class's descriptors of attributes that are stored outside of `__dict__`."""
    return {
        name: value
        for base in reversed(kind.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    }


def slot_of(slot: Any, original: torch.nn.Module) -> property:
    """The attribute of `original` as another object's."""
    return property(
        lambda self: slot.__get__(original, type(original)),
        lambda self, value: slot.__set__(original, value),
        lambda self: slot.__delete__(original),
    )


def takes_arguments(kind: type) -> bool:
    """Whether an object of the class cannot be made without."""
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return True
    except ValueError:  # no signature
        return False
    return False


# Libraries call `model.forward(...)`, too.


class _Eager(threading.local):
    """modules: compiled ones whose calls PyTorch runs on this thread."""

    def __init__(self) -> None:
        self.modules: list[torch.nn.Module] = []


_eager = _Eager()


def call_eagerly(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """A call of a compiled module as of one that is not."""
    running = _eager.modules
    running.append(module)
    try:
        return user_class(type(module)).__call__(module, *args, **kwargs)
    finally:
        running.pop()


def forward_is_the_call(kind: type) -> bool:
    """Whether a call is one of `forward`, as long as no hooks are set."""
    forward = inspect.getattr_static(kind, "forward", None)
    return (
        isinstance(forward, types.FunctionType)
        and forward is not torch.nn.Module.forward
        and kind.__call__ is torch.nn.Module.__call__
    )


def _has_hooks(module: torch.nn.Module) -> bool:
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or torch_module._has_any_global_hook()
    )


def forward_like(
    plain: types.FunctionType, answering: Callable[[Any], Callable[..., Any]]
) -> types.FunctionType:
    """A `forward` that `answering(module)` answers as it does the call. Hooks are none of it."""
    # Not global names: torch.jit.script resolves those of `plain` in what it is given.
    eager, fx, plain_class, has_hooks = _eager, is_fx_symbolic_tracing, user_class, _has_hooks

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Where the object has a `forward` of its own, this is what that one has replaced and calls.
        own = "forward" in self.__dict__
        if own or any(each is self for each in eager.modules) or fx() or has_hooks(self):
            return plain_class(type(self)).forward(self, *args, **kwargs)
        return answering(self)(*args, **kwargs)

    made = types.FunctionType(
        forward.__code__, plain.__globals__, plain.__name__, None, forward.__closure__
    )
    functools.update_wrapper(made, plain, ("__name__", "__qualname__", "__doc__"))
    made.__module__ = __name__
    made.__dict__["_weft_forward"] = True
    return made
