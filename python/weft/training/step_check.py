# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a step's program does what PyTorch's optimizer has done, but for rounding.

Adam divides a gradient by its own size: where all of that is rounding noise, as of the bias of
attention's keys, whose gradient is zero, two right steps lead as far apart as the rate says. So how
far the gradients may be apart is carried through PyTorch's own update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.compiled.verification import TOLERANCES, is_near
from weft.frontend.pairs import shown_real
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.saved import random_state
from weft.training.step_graph import Clipping, Updated

# How many times as far from float64 as eager's a gradient may be.
_WORSE = 4
# How many last bits of what gradients are computed from two computations may disagree by.
_LAST_BITS = 16


@dataclass
class StepCheck:
    """One step, held as it was ahead of it.

    inputs: of the graph. states: of each of `updates` the tensors of the optimizer by name,
    numbers of steps among them. random: the state of the generator, None where nothing draws.
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
        """eager, own: of each of `updates` the new parameter and its new states. gradients: that
        PyTorch's update has read, clipped."""
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
        """The new parameter and its new states by PyTorch's optimizer in float64."""
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
        """How far rounding may take each gradient, for all of its elements."""
        largest = max((float(each.abs().max()) for each in gradients if each.numel()), default=0.0)
        last_bits = [_LAST_BITS * torch.finfo(g.dtype).eps * max(1.0, largest) for g in gradients]
        if any(each.dtype == torch.float64 for each in gradients):  # which is no better than itself
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
        """Gradients in float64, clipped as PyTorch clips."""
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
    """The optimizer's state of one parameter, of complex numbers both parts."""
    return {
        name: shown_real(each.detach()).clone() if isinstance(each, torch.Tensor) else each
        for name, each in state.items()
    }
