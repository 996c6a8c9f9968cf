# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks whether a step's program does what PyTorch's optimizer did, up to rounding.

Adam divides a gradient by its own size. If the gradient is nothing but rounding noise, as for the
bias of attention's keys, whose exact gradient is zero, two correct steps may differ by as much as
the learning rate. So the possible error of the gradients is propagated through PyTorch's own
update.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.compiled.distances import TOLERANCES, is_near
from weft.compiled.gradient_values import WHERE_RANDOM
from weft.compiled.rounded import Rounded, of_halves
from weft.compiled.verification import Differs, Verdict
from weft.frontend.pairs import shown_real
from weft.frontend.random_rounding import RandomRounding
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.saved import random_state
from weft.training.step_graph import Clipping, Updated

# A gradient's error against float64 may be so many times that of eager execution.
_WORSE = 4
# Two computations of the values that a gradient is made of may differ by so many last bits.
_LAST_BITS = 16
# The tolerance's factor for gradients along other slopes, of which an update may show four times as
# much (`_Reach.joins`).
_ALONG_SLOPES = WHERE_RANDOM / 4


@dataclass
class StepCheck:
    """One step, with copies of everything as it was before the step.

    inputs: of the graph. states: for each of `updates` the optimizer's tensors by name, including
    the step counts. random: the state of the generator, None if nothing draws random numbers.
    """

    graph: GradientGraph
    loss: int
    updates: Sequence[Updated]
    optimizer: torch.optim.Optimizer
    clipping: Clipping
    inputs: Sequence[torch.Tensor]
    states: Sequence[dict[str, Any]]
    random: torch.Tensor | None

    def agree(
        self,
        eager: Sequence[Sequence[torch.Tensor]],
        own: Sequence[Sequence[torch.Tensor]],
        gradients: Sequence[torch.Tensor | None],
    ) -> Verdict:
        """Whether the two updates agree up to rounding; inconclusive, if they are those of
        gradients that a last bit has taken along different slopes.

        eager, own: for each of `updates` the new parameter and its new states, by PyTorch and by
        the program. gradients: those that PyTorch's update read, clipped.
        """
        far = [
            number
            for number, pairs in enumerate(zip(eager, own, strict=True))
            if not all(is_near(x, y, TOLERANCES[x.dtype]) for x, y in zip(*pairs, strict=True))
        ]
        if not far:
            return Verdict.SAME
        if any(each is None for each in gradients):
            return Verdict.DIFFERENT
        runs = self._runs(gradients)
        noise = self._noise(gradients, runs)
        left = []
        for number in far:
            reach = self._reach(number, gradients[number], noise[number])
            if not reach.joins(eager[number], own[number]):
                left.append(number)
        if not left:
            return Verdict.SAME
        if self._are_of_slopes({n: (eager[n], own[n]) for n in left}, runs):
            return Verdict.INCONCLUSIVE
        return Verdict.DIFFERENT

    def _are_of_slopes(
        self,
        found: Mapping[int, Sequence[Sequence[torch.Tensor]]],
        runs: Iterable[Sequence[torch.Tensor | None]],
    ) -> bool:
        """Whether each of the updates is that of a gradient that some rounding gives. found: the
        updates by their number."""
        left = [(number, each) for number, updates in found.items() for each in updates]
        for run in runs:
            reaches = {
                n: self._reach(n, run[n].float(), factor=_ALONG_SLOPES)
                for n in {number for number, _ in left}
                if run[n] is not None
            }
            left = [
                (n, each)
                for n, each in left
                if n not in reaches or not reaches[n].joins(reaches[n].middle, each)
            ]
            if not left:
                return True
        return False

    def _reach(
        self, number: int, gradient: torch.Tensor, noise: float = 0.0, factor: float = 1.0
    ) -> _Reach:
        """What may become of an update whose gradient has rounding errors. noise: the least error
        of an element. factor: of the tolerance."""
        tolerance = factor * TOLERANCES[gradient.dtype]
        size = gradient.double().abs()
        apart = noise + tolerance * (size + size.mean())
        middle, more, less = (
            self._updated(number, gradient.double() + each) for each in (0.0 * apart, apart, -apart)
        )
        ways = [(b - a).abs() + (c - a).abs() for a, b, c in zip(middle, more, less, strict=True)]
        return _Reach(middle, ways, TOLERANCES[gradient.dtype])

    def _updated(self, number: int, gradient: torch.Tensor) -> list[torch.Tensor]:
        """The new parameter and its new states, computed by PyTorch's optimizer in float64."""
        update = self.updates[number]
        group = self.optimizer.param_groups[update.group]
        param = torch.nn.Parameter(self.inputs[update.input].detach().to(torch.float64, copy=True))
        param.grad = gradient
        alone = {**group, "params": [param], "foreach": False, "fused": False}
        optimizer = type(self.optimizer)([alone])
        optimizer.state[param] = {
            name: each.double() if isinstance(each, torch.Tensor) and name != "step" else each
            for name, each in copied(self.states[number]).items()
        }
        optimizer.step()
        return [param.detach(), *(optimizer.state[param][name] for name in update.rule.slots)]

    def _noise(
        self, gradients: Sequence[torch.Tensor], runs: Iterable[Sequence[torch.Tensor | None]]
    ) -> list[float]:
        """A bound for each gradient on the rounding error of all its elements. Behind a kink it is
        the distance from a run along the same slopes."""
        largest = max((float(each.abs().max()) for each in gradients if each.numel()), default=0.0)
        last_bits = [_LAST_BITS * torch.finfo(g.dtype).eps * max(1.0, largest) for g in gradients]
        errors: list[float] = []
        for run in runs:
            found = [
                bits
                if z is None
                else _WORSE * float((g.double() - z).abs().max())
                if g.numel()
                else 0.0
                for bits, g, z in zip(last_bits, gradients, run, strict=True)
            ]
            errors = [*map(min, errors, found)] if errors else found
            small = WHERE_RANDOM * TOLERANCES[torch.float32]
            if all(
                error <= max(bits, small * float(g.abs().mean()))
                for error, bits, g in zip(errors, last_bits, gradients, strict=True)
                if g.numel()
            ):
                break
        return errors or last_bits

    def _runs(self, gradients: Sequence[torch.Tensor]) -> Iterable[Sequence[torch.Tensor | None]]:
        """The gradients in float64 and, in float32, along each of the slopes that rounding may
        give. gradients: PyTorch's."""
        if any(each.dtype == torch.float64 for each in gradients):
            return []  # there is nothing more precise to compare with
        exact = self._gradients(double=True)
        is_float32 = all(each.dtype == torch.float32 for each in gradients)
        if not is_float32 or of_halves(self.graph.graph):
            return [exact]
        return _Repeated(Rounded(self._gradients, self.graph.graph, "gradients").runs(exact))

    def _gradients(
        self, rounding: RandomRounding | None = None, *, double: bool = False
    ) -> list[torch.Tensor | None]:
        """The gradients by PyTorch's ops for the graph, clipped as PyTorch clips."""
        wrt = [each.input for each in self.updates]
        inputs = [
            each.detach().clone().requires_grad_(number in wrt)
            for number, each in enumerate(self.inputs)
        ]
        one = {self.loss: torch.ones((), dtype=torch.float64)}
        with random_state(self.random):
            found = self.graph.gradients(inputs, one, wrt, double=double, rounding=rounding)
        held = [torch.nn.Parameter(torch.empty_like(each)) for each in found if each is not None]
        for param, each in zip(held, (each for each in found if each is not None), strict=True):
            param.grad = each
        self.clipping.clip(held)
        clipped = iter(held)
        return [None if each is None else next(clipped).grad for each in found]


class _Repeated:
    """What an iterator gives, as often as it is asked for, until random rounding has no say."""

    def __init__(self, runs: Iterator[Sequence[torch.Tensor | None]]) -> None:
        self._runs = runs
        self._known: list[Sequence[torch.Tensor | None]] = []

    def __iter__(self) -> Iterator[Sequence[torch.Tensor | None]]:
        yield from self._known
        with contextlib.suppress(Differs):
            for run in self._runs:
                self._known.append(run)
                yield run


@dataclass(frozen=True)
class _Reach:
    """An update, and how far rounding errors of its gradient may take it. middle: the new parameter
    and its new states without such errors. ways: how far these take each of them. tolerance: of
    the update itself."""

    middle: Sequence[torch.Tensor]
    ways: Sequence[torch.Tensor]
    tolerance: float

    def joins(self, one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
        """Whether such errors explain what is between two updates."""
        for x, y, way in zip(one, other, self.ways, strict=True):
            x, y = x.double(), y.double()
            bound = self.tolerance * (x.abs() + x.abs().mean()) + 2 * way
            if not bool(((x - y).abs() <= bound).all()):
                return False
        return True


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of the optimizer's state of one parameter; complex tensors are viewed as real ones."""
    return {
        name: shown_real(each.detach()).clone() if isinstance(each, torch.Tensor) else each
        for name, each in state.items()
    }
