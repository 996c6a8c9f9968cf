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

from weft.capture.signature import Declined

# Whose functions have the derivative of what they run: scans and their like, which lower whole.
_LOWERED = "torch._higher_order_ops"

# Of those that a trace has met: it may catch what they raise.
_met: list[Declined] = []


@contextlib.contextmanager
def own_backwards_refused() -> Iterator[None]:
    """Within, whoever applies one to tensors that require gradients raises Declined."""
    original = torch.autograd.Function.__dict__["apply"]

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        records = torch.is_grad_enabled() and any(
            isinstance(each, torch.Tensor) and each.requires_grad for each in given
        )
        if records and not cls.__module__.startswith(_LOWERED):
            caller = sys._getframe(1)
            _met.append(_declined(cls, caller))
            raise _met[-1]
        return original.__func__(cls, *args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield
    finally:
        torch.autograd.Function.apply = original


def refuse_own_backwards() -> None:
    """Raises: Declined, if the trace has met one."""
    if _met:
        raise _met[0]


def _declined(cls: type, caller: FrameType) -> Declined:
    reason = f"{cls.__name__} is a torch.autograd.Function, whose backward is no part of a program"
    return Declined(reason, f"{caller.f_code.co_filename}:{caller.f_lineno}")
