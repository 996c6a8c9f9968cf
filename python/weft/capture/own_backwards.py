# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that have a backward of the user's, `torch.autograd.Function`.

A trace sees the operations of their forward alone, whose derivative is another one; where the two
agree for what a first call is given, as for a clamp that passes all gradients, no comparison
would tell. For a process that traces and ends.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch.autograd import function as autograd_function

from weft.capture.signature import Declined

# Whose functions have the derivative of what they run: scans and their like, which lower whole.
_LOWERED = "torch._higher_order_ops"

_BASE = autograd_function._SingleLevelFunction
_INNER = (__file__, autograd_function.__file__)

# Of those that a trace has met: it may catch what they raise.
_met: list[Declined] = []


@contextlib.contextmanager
def own_backwards_refused() -> Iterator[None]:
    """Within, whoever applies one to tensors that require gradients raises Declined."""

    def met(cls: type, args: tuple, kwargs: dict[str, Any]) -> None:
        given = [*args, *kwargs.values()]
        records = torch.is_grad_enabled() and any(
            isinstance(each, torch.Tensor) and each.requires_grad for each in given
        )
        if records and not cls.__module__.startswith(_LOWERED):
            _met.append(_declined(cls, _user_frame()))
            raise _met[-1]

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
    try:
        yield
    finally:
        del _BASE.apply
        autograd_function.custom_function_call = transformed


def _user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _INNER:
        frame = frame.f_back
    return frame


def refuse_own_backwards() -> None:
    """Raises: Declined, if the trace has met one."""
    if _met:
        raise _met[0]


def _declined(cls: type, caller: FrameType) -> Declined:
    reason = f"{cls.__name__} is a torch.autograd.Function, whose backward is no part of a program"
    return Declined(reason, f"{caller.f_code.co_filename}:{caller.f_lineno}")
