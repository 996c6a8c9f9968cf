# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengths of sequences that a call computes of one of its arguments, as `mask.sum(1)` does: they
are computed once more to tell whether a program stands for the call."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

from weft.capture.traced_constants import ancestors, is_constant


@dataclass(frozen=True)
class _Result:
    """Of the argument, 0, or of a step: its number and 1."""

    number: int


@dataclass(frozen=True)
class ComputedLengths:
    """steps: operations by name, with arguments that are numbers or results; of none the argument
    has the lengths. dtype, rank: of the argument."""

    steps: tuple[tuple[str, tuple, tuple[tuple[str, Any], ...]], ...] = ()
    dtype: torch.dtype | None = None
    rank: int = 1

    def values_of(self, given: torch.Tensor) -> list[int]:
        """None of what are no lengths."""
        if not self.steps:
            return given.tolist()
        if given.dtype != self.dtype or given.dim() != self.rank or not given.numel():
            return []
        results = [given.detach()]
        try:
            for name, args, kwargs in self.steps:
                call = operator.attrgetter(name)(torch.ops)
                named = {key: _with(value, results) for key, value in kwargs}
                results.append(call(*(_with(each, results) for each in args), **named))
        except RuntimeError:  # the argument has other sizes, and the program is none for them
            return []
        return results[-1].tolist()

    @staticmethod
    def of(node: torch.fx.Node, leaf: torch.fx.Node, given: torch.Tensor) -> ComputedLengths | None:
        """Of what a trace has computed of the argument `leaf` alone, None where it is more."""
        order: dict[torch.fx.Node, _Result] = {leaf: _Result(0)}
        steps = []
        for each in _in_order(node, leaf):
            if not is_constant(each) or not isinstance(each.target, torch._ops.OpOverload):
                return None
            try:
                args, kwargs = (_frozen(part, order) for part in (each.args, each.kwargs))
            except (KeyError, TypeError):  # of another argument, or no plain value
                return None
            order[each] = _Result(len(order))
            steps.append((str(each.target), args, kwargs))
        return ComputedLengths(tuple(steps), given.dtype, given.dim())


AS_GIVEN = ComputedLengths()


def _in_order(node: torch.fx.Node, leaf: torch.fx.Node) -> list[torch.fx.Node]:
    """What it is computed of, itself last."""
    found = ancestors(node, {leaf}) - {leaf}
    return [each for each in node.graph.nodes if each in found]


def _frozen(value: Any, order: dict[torch.fx.Node, _Result]) -> Any:
    """Raises: KeyError, TypeError."""
    if isinstance(value, torch.fx.Node):
        return order[value]
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(each, order) for each in value)
    if isinstance(value, dict):
        return tuple((key, _frozen(each, order)) for key, each in value.items())
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise TypeError
    return value


def _with(value: Any, results: list[torch.Tensor]) -> Any:
    if isinstance(value, _Result):
        return results[value.number]
    if isinstance(value, tuple):
        return [_with(each, results) for each in value]
    return value
