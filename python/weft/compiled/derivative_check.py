# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the programs of a graph of gradients with PyTorch on one call, and learns which
gradients autograd connects with which inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from weft.compiled.distances import allowed_by
from weft.compiled.gradient_values import OF_OTHER_SLOPES, Gradients, compare_values
from weft.compiled.rounded import Rounded
from weft.compiled.verification import Differs
from weft.frontend.random_rounding import RandomRounding
from weft.gradients.derivative_program import DerivativeProgram
from weft.gradients.gradient_graph import GradientGraph
from weft.gradients.saved import random_state

_SEED = 0


def compare_derivatives(
    program: DerivativeProgram,
    inputs: Sequence[torch.Tensor],
    eager: Gradients,
    state: torch.Tensor | None,
    *,
    judge: bool,
) -> str | None:
    """The reason why the programs are wrong, or None.

    inputs: of the graph, of which those in `program.wrt` require gradients. eager: PyTorch's
    results, connected with the inputs. state: of the generator, before these were computed. judge:
    whether values are compared.
    """
    graph, wrt = program.graph, program.wrt
    allowed = allowed_by(graph.options.precision)
    plain = [each.detach() for each in inputs]
    with random_state(state), torch.no_grad():
        results = program.forward.run(plain)
    program.present = [each is not None for each in eager]
    program.requires = [each is not None and each.requires_grad for each in eager]
    try:
        if judge:
            values = [None if each is None else each.detach() for each in eager]
            exact = _exact(graph, lambda: graph.evaluate(_doubled(plain, wrt), double=True))
            rounded = _rounded(graph, lambda rounding: graph.evaluate(plain, rounding=rounding))
            own = results[: program.count]
            if not compare_values(values, own, exact, plain, rounded=rounded, allowed=allowed):
                raise Differs(OF_OTHER_SLOPES)
        program.connected = []
        generator = torch.Generator().manual_seed(_SEED)
        for number, gradient in enumerate(eager):
            if not program.requires[number]:
                program.connected.append([False] * len(wrt))
                continue
            given = torch.randn(gradient.shape, generator=generator, dtype=torch.float64)
            given = given.to(gradient.dtype)
            found = torch.autograd.grad(
                gradient, [inputs[n] for n in wrt], given, retain_graph=True, allow_unused=True
            )
            program.connected.append([each is not None for each in found])
            if judge:
                alone = {each: given if each == number else None for each in range(program.count)}
                own = program.gradients(plain, results, alone)
                exact = _exact(
                    graph,
                    lambda alone=alone: graph.gradients(
                        _doubled(plain, wrt), alone, wrt, double=True
                    ),
                )
                rounded = _rounded(
                    graph,
                    lambda rounding, alone=alone: graph.gradients(
                        plain, alone, wrt, rounding=rounding
                    ),
                )
                given_all = [*plain, given]
                if not compare_values(
                    found, own, exact, given_all, rounded=rounded, allowed=allowed
                ):
                    raise Differs(OF_OTHER_SLOPES)
    except Differs as why:
        return f"it does not reproduce PyTorch's: {why}"
    return None


def _exact(
    graph: GradientGraph, compute: Callable[[], Gradients]
) -> Callable[[], Gradients | None]:
    return lambda: None if graph.draws else compute()


def _rounded(
    graph: GradientGraph, compute: Callable[[RandomRounding | None], Gradients]
) -> Rounded | None:
    """What rounding may make of the results of `compute`; None if random numbers are drawn anew."""
    return None if graph.draws else Rounded(compute, graph.graph, "values")


def _doubled(inputs: Sequence[torch.Tensor], wrt: Sequence[int]) -> list[torch.Tensor]:
    return [
        each.double().requires_grad_() if number in wrt else each
        for number, each in enumerate(inputs)
    ]
