# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The classes of compiled modules: subclasses of the user's classes, made without calling hooks of
these or of their metaclasses."""

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
    """The class of which a compiled module's class is a subclass; any other class itself."""
    return getattr(kind, "_weft_user_class", kind)


def subclass(kind: type, first: type, names: dict[str, Any]) -> type:
    """A subclass of `kind`, a user's class. Names are looked up in `names` and in `first` before
    `kind`.

    It is made like any class in Python, since the user's metaclass has done its work for `kind`.
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
    """A property for another object that gives the attribute of `original`."""
    return property(
        lambda self: slot.__get__(original, type(original)),
        lambda self, value: slot.__set__(original, value),
        lambda self: slot.__delete__(original),
    )


def takes_arguments(kind: type) -> bool:
    """Whether making an object of the class needs arguments."""
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return True
    except ValueError:  # it has no signature
        return False
    return False


# Calls of `forward`, since libraries call `model.forward(...)`, too.


class _Eager(threading.local):
    """Compiled modules whose calls PyTorch runs on this thread."""

    def __init__(self) -> None:
        self.modules: list[torch.nn.Module] = []


_eager = _Eager()


def call_eagerly(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Calls a compiled module as if it were not compiled."""
    running = _eager.modules
    running.append(module)
    try:
        return user_class(type(module)).__call__(module, *args, **kwargs)
    finally:
        running.pop()


def forward_is_the_call(kind: type) -> bool:
    """Whether calling the module means calling `forward`, as long as no hooks are set."""
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
    """A `forward` that `answering(module)` answers like the call, without running hooks."""
    # These are local names, because torch.jit.script resolves global names in the namespace of
    # `plain`.
    eager, fx, plain_class, has_hooks = _eager, is_fx_symbolic_tracing, user_class, _has_hooks

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        # If the object has a `forward` of its own, this function is the one that it replaced and
        # calls.
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
