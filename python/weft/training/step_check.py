# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks whether a step's program does what PyTorch's optimizer did, up to rounding.

Adam divides a gradient by its own size. If the gradient is nothing but rounding noise, as for the
bias of attention's keys, whose exact gradient is zero, two correct steps may differ by as much as
the learning rate. So the possible error of the gradients is propagated through PyTorch's own
update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.compiled.distances import TOLERANCES, is_near
from weft.frontend.pairs import shown_real
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.saved import random_state
from weft.training.step_graph import Clipping, Updated

# A gradient's error against float64 may be so many times that of eager execution.
_WORSE = 4
# Two computations of the values that a gradient is made of may differ by so many last bits.
_LAST_BITS = 16


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
    ) -> bool:
        """Whether the two updates agree up to rounding. eager, own: for each of `updates` the new
        parameter and its new states, by PyTorch and by the program. gradients: those that
        PyTorch's update read, clipped."""
        far = [
            number
            for number, pairs in enumerate(zip(eager, own, strict=True))
            if not all(is_near(x, y, TOLERANCES[x.dtype]) for x, y in zip(*pairs, strict=True))
        ]
        if not far:
            return True
        if any(each is None for each in gradients):
            return False
        noise = self._noise(gradients)
        return all(
            self._excused(number, eager[number], own[number], gradients[number], noise[number])
            for number in far
        )

    def _excused(
        self,
        number: int,
        eager: Sequence[torch.Tensor],
        own: Sequence[torch.Tensor],
        gradient: torch.Tensor,
        noise: float,
    ) -> bool:
        tolerance = TOLERANCES[gradient.dtype]
        size = gradient.double().abs()
        apart = noise + tolerance * (size + size.mean())
        middle, more, less = (
            self._updated(number, gradient.double() + each) for each in (0.0 * apart, apart, -apart)
        )
        for x, y, a, b, c in zip(eager, own, middle, more, less, strict=True):
            x, y = x.double(), y.double()
            bound = tolerance * (x.abs() + x.abs().mean()) + 2 * ((b - a).abs() + (c - a).abs())
            if not bool(((x - y).abs() <= bound).all()):
                return False
        return True

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

    def _noise(self, gradients: Sequence[torch.Tensor]) -> list[float]:
        """A bound for each gradient on the rounding error of all its elements."""
        largest = max((float(each.abs().max()) for each in gradients if each.numel()), default=0.0)
        last_bits = [_LAST_BITS * torch.finfo(g.dtype).eps * max(1.0, largest) for g in gradients]
        # There is nothing more precise to compare float64 with.
        if any(each.dtype == torch.float64 for each in gradients):
            return last_bits
        exact = self._exact()
        return [
            bits
            if z is None
            else _WORSE * float((g.double() - z).abs().max())
            if g.numel()
            else 0.0
            for bits, g, z in zip(last_bits, gradients, exact, strict=True)
        ]

    def _exact(self) -> list[torch.Tensor | None]:
        """The gradients, computed in float64 and clipped as PyTorch clips."""
        wrt = [each.input for each in self.updates]
        inputs = [
            each.detach().clone().requires_grad_(number in wrt)
            for number, each in enumerate(self.inputs)
        ]
        one = {self.loss: torch.ones((), dtype=torch.float64)}
        with random_state(self.random):
            found = self.graph.gradients(inputs, one, wrt, double=True)
        held = [torch.nn.Parameter(torch.empty_like(each)) for each in found if each is not None]
        for param, each in zip(held, (each for each in found if each is not None), strict=True):
            param.grad = each
        self.clipping.clip(held)
        clipped = iter(held)
        return [None if each is None else next(clipped).grad for each in found]


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of the optimizer's state of one parameter; complex tensors are viewed as real ones."""
    return {
        name: shown_real(each.detach()).clone() if isinstance(each, torch.Tensor) else each
        for name, each in state.items()
    }
