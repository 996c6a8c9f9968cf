# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a call from which other results are computed, such as hidden states beside logits.

A backward program computes the gradients by the inputs along all results at once: gradients of the
logits do not pass through the hidden states. So a result that depends on others has a node of
autograd of its own, which leads to the others' nodes and to the call's node. As long as no gradient
is observed on its way, it passes its gradient on to the call's node. If one is (by a hook,
retain_grad, or inputs= of a backward), PyTorch computes the step from one result to the next, and
autograd goes on from there.
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
    """The results of the call's node, where those that depend on others also lead to these.

    outputs: the results of `step`, the call's node, beginning with `training`'s places.
    """
    shown = dict(zip(training.differentiable(), outputs))
    # A result from which others are computed comes before them.
    for number, others in training.dependent.items():
        call = _Result(training, step, number, {other: shown[other] for other in others})
        shown[number] = _Dependent.apply(call, shown[number], *call.others.values())
    return [*shown.values(), *outputs[len(shown) :]]


def with_steps(
    step: Any, gradients: Sequence[torch.Tensor | None]
) -> Sequence[torch.Tensor | None]:
    """The gradients of the call's node, plus those that the running backward has computed for
    results that depend on others."""
    found = step.found.pop(torch._C._current_graph_task_id(), None)
    return gradients if found is None else added(gradients, found)


@dataclass
class _Result:
    """A result that depends on others. number: of the result. step: the node of its call. others:
    the results that it is computed from, as the user has them, by number."""

    training: Training
    step: Any
    number: int
    others: Mapping[int, torch.Tensor]

    def __post_init__(self) -> None:
        self._versions = {number: each._version for number, each in self.others.items()}

    def ways(self, edges: Sequence[tuple[Any, int]]) -> tuple[list[bool], list[bool]]:
        """For each of the others, whether its gradient is observed, and whether this backward would
        pass through it in eager execution. edges: of the others."""
        asked = _inputs_of_the_backward()
        wanted = None if asked is None else [_edge(each) for each in asked]
        reached = [not wanted or self._is_reached(n, edges, wanted) for n in self.others]
        watched = [
            wanted is None
            or edge in wanted
            # after a write in place its node is another one, and hooks set before are unknown
            or edge != _edge(other)
            or bool(other._backward_hooks)
            or (is_reached and other.retains_grad)
            for other, edge, is_reached in zip(self.others.values(), edges, reached, strict=True)
        ]
        return watched, reached

    def _is_reached(
        self, number: int, edges: Sequence[tuple[Any, int]], wanted: Sequence[tuple[Any, int]]
    ) -> bool:
        """Whether the backward was asked for the gradient of this result, or of one that it is
        computed from."""
        training = self.training
        own = {number, *training.dependent.get(number, ())}
        if any(n in own and edge in wanted for n, edge in zip(self.others, edges, strict=True)):
            return True
        connected = training.connected[training.outputs.index(number)]
        return any(
            is_so and is_run(edge) for is_so, edge in zip(connected, training.edges(self.step))
        )

    def gradients(self, given: torch.Tensor) -> list[torch.Tensor | None]:
        """The gradients of the others, by PyTorch. The gradients of inputs that do not pass through
        the others are left with the call's node. given: the cotangent."""
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
        """The others, as the call returned them. inputs: with their values in the call."""
        held = {**self.others}
        written = [n for n, each in self.others.items() if each._version != self._versions[n]]
        if written:
            with torch.no_grad(), random_state(self.step.random):
                values = self.training.graph.evaluate([each.detach() for each in inputs])
            held.update((number, values[number]) for number in written)
        return held


class _Dependent(torch.autograd.Function):
    """The node of a result that depends on others. Its inputs are the result of the call's node,
    and the others."""

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
    """The tensors that the running backward was asked to differentiate by; empty if it is for all
    leaves. None if the backward was not started through torch.autograd, which alone knows them."""
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
