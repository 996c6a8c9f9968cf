# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that can be differentiated again: the programs of a graph of gradients.

If a backward runs under `create_graph`, the gradients must be functions of the inputs and the
cotangents. They are the results of a graph like any other, which has a forward and a backward
program. If that backward runs under `create_graph`, there is a graph of its gradients in turn, to
any order.
"""

from __future__ import annotations

import cmath
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from weft import _core, config, errors
from weft.artifacts.builds import Options, build
from weft.artifacts.fallbacks import torch_host
from weft.frontend.dtypes import DTYPES
from weft.gradients.gradient_graph import Cotangents, Derivative, GradientGraph, is_wrapped
from weft.gradients.saved import (
    Kept,
    Reads,
    inputs_of,
    moved,
    paired,
    random_state,
    reads_of,
)

# The most programs of one graph, for different sets of inputs that require gradients.
_MOST_PROGRAMS = 8


class Half:
    """A program that is run on tensors given in order. Raises: errors.CompileError."""

    def __init__(self, graph: bytes, options: Options) -> None:
        self.build = build(graph, options)
        self.manifest = json.loads(self.build.artifact.manifest)
        made = self.manifest["entries"]["main"]["results"]
        self._results = [(each["shape"], each["strides"], DTYPES[each["dtype"]]) for each in made]
        self._aliases = [(n, each["alias"]) for n, each in enumerate(made) if each.get("alias")]
        self.program = _core.Program(self.build.artifact)
        self._host = torch_host(self.manifest)

    def run(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        results = [
            torch.empty_strided(shape, strides, dtype=dtype)
            for shape, strides, dtype in self._results
        ]
        self.program.run(list(arguments), results, self._host)
        for number, alias in self._aliases:
            ((kind, index),) = alias.items()
            results[number].copy_(arguments[index] if kind == "argument" else results[index])
        return results


@dataclass
class DerivativeProgram:
    """The forward and backward program of `graph`, a graph of gradients, of whose inputs `wrt`
    require gradients.

    count: the number of the graph's results. present: which of them autograd knows. requires: which
    of them require gradients. connected: for each result and each of `wrt`, whether autograd
    connects them. calls: how many calls the programs have answered. reason: why PyTorch computes
    the gradients instead, or None.
    """

    graph: GradientGraph
    wrt: tuple[int, ...]
    count: int
    present: list[bool] = field(default_factory=list)
    requires: list[bool] = field(default_factory=list)
    connected: list[list[bool]] = field(default_factory=list)
    ready: bool = False
    calls: int = 0
    reason: str | None = None

    def compile(self) -> None:
        """Compiles both programs. Raises: errors.CompileError."""
        steps = (*self.graph.derivatives, Derivative(self.wrt, tuple(range(self.count))))
        self.forward = Half(self.graph.graph, self.options("forward", *steps))
        self.backward = Half(self.graph.graph, self.options("backward", *steps))
        self.reads = reads_of(self.backward.manifest)

    def options(self, role: str, *derivatives: Derivative) -> Options:
        """The options for compiling a program of the graph after these derivatives have been
        taken."""
        return replace(
            self.graph.options,
            role=role,
            wrt=";".join(joined(each.wrt) for each in derivatives),
            differentiated=";".join(joined(each.results) for each in derivatives),
        )

    def gradients(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        cotangents: Cotangents,
    ) -> list[torch.Tensor]:
        """The gradients, computed by the backward program. inputs, results: of the forward
        program."""
        arguments = read_arguments(self.reads, self.count, inputs, results, cotangents)
        return self.backward.run(arguments)

    def reached(self, given: Sequence[int]) -> list[bool]:
        """Which of `wrt` have a gradient where the results `given` have cotangents."""
        return [any(self.connected[n][place] for n in given) for place in range(len(self.wrt))]


def read_arguments(
    reads: Sequence[tuple[str, int]],
    count: int,
    inputs: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
    cotangents: Cotangents,
) -> list[torch.Tensor]:
    """The tensors that a backward program reads (`reads_of`). count: the number of the graph's
    results; saved values follow them among the forward program's results."""
    arguments = []
    for kind, number in reads:
        match kind:
            case "input":
                arguments.append(inputs[number])
            case "gradient":
                arguments.append(cotangent(cotangents[number], results[number]))
            case _:
                arguments.append(results[number + count if kind == "saved" else number])
    return arguments


def arguments_kept(ctx: Any, reads: Reads, cotangents: Cotangents) -> list[torch.Tensor | None]:
    """As `read_arguments`, for a node of autograd that has kept inputs and saved values."""
    kept = paired(ctx, reads)
    then = {("input", number): each for number, each in moved(ctx, kept).items()}
    return [
        cotangent(cotangents.get(read[1]), ctx.shapes[read[1]])
        if read[0] == "gradient"
        else then.get(read, tensor)
        for read, tensor in kept.items()
    ]


def are_finite(gradients: Iterable[torch.Tensor]) -> bool:
    """Whether all gradients are finite. Missing cotangents are replaced by zeros, and zero times an
    infinity gives NaN."""
    return all(cmath.isfinite(each.sum().item()) for each in gradients)


def cotangent(given: torch.Tensor | None, result: Any) -> torch.Tensor:
    """The cotangent in row-major order; zeros for a result that nothing has used."""
    if given is None:
        return torch.zeros(result.shape, dtype=result.dtype)
    if given.layout is not torch.strided:
        given = given.to_dense()
    if given.dtype is result.dtype and given.is_contiguous():
        return given
    return given.to(result.dtype).contiguous()


def differentiable(
    graph: GradientGraph, inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """The results of a graph of gradients, connected with the inputs by autograd.

    The first time PyTorch computes them, and the programs' results are compared with PyTorch's.
    """
    wrt = tuple(number for number, each in enumerate(inputs) if each.requires_grad)
    known = wrt in graph.programs
    program = program_for(graph, wrt, inputs)
    if program is None or not known:
        return graph.evaluate(inputs)
    program.calls += 1
    results = _Gradients.apply(program, *inputs)
    return [each if is_so else None for each, is_so in zip(results, program.present, strict=True)]


def program_for(
    graph: GradientGraph, wrt: tuple[int, ...], inputs: Sequence[torch.Tensor]
) -> DerivativeProgram | None:
    """The program of a graph of gradients whose inputs `wrt` require gradients. It is made and
    compared with PyTorch if there is none yet. None if PyTorch has to compute these gradients."""
    program = graph.programs.get(wrt)
    if program is None and len(graph.programs) < _MOST_PROGRAMS:
        program = DerivativeProgram(graph, wrt, len(graph.derivatives[-1].wrt))
        graph.programs[wrt] = program
        compare(program, inputs)
    return program if program is not None and program.ready else None


def compare(program: DerivativeProgram, inputs: Sequence[torch.Tensor]) -> None:
    """Makes the programs and compares them with PyTorch on `inputs`, the inputs of the graph."""
    from weft.compiled.derivative_check import compare_derivatives

    graph = program.graph
    state = torch.get_rng_state() if graph.draws else None
    # Copies, so that the user's graph and its hooks do not see the comparison.
    apart = [each.detach().requires_grad_(n in program.wrt) for n, each in enumerate(inputs)]
    with random_state(state), torch.enable_grad():
        eager = graph.evaluate(apart)
    try:
        program.compile()
        program.reason = compare_derivatives(
            program, apart, eager, state, judge=config.verify != "off"
        )
        program.ready = program.reason is None
    except errors.CompileError as error:
        program.reason = f"its derivative is not compiled: {error}"
    except Exception as error:  # a fault of the compiler costs speed, never the user's result
        program.reason = f"it cannot be compared: {type(error).__name__}: {error}"


def joined(numbers: Sequence[int]) -> str:
    """The numbers in the form in which options of a compilation are written."""
    return ",".join(map(str, numbers))


@dataclass(frozen=True)
class Like:
    shape: torch.Size
    dtype: torch.dtype


class _Gradients(torch.autograd.Function):
    """Both programs as a function of autograd. Its inputs are all inputs of the graph."""

    @staticmethod
    def forward(ctx: Any, program: DerivativeProgram, *inputs: torch.Tensor) -> tuple:
        ctx.program = program
        ctx.random = torch.get_rng_state() if program.graph.draws else None
        results = program.forward.run(inputs)
        Kept.of(program.reads, len(inputs), program.count).save(ctx, inputs, results)
        own = results[: program.count]
        ctx.shapes = [Like(each.shape, each.dtype) for each in own]
        ctx.mark_non_differentiable(
            *(each for each, is_so in zip(own, program.requires, strict=True) if not is_so)
        )
        ctx.set_materialize_grads(False)
        return tuple(own)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple:
        program: DerivativeProgram = ctx.program
        given = {number: each for number, each in enumerate(cotangents) if each is not None}
        if torch.is_grad_enabled() or is_watched(cotangents):
            inputs = inputs_of(ctx, paired(ctx, program.reads))
            edges = [ctx.next_functions[number][0] for number in program.wrt]
            with random_state(ctx.random):
                gradients = further(program.graph, inputs, given, program.wrt, edges)
        else:
            gradients = program.backward.run(arguments_kept(ctx, program.reads, given))
        whole: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        reached = program.reached(list(given))
        for number, gradient, is_so in zip(program.wrt, gradients, reached, strict=True):
            whole[number + 1] = gradient if is_so else None
        return tuple(whole)


def further(
    graph: GradientGraph,
    inputs: Sequence[torch.Tensor],
    cotangents: dict[int, torch.Tensor],
    wrt: tuple[int, ...],
    edges: Sequence[Any],
) -> list[torch.Tensor | None]:
    """The gradients of `graph` as functions of its inputs and of the cotangents. PyTorch computes
    them if its ops are being watched (`is_watched`).

    cotangents: those of the results that have one. edges: the nodes of autograd for which the
    gradients of `wrt` are; nodes that this backward does not reach are left out.
    """
    wanted = wanted_of(graph, cotangents, wrt, edges)
    found = dict(zip(wanted, _further(graph, inputs, cotangents, wanted), strict=True))
    return [found.get(number) for number in wrt]


def wanted_of(
    graph: GradientGraph,
    cotangents: dict[int, torch.Tensor],
    wrt: tuple[int, ...],
    edges: Sequence[Any],
) -> tuple[int, ...]:
    """The numbers in `wrt` whose nodes of autograd, `edges`, are reached by the backward that is
    running. By torch.autograd.grad not all nodes are reached. If there are many such graphs
    already, all of `wrt`."""
    wanted = tuple(number for number, edge in zip(wrt, edges, strict=True) if is_run(edge))
    is_new = not graph.may_have(Derivative(wanted, tuple(cotangents)), _MOST_PROGRAMS)
    return wrt if is_new else wanted


def is_run(edge: Any) -> bool:
    """Whether the backward that is running reaches this node of autograd."""
    if edge is None:
        return False
    try:
        return torch._C._will_engine_execute_node(edge)
    except RuntimeError:  # PyTorch cannot tell for a leaf that torch.autograd.grad was called for
        return True


def _further(
    graph: GradientGraph,
    inputs: Sequence[torch.Tensor],
    cotangents: dict[int, torch.Tensor],
    wrt: tuple[int, ...],
) -> list[torch.Tensor | None]:
    if not cotangents or not wrt:
        return [None] * len(wrt)
    if not torch.is_grad_enabled() or is_watched((*inputs, *cotangents.values())):
        create = torch.is_grad_enabled()
        return graph.gradients(inputs, cotangents, wrt, create_graph=create)
    above = graph.of(Derivative(wrt, tuple(cotangents)))
    return differentiable(above, [*inputs, *cotangents.values()])


def is_watched(tensors: Sequence[torch.Tensor | None]) -> bool:
    """Whether PyTorch's ops are being watched, by something to which a program would be invisible:
    a mode that ops are dispatched to, such as a tracer or a counter of operations, or a vmap or a
    tensor subclass among these tensors."""
    return torch._C._len_torch_dispatch_stack() > 0 or any(map(is_wrapped, tensors))
