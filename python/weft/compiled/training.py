# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training: a forward and a backward program of one graph, connected to autograd.

The forward is a program with additional results, which the backward reads. A call runs it as a node
of autograd's graph, in C++ if possible (`recorded_calls.py`), otherwise as a
`torch.autograd.Function`, whose backward runs the backward program (`backward.py`). Whatever
PyTorch's autograd does with functions (hooks, accumulation, version counters, freeing) it also does
with these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from weft import _core, errors
from weft.artifacts.builds import Options
from weft.capture.outputs import build_outputs
from weft.compiled.autograd_nodes import separate
from weft.compiled.backward import gradients_along, in_segments
from weft.compiled.backward_segments import Chain, Segments, are_awaited
from weft.compiled.dependent_results import joined_with_others
from weft.compiled.specialize import Specialized, Wiring, write
from weft.frontend.dtypes import DTYPES
from weft.frontend.pairs import shown_real
from weft.gradients.derivative_program import Half, Like, are_finite, joined, read_arguments
from weft.gradients.eager_saves import Saves
from weft.gradients.gradient_graph import Cotangents, Derivative, GradientGraph
from weft.gradients.running_statistics import Statistics
from weft.gradients.saved import Kept, reads_of
from weft.gradients.through_saved import Halves, Passed


def options_of_half(
    options: Options, role: str, wrt: Sequence[int], outputs: Sequence[int]
) -> Options:
    """The options of one half. role: "forward" or "backward". wrt, outputs: as in `Training`."""
    return replace(options, role=role, wrt=joined(wrt), differentiated=joined(outputs))


@dataclass
class Training:
    """What connects the two programs.

    wrt: the graph's inputs that have gradients. outputs: its results that have cotangents;
    `requires` says which of them require gradients in eager execution. connected: for each of
    `outputs` and each of `wrt`, whether autograd connects them; if not, there is no gradient,
    instead of one of zeros. within: those of `outputs` from which others are computed, by the
    number of each of the others. graph: the one whose gradients may be differentiated again.
    statistics: inputs that norms read as such. copied: inputs of which PyTorch's derivative has
    copies. segments: the backward's, once single gradients are waited for. written: inputs that the
    call writes to. backward: None if gradients are not expected to be wanted, as for a module in
    eval mode: then the forward saves no values, PyTorch differentiates the graph if gradients are
    wanted, and `asked` says so. saves: what autograd saves in eager execution, if that is known.
    """

    wrt: tuple[int, ...]
    outputs: tuple[int, ...]
    backward: Half | None
    count: int
    wiring: InitVar[Wiring]
    graph: GradientGraph
    requires: list[bool]
    connected: list[list[bool]]
    within: dict[int, tuple[int, ...]] = field(default_factory=dict)
    asked: bool = False
    statistics: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    saves: Saves | None = None

    def __post_init__(self, wiring: Wiring) -> None:
        self._inputs = len(wiring.lowered.inputs)
        self.reads = [] if self.backward is None else reads_of(self.backward.manifest)
        self._cotangents = [number for kind, number in self.reads if kind == "gradient"]
        self.likes: list[Like] | None = None
        self.step: _core.TrainingStep | None = None
        self.segments: Segments | None = None
        if self.backward is not None:
            derivative = Derivative(self.wrt, self.outputs)
            self.halves = Halves.of(self.graph, derivative, self._inputs, self.count, self.backward)
        self._bind(wiring)
        self.learnt(self.requires, self.connected, self.saves)

    def learnt(
        self, requires: list[bool], connected: list[list[bool]], saves: Saves | None
    ) -> None:
        """Sets what eager execution has shown."""
        self.requires, self.connected, self.saves = requires, connected, saves
        self.kept = Kept.of(self.reads, self._inputs, self.count, saves, self.changing)
        self._places = [n for n, is_so in zip(self.outputs, requires, strict=True) if is_so]
        shown = {*self._places}
        among = {n: shown.intersection(all_of) for n, all_of in self.within.items() if n in shown}
        self.dependent = {number: sorted(others) for number, others in among.items() if others}
        self._reached: dict[tuple[bool, ...], list[bool]] = {}

    def _bind(self, wiring: Wiring) -> None:
        # The wiring leads to the module, which may hold a result of its own, whose node leads here.
        self._sources = wiring.sources()
        self._effects = wiring.effects()
        self._recipe = wiring.outputs()
        targets = [target for target, *_ in self._effects]
        self.written = [
            number
            for number, source in enumerate(self._sources)
            if any(source is target for target in targets)
        ]
        self.changing = {*self.written, *self.copied}

    def options(self, options: Options, role: str) -> Options:
        """The options for compiling the half `role` of the graph."""
        return options_of_half(options, role, self.wrt, self.outputs)

    def rebound(self, wiring: Wiring) -> Training:
        """The same for other tensors of the modules."""
        return replace(self, wiring=wiring)

    @property
    def sources(self) -> list[int | torch.Tensor]:
        """The source of each of the graph's inputs: its number among the call's tensors, or a
        tensor of the module."""
        return self._sources

    @property
    def writes(self) -> bool:
        """Whether a call writes to tensors."""
        return bool(self._effects)

    @property
    def saved_bytes(self) -> list[tuple[str, int]]:
        """Name and size in bytes of the forward's values that the backward reads."""
        if self.backward is None:
            return []
        arguments = self.backward.manifest["entries"]["main"]["arguments"]
        return [
            (
                f"{each['dtype']}{each['shape']}",
                torch.Size(each["shape"]).numel() * DTYPES[each["dtype"]].itemsize,
            )
            for each, (kind, _) in zip(arguments, self.reads, strict=True)
            if kind in ("saved", "result")
        ]

    # Calls.

    def call(self, specialized: Specialized, args: tuple, kwargs: dict[str, Any]) -> Any:
        """(True, the call's result), or (False, the reason why PyTorch has to run it)."""
        slots = specialized.tensors_of(args, kwargs)
        # Autograd passes through the views of complex numbers as pairs.
        inputs = [shown_real(slots[s] if isinstance(s, int) else s) for s in self._sources]
        if self.step is not None and self.step.is_plain(inputs):
            return self._recorded(specialized.core, args, kwargs, inputs, slots)
        chain = self.chain(inputs)
        step = _Call(self, specialized.core, args, kwargs, inputs, chain)
        tensors = [inputs[n] for n in self.wrt] if chain is None else chain.tensors(inputs)
        try:
            outputs = _apply(step, *tensors)
        except _Refused as why:
            return False, why.reason
        results, node = list(step.results), outputs[0].grad_fn
        separate([x for n, x in zip(self._places, outputs) if n not in self.dependent])
        if self.dependent:
            outputs = joined_with_others(self, outputs, node)
        # These may be followed by tensors that only autograd is to see.
        for number, output in zip(self._places, outputs):
            results[number] = output
        return True, self.value(results, slots)

    def _recorded(
        self,
        core: _core.Specialization,
        args: tuple,
        kwargs: dict[str, Any],
        inputs: Sequence[torch.Tensor],
        slots: Sequence[torch.Tensor],
    ) -> tuple[bool, Any]:
        """As `call`, by a node in C++."""
        with torch.no_grad():
            kept, beside = self.ahead(inputs)
            ran, reason, results, laid_out = core.evaluate(args, kwargs)
            if not ran:
                return False, reason
            laid_out = [each.data if each._is_view() else each for each in laid_out]
            self.step.record(inputs, kept, results, laid_out, beside)
            self.commit(results, inputs)
        return True, self.value(laid_out, slots)

    def ahead(
        self, inputs: Sequence[torch.Tensor]
    ) -> tuple[Sequence[torch.Tensor], tuple[torch.Tensor | None, Statistics | None]]:
        """What is needed before a call: the inputs as the backward is to have them, the generator's
        state if the program draws, and the statistics."""
        random = torch.get_rng_state() if self.graph.draws else None
        if self.changing:
            inputs = [x.clone() if n in self.changing else x for n, x in enumerate(inputs)]
        statistics = Statistics(self.statistics, inputs) if self.statistics else None
        return inputs, (random, statistics)

    def chain(self, inputs: Sequence[torch.Tensor]) -> Chain | None:
        """The chain of nodes of a call whose gradients come in segments; None for other calls."""
        wanted = [inputs[number] for number in self.wrt]
        if self.backward is None or len(wanted) < 2 or not are_awaited(wanted):
            return None
        if self.segments is None:
            try:
                self.segments = Segments.of(
                    self.graph.graph, self.wrt, inputs, partial(self.options, self.graph.options)
                )
            except errors.CompileError as error:
                self.segments = Segments([], [], reason=f"no segments of it are compiled: {error}")
        return None if self.segments.reason else Chain(self.segments)

    def value(self, results: Sequence[torch.Tensor], slots: Sequence[torch.Tensor]) -> Any:
        """The call's result. slots: the tensors among its arguments."""
        return build_outputs(self._recipe, results, slots)

    def differentiable(self) -> list[int]:
        """The numbers of the results that require gradients."""
        return self._places

    def commit(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
        write(self._effects, results)

    # Gradients.

    def gradients(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        cotangents: Cotangents,
    ) -> list[torch.Tensor]:
        """The gradients by the backward program, zero where nothing is connected.

        inputs: of the graph. results: of the forward program, saved values last. cotangents: of its
        results by number.
        """
        arguments = read_arguments(self.reads, self.count, inputs, results, cotangents)
        return self.settled(self.backward.run(arguments), lambda: inputs, cotangents)

    def settled(
        self,
        gradients: Sequence[torch.Tensor],
        all_inputs: Callable[[], Sequence[torch.Tensor]],
        cotangents: Cotangents,
        statistics: Statistics | None = None,
    ) -> Sequence[torch.Tensor]:
        """`gradients`, the backward program's, if they are those of eager execution.

        In the program an unused result has a cotangent of zeros, and zero times an infinity is NaN,
        while autograd would not reach the result at all. In such cases PyTorch computes the
        gradients.
        """
        is_missing = any(cotangents[number] is None for number in self._places)
        if not is_missing or are_finite(gradients):
            return gradients
        inputs = all_inputs()
        found = self.by_meaning(inputs, cotangents, statistics)
        return [
            torch.zeros_like(inputs[number]) if each is None else each
            for number, each in zip(self.wrt, found, strict=True)
        ]

    def by_meaning(
        self,
        inputs: Sequence[torch.Tensor],
        cotangents: Cotangents,
        statistics: Statistics | None = None,
        moved: Mapping[int, torch.Tensor] | None = None,
    ) -> list[torch.Tensor | None]:
        """The gradients by PyTorch, which differentiates the graph's ops. statistics: of the call.
        moved: the inputs that have been given other memory since, which autograd reads."""
        create = torch.is_grad_enabled()
        then = {} if statistics is None else statistics.then(inputs)
        return self.graph.gradients(
            inputs, cotangents, self.wrt, create_graph=create, in_the_forward=then, moved=moved
        )

    def edges(self, step: Any) -> list[Any]:
        """The node of autograd for each of `wrt`. step: the call's node."""
        if step.chain is not None:
            return step.chain.edges(step, self.wrt)
        return [edge for edge, _ in step.next_functions]

    def chosen(
        self, gradients: Sequence[torch.Tensor | None], given: Sequence[bool]
    ) -> list[torch.Tensor | None]:
        """The gradients that autograd would give. given: which of `outputs` have a cotangent."""
        reached = self.reached_from(given)
        return [g if is_so else None for g, is_so in zip(gradients, reached, strict=True)]

    def reached_from(self, given: Sequence[bool]) -> list[bool]:
        """Which of `wrt` have a gradient if these of `outputs` have a cotangent."""
        key = tuple(given)
        if key not in self._reached:
            self._reached[key] = [
                any(is_given and row[place] for is_given, row in zip(given, self.connected))
                for place in range(len(self.wrt))
            ]
        return self._reached[key]


class _Refused(Exception):
    """The program could not run the call; nothing has been written."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class _Call:
    """One call on its way through autograd. inputs: of the graph."""

    training: Training
    core: _core.Specialization
    args: tuple
    kwargs: dict[str, Any]
    inputs: list[torch.Tensor]
    chain: Chain | None = None
    results: Sequence[torch.Tensor] = ()


class _Step(torch.autograd.Function):
    """The forward and the backward program as a function of autograd, whose inputs are `wrt`."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *wanted: torch.Tensor) -> tuple[torch.Tensor, ...]:
        training = call.training
        ctx.training, ctx.chain = training, call.chain
        ctx.found, ctx.paired = {}, None
        inputs, (ctx.random, ctx.statistics) = training.ahead(call.inputs)
        ran, reason, results, laid_out = call.core.evaluate(call.args, call.kwargs)
        if not ran:
            raise _Refused(reason)
        training.kept.save(ctx, inputs, results, connected=training.graph.exposes)
        if training.likes is None:
            shown = [laid_out[number] for number in training._cotangents]
            training.likes = [Like(each.shape, each.dtype) for each in shown]
        training.commit(results, call.inputs)
        call.results = laid_out
        ctx.set_materialize_grads(False)
        own = [laid_out[number] for number in training._places]
        ctx.passed = None
        if training.graph.exposes:
            halves = training.halves
            exposed = [(read, results[halves.place(read)]) for read in halves.exposed]
            # A tensor that is a result itself need not be shown separately.
            exposed = [(read, x) for read, x in exposed if not any(x is y for y in own)]
            ctx.mark_non_differentiable(*(x for read, x in exposed if not halves.is_float(read)))
            ctx.passed = Passed(tuple(read for read, _ in exposed))
            own = [*own, *(each for _, each in exposed)]
        return tuple(own)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        if ctx.chain is None:
            found = gradients_along(ctx, cotangents)
        else:
            found = ctx.chain.begin(in_segments(ctx, cotangents))
        ctx.paired = None
        return None, *found


# This skips what torch checks first: calls within functorch's transforms do not come here.
_apply = super(torch.autograd.Function, _Step).apply
