# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the gradients of a backward program with those of eager execution, on one call.

PyTorch differentiates the call that it has run, along random cotangents from a generator of Weft's
own, and so does the program. This also shows which outputs require gradients, and which inputs
autograd connects with which outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.utils._pytree as pytree

from weft.compiled.call_gradients import gradients_of_call, reenters_autograd
from weft.compiled.distances import allowed_by
from weft.compiled.gradient_values import OF_OTHER_SLOPES, compare_values
from weft.compiled.rounded import Rounded, of_halves
from weft.compiled.training import Training
from weft.compiled.verification import Check, Differs, Finding, Unclear, Verdict
from weft.frontend.pairs import shown_complex, shown_real
from weft.frontend.random_rounding import RandomRounding
from weft.gradients.eager_saves import Saves, saves_of_call
from weft.gradients.gradient_graph import Cotangents
from weft.gradients.saved import random_state

# Each output's connections are found by a backward of its own.
_MOST_OUTPUTS = 16
_SEED = 0


def compare_gradients(training: Training, check: Check, finding: Finding) -> Finding:
    """`finding`, or what is wrong with the gradients. check: a concluded one."""
    try:
        # The region of a checkpoint may draw random numbers again.
        with torch.random.fork_rng(devices=[]):
            is_clear = _compare(training, check)
    except Differs as why:
        return Finding(Verdict.DIFFERENT, str(why))
    except Unclear as why:
        return Finding(Verdict.INCONCLUSIVE, str(why))
    if not is_clear:
        return replace(
            finding, verdict=Verdict.INCONCLUSIVE, reason=OF_OTHER_SLOPES, is_explained=True
        )
    return finding


def _compare(training: Training, check: Check) -> bool:
    """Whether the gradients agree. If not, they are right along other slopes."""
    outputs = [check.eager.get(number) for number in training.outputs]
    requires = [each is not None and each.requires_grad for each in outputs]
    if training.backward is None:
        training.learnt(requires, training.connected, _saves(check, outputs))
        _compare_requires(training, check)
        _notice_backward(training, outputs)
        return True
    saves = _saves(check, outputs)
    if not any(requires):
        raise Differs("eager execution gives nothing that requires gradients")
    if sum(requires) > _MOST_OUTPUTS:
        raise Differs(f"more than {_MOST_OUTPUTS} results require gradients")
    wanted = [check.originals[number] for number in training.wrt]
    ahead = [check.histories[number] for number in training.wrt]
    for tensor in (*wanted, *outputs):
        if tensor is not None and tensor._backward_hooks:
            raise Unclear("a hook on a tensor would see gradients that nobody asked for")
    generator = torch.Generator().manual_seed(_SEED)
    coarsest = of_halves(training.graph.graph)
    allowed = allowed_by(training.graph.options.precision)
    connected, is_clear = [], True
    for number, output, is_so in zip(training.outputs, outputs, requires, strict=True):
        if not is_so:
            connected.append([False] * len(wanted))
            continue
        shown = shown_real(output)
        given = torch.randn(shown.shape, generator=generator, dtype=torch.float64).to(shown.dtype)
        alone = dict.fromkeys(training.outputs) | {number: check.as_computed(number, given)}
        try:
            gradients = gradients_of_call(output, wanted, shown_complex(given, output), ahead)
        except RuntimeError:
            if not reenters_autograd(output):
                raise
            gradients = check.as_seen(_of_meaning(training, check, alone), training.wrt)
        gradients = [None if each is None else shown_real(each) for each in gradients]
        with random_state(check.random_state):
            own = training.gradients(check.inputs, check.results, alone)
        own = check.as_seen(own, training.wrt)
        exact = functools.partial(_exact, training, check, alone)
        rounded = _rounded(training, check, alone)
        is_clear &= compare_values(gradients, own, exact, [given], coarsest, rounded, allowed)
        connected.append([each is not None for each in gradients])
    training.learnt(requires, connected, saves)
    _compare_requires(training, check)
    return is_clear


def _saves(check: Check, outputs: Sequence[torch.Tensor | None]) -> Saves | None:
    return saves_of_call(check.originals, check.eager, outputs, check.histories)


def _of_meaning(
    training: Training, check: Check, cotangents: Cotangents
) -> list[torch.Tensor | None]:
    """The gradients by PyTorch's ops for the graph, if the user's call can only be differentiated
    by its leaves."""
    inputs = [each.detach() for each in check.inputs]
    with random_state(check.random_state):
        return training.graph.gradients(inputs, cotangents, training.wrt)


def _notice_backward(training: Training, outputs: Sequence[torch.Tensor | None]) -> None:
    """Notes that PyTorch's call is differentiated, so that the next call gets a program for
    that."""

    def asked(_: object) -> None:
        training.asked = True

    for output in outputs:
        if output is not None and output.grad_fn is not None:
            output.grad_fn.register_prehook(asked)


def _compare_requires(training: Training, check: Check) -> None:
    """Compares which views of arguments and results require gradients: those of tensors that do,
    unless the call detaches them."""
    results = [each.detach() for each in check.laid_out]
    for number in training.differentiable():
        results[number].requires_grad_()
    leaves = [
        pytree.tree_leaves(each) for each in (check.value, training.value(results, check.slots))
    ]
    for eager, own in zip(*leaves):
        if isinstance(eager, torch.Tensor) and eager.requires_grad != own.requires_grad:
            raise Differs("a result requires gradients on one side alone")


def _exact(
    training: Training, check: Check, cotangents: Cotangents
) -> list[torch.Tensor | None] | None:
    """The gradients in float64, with the random numbers of the call.

    Raises: Differs, if float64 has no kernel.
    """
    try:
        return _by_the_graph(training, check, cotangents, double=True)
    except Exception as error:
        raise Differs(f"gradients differ, and float64 has no say: {error}") from None


def _rounded(training: Training, check: Check, cotangents: Cotangents) -> Rounded:
    """What rounding may make of the gradients."""

    def compute(rounding: RandomRounding | None) -> list[torch.Tensor | None]:
        return _by_the_graph(training, check, cotangents, rounding=rounding)

    return Rounded(compute, training.graph.graph, "gradients")


def _by_the_graph(
    training: Training,
    check: Check,
    cotangents: Cotangents,
    *,
    double: bool = False,
    rounding: RandomRounding | None = None,
) -> list[torch.Tensor | None]:
    """The gradients by PyTorch's ops for the graph, with the random numbers of the call."""
    inputs = [
        each.detach().clone().requires_grad_(number in training.wrt)
        for number, each in enumerate(check.inputs)
    ]
    with random_state(check.random_state):
        found = training.graph.gradients(
            inputs, cotangents, training.wrt, double=double, rounding=rounding
        )
    return check.as_seen(found, training.wrt)
