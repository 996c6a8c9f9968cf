# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs within torch.func's grad and vjp, nested to any depth.

Such a transform differentiates everything that a call does at its level, always in a way that can
be differentiated again. So the gradients of a program are a function of autograd themselves: it
runs the backward program on what has been saved. Only if that is differentiated is the graph of the
gradients compiled, and so on. Within vmap and jvp PyTorch computes the graphs in its own ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._C._functorch import (
    TransformType,
    get_interpreter_stack,
    get_unwrapped,
    is_functorch_wrapped_tensor,
    is_gradtrackingtensor,
)
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from weft.gradients.derivative_program import (
    DerivativeProgram,
    Half,
    cotangent,
    program_for,
)
from weft.gradients.gradient_graph import Cotangents, Derivative, GradientGraph
from weft.gradients.saved import Reads

Tensors = Sequence[torch.Tensor]


class Like(NamedTuple):
    shape: torch.Size
    dtype: torch.dtype


@dataclass(frozen=True)
class Joined:
    """A forward program's results, to be connected with the inputs of its graph.

    wrt: the inputs that may have gradients. count: the number of the graph's results; saved values
    follow them among the program's results. places: the results that have gradients. reached: for
    results with cotangents, by number, whether each of `wrt` has a gradient.
    """

    graph: GradientGraph
    wrt: tuple[int, ...]
    count: int
    reads: Reads
    backward: Half
    places: tuple[int, ...]
    reached: Callable[[Sequence[int]], Sequence[bool]]

    def apply(self, inputs: Tensors, results: Tensors, shown: Tensors) -> Tensors:
        """`shown`, the results `places` as the caller is to see them, as functions of the inputs.

        inputs: of the graph, which transforms may have wrapped. results: of the forward program.
        """
        likes = {
            number: Like(results[number].shape, results[number].dtype)
            for kind, number in self.reads
            if kind == "gradient"
        }
        with temporarily_clear_interpreter_stack():
            kept = [
                results[number + self.count if kind == "saved" else number].detach()
                for kind, number in self.reads
                if kind in ("saved", "result")
            ]
        found: Tensors = _Forward.apply(_Run(self, shown, kept, likes), *inputs)
        return found[: len(self.places)]


@dataclass(frozen=True)
class _Run:
    joined: Joined
    shown: Tensors
    kept: Tensors
    likes: dict[int, Like]


class _Forward(torch.autograd.Function):
    """A function of autograd that gives a program's results. Its inputs are those of the graph."""

    @staticmethod
    def forward(run: _Run, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*run.shown, *run.kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.run = inputs[0]
        kept = output[len(ctx.run.shown) :]
        ctx.save_for_backward(*inputs[1:], *kept)
        ctx.mark_non_differentiable(*kept)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        joined, likes = ctx.run.joined, ctx.run.likes
        whole: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        # The cotangents of `places` are followed by those of kept tensors, which are None.
        given = {n: c for n, c in zip(joined.places, cotangents) if c is not None}
        if not given:
            return tuple(whole)
        count = len(whole) - 1
        inputs, kept = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        if only_gradients((*inputs, *given.values())):
            laid = [cotangent(given.get(number), like) for number, like in likes.items()]
            numbers = tuple(likes)
            call = _Call(joined, count, len(kept), numbers, tuple(given))
            gradients = _Backward.apply(call, *inputs, *kept, *laid)
        else:
            gradients = by_meaning(joined.graph, inputs, given, joined.wrt)
        for number, gradient, is_so in zip(joined.wrt, gradients, joined.reached([*given])):
            whole[number + 1] = gradient if is_so else None
        return tuple(whole)


@dataclass(frozen=True)
class _Call:
    """A call. inputs, kept: the numbers of the tensors of either kind, which come first.
    cotangents: the results to which the other tensors belong. given: those of them that are not
    just zeros."""

    joined: Joined
    inputs: int
    kept: int
    cotangents: tuple[int, ...]
    given: tuple[int, ...]


class _Backward(torch.autograd.Function):
    """The backward program as a function of autograd. Its inputs are those of the graph, what is
    kept, and cotangents."""

    @staticmethod
    def forward(call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        others = iter(tensors[call.inputs :])
        arguments = [
            tensors[number] if kind == "input" else next(others)
            for kind, number in call.joined.reads
        ]
        return tuple(call.joined.backward.run(arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        call: _Call = inputs[0]
        ctx.call = call
        first = 1 + call.inputs + call.kept
        ctx.save_for_backward(*inputs[1 : 1 + call.inputs], *inputs[first:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        call: _Call = ctx.call
        whole: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        seconds = {n: c for n, c in enumerate(cotangents) if c is not None}
        # The arguments of the graph of gradients, and their places among those of this function.
        first = 1 + call.inputs + call.kept
        places = [*range(1, 1 + call.inputs)]
        places += [first + call.cotangents.index(number) for number in call.given]
        saved = ctx.saved_tensors
        arguments = [*saved[: call.inputs]]
        arguments += [saved[call.inputs + call.cotangents.index(each)] for each in call.given]
        wrt = tuple(n for n, place in enumerate(places) if ctx.needs_input_grad[place])
        above = call.joined.graph.of(Derivative(call.joined.wrt, call.given))
        for number, gradient in zip(wrt, _gradients(above, arguments, seconds, wrt), strict=True):
            whole[places[number]] = gradient
        return tuple(whole)


def _gradients(
    graph: GradientGraph, inputs: Tensors, cotangents: Cotangents, wrt: tuple[int, ...]
) -> Sequence[torch.Tensor | None]:
    if not cotangents or not wrt:
        return [None] * len(wrt)
    if not only_gradients((*inputs, *cotangents.values())):
        return by_meaning(graph, inputs, cotangents, wrt)
    above = graph.of(Derivative(wrt, tuple(cotangents)))
    return _results(above, [*inputs, *(each.contiguous() for each in cotangents.values())])


def _results(graph: GradientGraph, inputs: Tensors) -> Sequence[torch.Tensor | None]:
    """The results of a graph of gradients, as functions of its inputs."""
    wrt = tuple(number for number, each in enumerate(inputs) if requires_anywhere(each))
    plain = [innermost(each) for each in inputs]
    with temporarily_clear_interpreter_stack():
        program = program_for(graph, wrt, plain) if wrt else None
        if program is None:
            results = None
        else:
            with torch.no_grad():
                results = program.forward.run([each.detach() for each in plain])
    if program is None or results is None:
        return meaning(graph, inputs)
    program.calls += 1
    places = tuple(number for number, is_so in enumerate(program.requires) if is_so)
    joined = _joined(program, places)
    shown = iter(joined.apply(inputs, results, [results[number] for number in places]))
    found = [
        next(shown) if number in places else results[number] for number in range(program.count)
    ]
    return [each if is_so else None for each, is_so in zip(found, program.present, strict=True)]


def _joined(program: DerivativeProgram, places: tuple[int, ...]) -> Joined:
    return Joined(
        program.graph,
        program.wrt,
        program.count,
        program.reads,
        program.backward,
        places,
        program.reached,
    )


# Computation by PyTorch.


def meaning(graph: GradientGraph, inputs: Tensors) -> Sequence[torch.Tensor]:
    """The results of a graph in PyTorch's ops; zeros where nothing is connected. This may run
    within any transform."""
    if graph.below is None:
        return graph.evaluate(inputs)
    last = graph.derivatives[-1]
    count = len(inputs) - len(last.results)
    cotangents: Cotangents = dict(zip(last.results, inputs[count:], strict=True))
    return by_meaning(graph.below, inputs[:count], cotangents, last.wrt)


def by_meaning(
    graph: GradientGraph, inputs: Tensors, cotangents: Cotangents, wrt: Sequence[int]
) -> Sequence[torch.Tensor]:
    """Gradients of a graph, in PyTorch's ops."""

    def results(*leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = list(inputs)
        for number, leaf in zip(wrt, leaves, strict=True):
            given[number] = leaf
        values = meaning(graph, given)
        return tuple(values[number] for number in cotangents)

    _, pull_back = torch.func.vjp(results, *(inputs[number] for number in wrt))
    return pull_back(tuple(cotangents.values()))


# Tensors and transforms.


def only_gradients(tensors: Sequence[torch.Tensor | None]) -> bool:
    """Whether no other transforms than those of gradients are active, here and on these tensors."""
    if any(each.key() != TransformType.Grad for each in get_interpreter_stack() or ()):
        return False
    return all(_is_plain_within(each) for each in tensors if each is not None)


def _is_plain_within(tensor: torch.Tensor) -> bool:
    while is_functorch_wrapped_tensor(tensor):
        if not is_gradtrackingtensor(tensor):
            return False
        tensor = get_unwrapped(tensor)
    return type(tensor) in (torch.Tensor, torch.nn.Parameter)


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without the wrappers that transforms of gradients have put around it."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def requires_anywhere(tensor: torch.Tensor) -> bool:
    """Whether gradients are wanted at any level of transforms."""
    while is_functorch_wrapped_tensor(tensor):
        if tensor.requires_grad:
            return True
        tensor = get_unwrapped(tensor)
    return tensor.requires_grad
