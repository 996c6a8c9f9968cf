# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call leaves of the user's own for its backward: functions that have one,
`torch.autograd.Function`, and hooks on gradients and on what is saved for a backward.

A trace sees the operations of a function's forward alone, whose derivative is another one; where
the two agree for what a first call is given, as for a clamp that passes all gradients, no
comparison would tell. Nor would any of a hook that looks at a gradient and passes it on. For a
process that traces and ends.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.autograd import function as autograd_function
from torch.autograd import graph as autograd_graph

from weft.capture.signature import Declined

# Whose functions have the derivative of what stands in the program: scans and their like, which
# lower whole, and registered operators, whose own derivatives PyTorch runs.
_IN_PROGRAMS = ("torch._higher_order_ops", "torch._library.autograd")

_BASE = autograd_function._SingleLevelFunction
_INNER = (__file__, autograd_function.__file__, autograd_graph.__file__, torch._tensor.__file__)

_OF_TENSORS = ("register_hook", "register_post_accumulate_grad_hook")

# Whose hooks note where nodes of a traced backward come from, and look at no gradient: `scan`
# traces its body's backward.
_NOTES_PLACES = "torch._functorch._aot_autograd.logging_utils"

# Of those that a trace has met: it may catch what they raise.
_met: list[Declined] = []


@contextlib.contextmanager
def own_backwards_refused() -> Iterator[None]:
    """Within, whoever applies one to tensors that require gradients, or sets a hook, raises
    Declined."""

    def met(cls: type, args: tuple, kwargs: dict[str, Any]) -> None:
        given = [*args, *kwargs.values()]
        records = torch.is_grad_enabled() and any(
            isinstance(each, torch.Tensor) and each.requires_grad for each in given
        )
        if records and not cls.__module__.startswith(_IN_PROGRAMS):
            name = f"{cls.__name__} is a torch.autograd.Function, whose backward"
            _refuse(f"{name} is no part of a program")

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        met(cls, args, kwargs)
        return super(_BASE, cls).apply(*args, **kwargs)  # type: ignore[misc]

    transformed = autograd_function.custom_function_call

    def call(cls: type, *args: Any, **kwargs: Any) -> Any:
        met(cls, args, kwargs)
        return transformed(cls, *args, **kwargs)

    # What `Function.apply` calls, of which many a module keeps a bound method.
    _BASE.apply = classmethod(apply)
    autograd_function.custom_function_call = call
    registering = {name: getattr(torch.Tensor, name) for name in _OF_TENSORS}
    for name, register in registering.items():
        setattr(torch.Tensor, name, _refused_hook(register))
    # What autograd's nodes ask for a place to keep a hook.
    mixin = autograd_function._HookMixin
    of_nodes = vars(mixin)["_register_hook"]
    mixin._register_hook = staticmethod(_refused_hook(of_nodes.__func__))
    saving = autograd_graph.saved_tensors_hooks
    enter = saving.__enter__

    def saves(hooks: Any) -> None:
        if not str(getattr(hooks.pack_hook, "__module__", None)).startswith("torch."):
            _refuse("the call sets a hook on what is saved, which is no part of a program")
        enter(hooks)

    saving.__enter__ = saves
    try:
        yield
    finally:
        del _BASE.apply
        autograd_function.custom_function_call = transformed
        mixin._register_hook = of_nodes
        saving.__enter__ = enter
        for name, register in registering.items():
            setattr(torch.Tensor, name, register)


def _refused_hook(register: Callable) -> Callable:
    @functools.wraps(register)
    def refused(*args: Any, **kwargs: Any) -> Any:
        if _user_frame().f_globals.get("__name__") == _NOTES_PLACES:
            return register(*args, **kwargs)
        _refuse("the call sets a hook on a gradient, which is no part of a program")

    return refused


def _user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _INNER:
        frame = frame.f_back
    return frame


def refuse_own_backwards() -> None:
    """Raises: Declined, if the trace has met one."""
    if _met:
        raise _met[0]


def _refuse(reason: str) -> None:
    caller = _user_frame()
    _met.append(Declined(reason, f"{caller.f_code.co_filename}:{caller.f_lineno}"))
    raise _met[-1]
