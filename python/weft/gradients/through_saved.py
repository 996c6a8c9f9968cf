# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of gradients that start from what the forward program has saved.

The programs of `derivative_program.py` start from the inputs, and so compute the forward again.
Once a backward under `create_graph` has been seen, calls show autograd what they save, as further
results. Then gradients are functions of saved values, inputs and cotangents, by the backward
program, for which a forward and a backward program are compiled in turn. That backward gives the
cotangents of saved values, which autograd adds to whatever else reaches the call, so that the
forward is differentiated only once, as in eager execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from weft import errors
from weft.gradients.derivative_program import (
    DerivativeProgram,
    Half,
    Like,
    are_finite,
    arguments_kept,
    compare,
    cotangent,
    further,
    is_watched,
    read_arguments,
)
from weft.gradients.gradient_graph import Cotangents, Derivative, GradientGraph
from weft.gradients.saved import Kept, Reads, random_state, reads_of, unchanged

_FLOATS = ("f32", "f64", "bf16", "f16")
# The most programs of one graph of gradients.
_MOST_ONWARD = 4
Read = tuple[str, int]


@dataclass(frozen=True)
class Halves:
    """The forward and the backward program of a graph, which are differentiated further.

    derivative: the one that the backward computes. inputs: the number of the graph's inputs. count:
    the number of its results; saved values follow them among the forward's results. reads: the
    backward's arguments. exposed: those of them, among results and saved values, that autograd is
    shown. floats: the numbers of the forward's results that have cotangents.
    """

    graph: GradientGraph
    derivative: Derivative
    inputs: int
    count: int
    reads: Reads
    exposed: tuple[Read, ...]
    floats: tuple[int, ...]

    @staticmethod
    def of(
        graph: GradientGraph, derivative: Derivative, inputs: int, count: int, backward: Half
    ) -> Halves:
        arguments = backward.manifest["entries"]["main"]["arguments"]
        reads = reads_of(backward.manifest)
        saved = [
            count + number
            for (kind, number), each in zip(reads, arguments, strict=True)
            if kind == "saved" and each["dtype"] in _FLOATS
        ]
        exposed = tuple(read for read in reads if read[0] in ("saved", "result"))
        floats = (*derivative.results, *saved)
        return Halves(graph, derivative, inputs, count, reads, exposed, floats)

    def place(self, read: Read) -> int:
        """The number of a saved value or a result among the forward's results."""
        kind, number = read
        return number + self.count if kind == "saved" else number

    def kept(self, results: Sequence[torch.Tensor]) -> dict[Read, torch.Tensor]:
        """What the backward reads of the forward's results."""
        return {read: results[self.place(read)] for read in self.exposed}

    def is_float(self, read: Read) -> bool:
        return self.place(read) in self.floats


class ThroughSaved(DerivativeProgram):
    """The gradients `graph` of `halves`, for some of its inputs and some of its cotangents.

    first, second: the forward and the backward program of the backward. `reads` are the arguments
    of `second`, in terms of the backward's arguments and of the results of `first`. active: the
    arguments for which `second` gives gradients. rest: the gradients along all of the graph's
    results and saved floats.
    """

    def __init__(self, halves: Halves, graph: GradientGraph, wrt: tuple[int, ...]) -> None:
        super().__init__(graph, wrt, len(graph.derivatives[-1].wrt))
        self.halves = halves
        self.cotangents = graph.derivatives[-1].results

    def compile(self) -> None:
        """Compiles the programs. Raises: errors.CompileError."""
        halves, wanted = self.halves, self.graph.derivatives[-1].wrt
        graph, whole = self.graph.graph, halves.derivative
        requiring = {self.read_at(number) for number in self.wrt}
        active = [
            number
            for number, read in enumerate(halves.reads)
            if (halves.is_float(read) if read in halves.exposed else read in requiring)
        ]
        self.active = [halves.reads[number] for number in active]
        of_backward = Derivative(tuple(active), tuple(whole.wrt.index(number) for number in wanted))
        of_forward = Derivative(whole.wrt, halves.floats)
        self.start = Half(graph, self.options("forward", whole))
        self.first = Half(graph, self.options("forward of backward", whole, of_backward))
        self.second = Half(graph, self.options("backward of backward", whole, of_backward))
        self.rest = Half(graph, self.options("backward of forward", whole, of_forward))
        self.reads = reads_of(self.second.manifest)
        self.rest_reads = reads_of(self.rest.manifest)
        shown = {halves.place(read) for read in halves.exposed}
        if any(
            kind == "saved" or (kind == "result" and number not in shown)
            for kind, number in self.rest_reads
        ):
            raise errors.CompileError("the forward would have to save more than it does")
        self.forward = _FromInputs(self)

    def read_at(self, number: int) -> Read:
        """The backward's name for an input of the graph of gradients."""
        inputs = self.halves.inputs
        if number < inputs:
            return "input", number
        return "gradient", self.cotangents[number - inputs]

    def arguments(
        self, tensors: Sequence[torch.Tensor], kept: dict[Read, torch.Tensor]
    ) -> list[torch.Tensor]:
        """The arguments of the backward. tensors: of the graph of gradients. kept: what the forward
        has given, by the backward's names."""
        given = {self.read_at(number): each for number, each in enumerate(tensors)} | kept
        return [
            given[read].contiguous() if read[0] == "gradient" else given[read]
            for read in self.halves.reads
        ]

    def direct(self, arguments: Sequence[torch.Tensor]) -> dict[Read, torch.Tensor]:
        """The gradients of the backward's arguments, by their names. arguments: of `second`."""
        return dict(zip(self.active, self.second.run(arguments), strict=True))

    def gradients(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        cotangents: Cotangents,
    ) -> list[torch.Tensor]:
        """The gradients of the inputs. inputs: of the graph. results: of `forward`."""
        halves = self.halves
        made, given = self.forward.parts(results)
        kept = halves.kept(given)
        arguments = self.arguments(inputs, kept)
        direct = self.direct(read_arguments(self.reads, self.count, arguments, made, cotangents))
        through: Cotangents = dict.fromkeys(halves.floats)
        through.update({halves.place(r): g for r, g in direct.items() if r in halves.exposed})
        found = self.rest.run(read_arguments(self.rest_reads, 0, inputs, given, through))
        rest = dict(zip(halves.derivative.wrt, found, strict=True))
        sums = []
        for number in self.wrt:
            parts = [direct.get(self.read_at(number)), rest.get(number)]
            there = [each for each in parts if each is not None]
            sums.append(sum(there[1:], there[0]))
        return sums


class _FromInputs:
    """The gradients as functions of the inputs, by which the programs are compared with PyTorch."""

    def __init__(self, program: ThroughSaved) -> None:
        self.program = program
        self.made = len(program.first.manifest["entries"]["main"]["results"])

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        program = self.program
        given = program.start.run(tensors[: program.halves.inputs])
        kept = program.halves.kept(given)
        return [*program.first.run(program.arguments(tensors, kept)), *given]

    def parts(self, results: Sequence[torch.Tensor]) -> tuple[list, list]:
        """The results and saved values of the backward, and those of the forward."""
        return list(results[: self.made]), list(results[self.made :])


class Passed:
    """The gradients that reach a call through what it has saved, in one run of autograd's engine. |
    shown: what the call has shown autograd besides its results. reached: the graph's inputs that
    have gradients in this way. shares: each of these gradients, with the whole gradient that it
    belongs to.
    """

    def __init__(self, shown: tuple[Read, ...]) -> None:
        self.shown = shown
        self._task = -1
        self.program: ThroughSaved | None = None
        self.reached: set[int] = set()
        self.shares: list[_Share] = []

    def now(self) -> Passed:
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task, self.reached, self.shares = task, set(), []
        return self

    def rest(
        self,
        inputs: Sequence[torch.Tensor],
        kept: dict[Read, torch.Tensor],
        cotangents: Cotangents,
        likes: dict[int, Like],
        shown: Sequence[torch.Tensor | None],
    ) -> list[torch.Tensor]:
        """The gradients of the graph along cotangents of its results and of what is `shown`. |
        kept: what has been saved, by the backward's names. likes: tensors with the shapes and
        dtypes of the results.
        """
        program = self.program
        halves = program.halves
        for read, each in zip(self.shown, shown, strict=True):
            if each is not None:
                place = halves.place(read)
                before = cotangents.get(place)
                cotangents[place] = each if before is None else before + each
        results = {halves.place(read): each for read, each in kept.items() if read[0] != "input"}
        arguments = []
        for kind, number in program.rest_reads:
            if kind == "input":
                arguments.append(inputs[number])
            elif kind == "result":
                arguments.append(results[number])
            else:
                like = likes[number] if number in likes else results[number]
                arguments.append(cotangent(cotangents.get(number), like))
        return program.rest.run(arguments)

    def by_meaning(self, wrt: Sequence[int]) -> list[torch.Tensor | None]:
        """The gradients that come through what is shown, by PyTorch: the whole gradients, minus the
        direct ones and minus those that come through results."""
        sums: list[torch.Tensor | None] = [None] * len(wrt)
        for share in self.shares:
            program = share.program
            inputs = share.tensors[: program.halves.inputs]
            of_results = {
                number: each
                for (kind, number), each in share.direct.items()
                if kind == "result" and (kind, number) not in self.shown
            }
            direct = [share.direct.get(("input", number)) for number in wrt]
            sums = added(sums, program.graph.gradients(share.tensors, share.seconds, wrt))
            for others in (direct, program.halves.graph.gradients(inputs, of_results, wrt)):
                sums = added(sums, [None if each is None else -each for each in others])
        return sums


def added(
    some: Sequence[torch.Tensor | None], others: Sequence[torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """The sums of both sequences, element by element, where None counts as zero."""
    return [
        other if one is None else one if other is None else one + other
        for one, other in zip(some, others, strict=True)
    ]


class _Share(NamedTuple):
    program: ThroughSaved
    tensors: Sequence[torch.Tensor]
    seconds: Cotangents
    direct: dict[Read, torch.Tensor]


class Call(NamedTuple):
    """A call whose gradients are computed: its results that the gradients read, in the order of
    `Halves.exposed`, the state of its generator, and what comes back to it."""

    exposed: Sequence[torch.Tensor]
    random: torch.Tensor | None
    passed: Passed


def through_saved(
    halves: Halves, derivative: Derivative, tensors: Sequence[torch.Tensor], call: Call
) -> Sequence[torch.Tensor | None] | None:
    """The gradients that `derivative` describes, connected by autograd with `tensors`, which are
    the graph's inputs and cotangents, and with what is exposed; None if there is no program."""
    above = halves.graph.of(derivative)
    wrt = tuple(number for number, each in enumerate(tensors) if each.requires_grad)
    program = above.onward.get(wrt)
    if program is None or not program.ready:
        return None
    program.calls += 1
    call.passed.program = program
    results = _Onward.apply(_Run(program, call), *tensors, *call.exposed)
    return [each if is_so else None for each, is_so in zip(results, program.present, strict=True)]


def prepare(halves: Halves, derivative: Derivative, tensors: Sequence[torch.Tensor]) -> None:
    """Makes the programs of such gradients once programs that start from the inputs have answered a
    call, and lets later calls show what they save."""
    above = halves.graph.of(derivative)
    wrt = tuple(number for number, each in enumerate(tensors) if each.requires_grad)
    known = above.programs.get(wrt)
    is_whole = {read for read in halves.reads if read[0] == "gradient"} <= {
        ("gradient", number) for number in derivative.results
    }
    if known is None or not known.calls or not is_whole or wrt in above.onward:
        return
    if len(above.onward) < _MOST_ONWARD:
        program = above.onward[wrt] = ThroughSaved(halves, above, wrt)
        compare(program, tensors)
        halves.graph.exposes |= program.ready


class _Run(NamedTuple):
    program: ThroughSaved
    call: Call


class _Onward(torch.autograd.Function):
    """The forward and the backward program of the backward. Its inputs are those of the graph of
    gradients, followed by what is exposed."""

    @staticmethod
    def forward(ctx: Any, run: _Run, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        program = ctx.program = run.program
        ctx.call = run.call._replace(exposed=())
        count = len(tensors) - len(program.halves.exposed)
        kept = dict(zip(program.halves.exposed, tensors[count:], strict=True))
        arguments = program.arguments(tensors[:count], kept)
        results = program.first.run(arguments)
        Kept.of(program.reads, 0, program.count).save(ctx, arguments, results)
        ctx.shapes = [Like(each.shape, each.dtype) for each in results[: program.count]]
        ctx.whole = [(each, each._version) for each in tensors[:count]]
        ctx.mark_non_differentiable(
            *(each for each, is_so in zip(results, program.requires) if not is_so)
        )
        ctx.set_materialize_grads(False)
        return tuple(results[: program.count])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        program: ThroughSaved = ctx.program
        whole: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        given = {number: each for number, each in enumerate(cotangents) if each is not None}
        if not given:
            return tuple(whole)
        reached = program.reached(list(given))
        if torch.is_grad_enabled() or is_watched(cotangents):
            gradients = _from_inputs(ctx, given)
        else:
            direct = program.direct(arguments_kept(ctx, program.reads, given))
            if len(given) < program.count and not are_finite(direct.values()):
                # Missing cotangents are zeros here, since autograd does not reach them.
                gradients = _from_inputs(ctx, given)
            else:
                gradients = [direct.get(program.read_at(number)) for number in program.wrt]
                count = program.halves.inputs
                inputs = {n for n, is_so in zip(program.wrt, reached) if is_so and n < count}
                shown = [direct.get(read) if inputs else None for read in program.halves.exposed]
                whole[len(ctx.whole) + 1 :] = shown
                if all(each is None for each in shown):
                    # Nothing comes through what was saved, so that the derivative is zero.
                    gradients = _or_zeros(gradients, program.wrt, ctx.whole)
                passed = ctx.call.passed.now()
                passed.reached.update(inputs)
                # Otherwise they would keep the call alive.
                tensors = [each.detach() for each, _ in ctx.whole]
                passed.shares.append(_Share(program, tensors, given, direct))
        for number, gradient, is_so in zip(program.wrt, gradients, reached, strict=True):
            whole[number + 1] = gradient if is_so else None
        return tuple(whole)


def _or_zeros(
    gradients: Sequence[torch.Tensor | None],
    wrt: Sequence[int],
    whole: Sequence[tuple[torch.Tensor, int]],
) -> list[torch.Tensor]:
    """The gradients with zeros in place of None. whole: the tensors of the graph of gradients, with
    their versions."""
    return [
        torch.zeros_like(whole[number][0]) if each is None else each
        for number, each in zip(wrt, gradients, strict=True)
    ]


def _from_inputs(ctx: Any, given: dict[int, torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """The whole gradients, including those that come through what was saved."""
    program: ThroughSaved = ctx.program
    tensors = [unchanged(*each) for each in ctx.whole]
    edges = [ctx.next_functions[number][0] for number in program.wrt]
    with random_state(ctx.call.random):
        return further(program.graph, tensors, given, program.wrt, edges)
