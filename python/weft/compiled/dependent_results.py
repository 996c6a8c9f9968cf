# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a call that other results are computed of, as hidden states beside the logits.

A backward program takes the gradients of all results to the inputs at once: those of the logits do
not come by the hidden states. So a result that depends on others has a node of autograd of its own,
which leads to these and to the call's. As long as nobody looks, it passes its gradient on to the
call's. Where somebody looks at a gradient on its way (a hook, retain_grad, inputs= of a backward),
PyTorch computes the step from one result to the next, and autograd goes on from there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import GradientEdge, _engine_run_backward

from weft.gradients.saved import inputs_of, paired, random_state
from weft.gradients.through_saved import added

if TYPE_CHECKING:
    from weft.compiled.training import Training


def joined_with_others(
    training: Training, outputs: Sequence[torch.Tensor], step: Any
) -> list[torch.Tensor]:
    """What the call's node gives, of which those that depend on others lead to these as well.

    outputs: of the call's node, `step`, the places of `training` ahead.
    """
    shown = dict(zip(training.differentiable(), outputs))
    # A result that others are computed of stands ahead of them.
    for number, others in training.dependent.items():
        call = _Result(training, step, number, {other: shown[other] for other in others})
        shown[number] = _Dependent.apply(call, shown[number], *call.others.values())
    return [*shown.values(), *outputs[len(shown) :]]


def with_steps(
    step: Any, gradients: Sequence[torch.Tensor | None]
) -> Sequence[torch.Tensor | None]:
    """The gradients of the call's node with what has been computed, in the backward that is going
    on, of results that depend on others."""
    found, step.found = step.found, None
    if found is None or found.task != torch._C._current_graph_task_id():
        return gradients
    return added(gradients, found.gradients)


@dataclass
class _Result:
    """number: of the result. step: the node of its call. others: what it is computed of, as the
    user has them, by number."""

    training: Training
    step: Any
    number: int
    others: Mapping[int, torch.Tensor]

    def is_watched(self, edges: Sequence[tuple[Any, int]]) -> bool:
        """Whether somebody looks at the gradient of another. edges: of these."""
        if any(each._backward_hooks or each.retains_grad for each in self.others.values()):
            return True
        wanted = _inputs_of_the_backward()
        return wanted is None or any(_edge(each) in edges for each in wanted)

    def gradients(self, given: torch.Tensor) -> list[torch.Tensor | None]:
        """Of the others, and, left with the call's node, of the inputs where they do not come by
        the others; by PyTorch. given: the cotangent."""
        training, step = self.training, self.step
        with random_state(step.random):
            inputs = inputs_of(step, paired(step, training.reads))
            then = {} if step.statistics is None else step.statistics.then(inputs)
            found = training.graph.gradients(
                inputs,
                {self.number: given},
                training.wrt,
                create_graph=torch.is_grad_enabled(),
                in_the_forward=then,
                held=self.others,
            )
        count, task = len(training.wrt), torch._C._current_graph_task_id()
        if step.found is None or step.found.task != task:
            step.found = _Found(task, [None] * count)
        step.found.gradients = added(step.found.gradients, found[:count])
        return found[count:]


@dataclass
class _Found:
    """Gradients of the call's inputs. task: the backward that they are of."""

    task: int
    gradients: list[torch.Tensor | None]


class _Dependent(torch.autograd.Function):
    """Its inputs are the result as the call's node gives it, and the others."""

    @staticmethod
    def forward(
        ctx: Any, result: _Result, own: torch.Tensor, *others: torch.Tensor
    ) -> torch.Tensor:
        ctx.result = result
        ctx.set_materialize_grads(False)
        return own.detach()

    @staticmethod
    def backward(ctx: Any, given: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        edges = ctx.next_functions[1:]
        if given is None or not ctx.result.is_watched(edges):
            return None, given, *[None] * len(edges)
        return None, None, *ctx.result.gradients(given)


def _inputs_of_the_backward() -> Sequence[torch.Tensor | GradientEdge] | None:
    """What the backward that is going on is asked for, nothing if for all leaves. None where it was
    not begun by torch.autograd, which alone knows."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is _engine_run_backward.__code__:
            return frame.f_locals["args"][3]
        frame = frame.f_back
    return None


def _edge(wanted: torch.Tensor | GradientEdge) -> tuple[Any, int]:
    if isinstance(wanted, GradientEdge):
        return wanted.node, wanted.output_nr
    return wanted.grad_fn, wanted.output_nr
