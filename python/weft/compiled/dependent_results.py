# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a call that other results are computed of, as hidden states beside the logits.

A backward program takes the gradients of all results to the inputs at once: those of the logits do
not come by the hidden states. So a result that depends on others has a node of autograd of its own,
which leads to these and to the call's. As long as nobody looks, it passes its gradient on to the
call's. Where somebody looks at a gradient on its way (a hook, retain_grad, inputs= of a backward),
PyTorch computes the step from one result to the next, and autograd goes on from there.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import GradientEdge, _engine_run_backward

from weft.gradients.derivative_program import is_run
from weft.gradients.saved import inputs_of, paired_once, random_state
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
    found = step.found.pop(torch._C._current_graph_task_id(), None)
    return gradients if found is None else added(gradients, found)


@dataclass
class _Result:
    """number: of the result. step: the node of its call. others: what it is computed of, as the
    user has them, by number."""

    training: Training
    step: Any
    number: int
    others: Mapping[int, torch.Tensor]

    def __post_init__(self) -> None:
        self._versions = {number: each._version for number, each in self.others.items()}

    def ways(self, edges: Sequence[tuple[Any, int]]) -> tuple[list[bool], list[bool]]:
        """At the gradient of which others somebody looks, and which of these gradients this
        backward comes by in eager execution. edges: of the others."""
        asked = _inputs_of_the_backward()
        wanted = None if asked is None else [_edge(each) for each in asked]
        reached = [not wanted or self._is_reached(n, edges, wanted) for n in self.others]
        watched = [
            wanted is None
            or edge in wanted
            # Since a write in place it is another node's, and hooks from before are unknown.
            or edge != _edge(other)
            or bool(other._backward_hooks)
            or (is_reached and other.retains_grad)
            for other, edge, is_reached in zip(self.others.values(), edges, reached, strict=True)
        ]
        return watched, reached

    def _is_reached(
        self, number: int, edges: Sequence[tuple[Any, int]], wanted: Sequence[tuple[Any, int]]
    ) -> bool:
        """Whether what the backward is asked for is this other or something it is computed of."""
        training = self.training
        own = {number, *training.dependent.get(number, ())}
        if any(n in own and edge in wanted for n, edge in zip(self.others, edges, strict=True)):
            return True
        connected = training.connected[training.outputs.index(number)]
        return any(
            is_so and is_run(edge) for is_so, edge in zip(connected, training.edges(self.step))
        )

    def gradients(self, given: torch.Tensor) -> list[torch.Tensor | None]:
        """Of the others, and, left with the call's node, of the inputs where they do not come by
        the others; by PyTorch. given: the cotangent."""
        training, step = self.training, self.step
        inputs = inputs_of(step, paired_once(step, training.reads))
        then = {} if step.statistics is None else step.statistics.then(inputs)
        held = self._held([then.get(number, each) for number, each in enumerate(inputs)])
        with random_state(step.random):
            found = training.graph.gradients(
                inputs,
                {self.number: given},
                training.wrt,
                create_graph=torch.is_grad_enabled(),
                in_the_forward=then,
                held=held,
            )
        count, task = len(training.wrt), torch._C._current_graph_task_id()
        if is_run(step):
            step.found[task] = added(step.found.get(task, [None] * count), found[:count])
        return found[count:]

    def _held(self, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        """The others, as the call gave them. inputs: as they were."""
        held = {**self.others}
        written = [n for n, each in self.others.items() if each._version != self._versions[n]]
        if written:
            with torch.no_grad(), random_state(self.step.random):
                values = self.training.graph.evaluate([each.detach() for each in inputs])
            held.update((number, values[number]) for number in written)
        return held


class _Dependent(torch.autograd.Function):
    """The node of a result that depends on others. Its inputs are the result as the call's node
    gives it, and the others."""

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
        if given is None:
            return None, *[None] * len(ctx.next_functions)
        watched, reached = ctx.result.ways(edges)
        if not any(watched):
            return None, given, *[None] * len(edges)
        found = ctx.result.gradients(given)
        passed = map(operator.or_, watched, reached)
        return None, None, *[each if is_so else None for each, is_so in zip(found, passed)]


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
