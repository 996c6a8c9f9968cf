# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the user keeps out of programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from weft.capture import isolated
from weft.capture.signature import Declined

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Of those that a trace has met: it may catch what they raise. Traces have a process of their own.
_met: list[str] = []


def disable(function: _Function) -> _Function:
    """What does the same as `function`, and is never part of a program: PyTorch runs every call of
    a compiled function or module that reaches it, and the report says so.

    function: a function, or a module, which is changed in place and returned. Also a decorator.
    Raises: TypeError for what cannot be called.
    """
    if isinstance(function, torch.nn.Module):
        function.forward = disable(function.forward)
        return function
    if not callable(function):
        raise TypeError(f"expected a function or module, found {type(function).__qualname__}")
    name = getattr(function, "__qualname__", type(function).__qualname__)

    @functools.wraps(function)
    def kept_out(*args: Any, **kwargs: Any) -> Any:
        if isolated.in_child():
            _met.append(name)
            raise _reason(name)
        id(kwargs)  # which ends an observation: it knows no identity of what a call makes
        return function(*args, **kwargs)

    return kept_out


def refuse_kept_out() -> None:
    """Raises: Declined, if the trace has met such a function."""
    if _met:
        raise _reason(_met[0])


def _reason(name: str) -> Declined:
    return Declined(f"it calls {name}, which weft.disable keeps out of programs")
