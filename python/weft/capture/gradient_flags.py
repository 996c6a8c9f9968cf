# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a traced call makes to require gradients, or to require none any more.

A program's results require gradients where tensors that it was given do: it can neither change
these, nor give results whose history begins with a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.overrides import TorchFunctionMode

from weft.capture.autograd_reach import leaves_reached
from weft.capture.signature import Declined

_SETTERS = (torch.Tensor.requires_grad.__set__, torch.Tensor.requires_grad_)
_DETACHERS = (torch.Tensor.detach_, torch.detach_)


class GradientFlags(TorchFunctionMode):
    """given: the fake tensors that stand for those that there were before the call."""

    def __init__(self, given: Iterable[Any]) -> None:
        super().__init__()
        self._given = [each for each in given if isinstance(each, torch.Tensor)]
        self._places = {id(each) for each in self._given}
        # One that was computed has a history of a tensor that stands for the earlier ones.
        self._places.update(id(leaf) for each in self._given for leaf in leaves_reached(each))

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function in _SETTERS or function in _DETACHERS:
            flags = [*args[1:], *(kwargs or {}).values(), function in _SETTERS]
            if self._is_given(args[0]) and args[0].requires_grad != flags[0]:
                raise Declined("the call sets requires_grad of a tensor that it was given")
        return function(*args, **(kwargs or {}))

    def check(self, results: Iterable[Any]) -> None:
        """results: the leaves of what the program returns.

        Raises: Declined, if one that the call makes requires gradients, though no tensor that does
        was given for it, or the call records none.
        """
        for result in results:
            if isinstance(result, torch.Tensor) and result.requires_grad:
                if not (self._is_given(result) or self._has_history_of_given(result)):
                    raise Declined("a result is made to require gradients")

    def _has_history_of_given(self, result: torch.Tensor) -> bool:
        return torch.is_grad_enabled() and any(map(self._is_given, leaves_reached(result)))

    def _is_given(self, tensor: torch.Tensor) -> bool:
        """What is no fake tensor was there before the trace."""
        return id(tensor) in self._places or not isinstance(tensor, FakeTensor)
