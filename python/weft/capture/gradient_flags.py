# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a traced call makes to require or to retain gradients, or to require none any more.

A program's results require gradients where tensors that it was given do, and retain none: it can
neither change these, nor give results whose history begins with a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.overrides import TorchFunctionMode

from weft.capture.autograd_reach import leaves_reached
from weft.capture.signature import Declined
from weft.frontend.strides import storage_of

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
        self._retaining: list[torch.Tensor] = []

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function in _SETTERS or function in _DETACHERS:
            flags = [*args[1:], *(kwargs or {}).values(), function in _SETTERS]
            if self._is_given(args[0]) and args[0].requires_grad != flags[0]:
                raise Declined("the call sets requires_grad of a tensor that it was given")
        if function == torch.Tensor.retain_grad and not args[0].is_leaf:
            self._retaining.append(args[0])
        return function(*args, **(kwargs or {}))

    def check(self, results: Iterable[Any]) -> None:
        """results: the leaves of what the program returns.

        Raises: Declined, if one that the call makes requires gradients, though no tensor that does
        was given for it, or the call records none; if one requires none, though views of what it
        shows would; or if one, or a tensor that was given, is made to retain its gradient.
        """
        retaining = [id(each) for each in self._retaining]
        if not self._places.isdisjoint(retaining):
            raise Declined("a tensor that it was given is made to retain its gradient")
        tensors = [each for each in results if isinstance(each, torch.Tensor)]
        made = [each for each in tensors if id(each) not in self._places]
        requiring = self._requiring(made)
        for result in made:
            if id(result) in retaining:
                raise Declined("a result is made to retain its gradient")
            if result.requires_grad and not self._has_history_of_given(result):
                raise Declined("a result is made to require gradients")
            if not result.requires_grad and not requiring.isdisjoint(_storages(result)):
                raise Declined("a view of what requires gradients is made to require none")

    def _has_history_of_given(self, result: torch.Tensor) -> bool:
        if not isinstance(result, FakeTensor):
            return True
        return torch.is_grad_enabled() and any(map(self._is_given, leaves_reached(result)))

    def _requiring(self, made: list[torch.Tensor]) -> set[int]:
        """The memory of which programs give views that require gradients: of results that do, and
        in a call that records none of any tensor that does."""
        shown = made if torch.is_grad_enabled() else self._given
        return {storage for each in shown if each.requires_grad for storage in _storages(each)}

    def _is_given(self, tensor: torch.Tensor) -> bool:
        """What is no fake tensor was there before the trace."""
        return id(tensor) in self._places or not isinstance(tensor, FakeTensor)


def _storages(tensor: torch.Tensor) -> list[int]:
    return [storage_of(tensor)] if tensor.layout == torch.strided else []
