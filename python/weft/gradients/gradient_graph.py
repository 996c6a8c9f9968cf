# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph and the graphs of its gradients, to any order.

PyTorch can compute each of them in its own ops, and differentiate that; this defines what the graph
means. The programs of a graph are those of `derivative_program.py`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from weft.artifacts.builds import Options
from weft.frontend import interpreter
from weft.frontend.random_rounding import RandomRounding

# Cotangents by the number of the graph's result; None for a result that nothing has used.
Cotangents = dict[int, torch.Tensor | None]


@dataclass(frozen=True)
class Derivative:
    """The gradients of the inputs `wrt` along the cotangents of `results`."""

    wrt: tuple[int, ...]
    results: tuple[int, ...]


@dataclass
class GradientGraph:
    """`graph`, or, if `derivatives` are given, the graph of its gradients, of the gradients of
    these, and so on. Its inputs are those of the graph that it differentiates, followed by a
    cotangent for each of `results`; its results are the gradients of `wrt`. | graph: as JSON,
    lowered for training. draws: whether it draws random numbers. programs, onward: the programs of
    its derivatives, by the inputs that require gradients: those that start from the inputs, and
    those that start from what the forward of the original graph has saved (`through_saved.py`).
    exposes: whether that forward is to show autograd what it saves.
    """

    graph: bytes
    options: Options
    draws: bool
    derivatives: tuple[Derivative, ...] = ()
    below: GradientGraph | None = None
    programs: dict[tuple[int, ...], Any] = field(default_factory=dict)
    onward: dict[tuple[int, ...], Any] = field(default_factory=dict)
    exposes: bool = False
    _above: dict[Derivative, GradientGraph] = field(default_factory=dict)
    _document: dict[str, Any] | None = None

    def of(self, derivative: Derivative) -> GradientGraph:
        """The graph of these gradients."""
        if derivative not in self._above:
            self._above[derivative] = GradientGraph(
                self.graph, self.options, self.draws, (*self.derivatives, derivative), self
            )
        return self._above[derivative]

    def may_have(self, derivative: Derivative, most: int) -> bool:
        """Whether this graph of gradients exists, or fewer than `most` such graphs do."""
        return derivative in self._above or len(self._above) < most

    def higher(self) -> Iterator[tuple[int, Any]]:
        """The programs of derivatives of second and higher order, each with its order."""
        for above in self._above.values():
            for program in (*above.programs.values(), *above.onward.values()):
                yield len(above.derivatives) + 1, program
            yield from above.higher()

    def evaluate(
        self,
        inputs: Sequence[torch.Tensor],
        *,
        double: bool = False,
        held: Mapping[int, torch.Tensor] | None = None,
        rounding: RandomRounding | None = None,
    ) -> list[torch.Tensor | None]:
        """The results in PyTorch's ops; None for a gradient that autograd does not know. held:
        tensors that replace results, by number, of the graph that is differentiated. rounding:
        moves values by their last bits."""
        if self.below is None:
            if self._document is None:
                self._document = json.loads(self.graph)
            outputs = self._document["outputs"]
            values = interpreter.run_nodes(
                self._document,
                inputs,
                double=double,
                held={outputs[number]["value"]: each for number, each in (held or {}).items()},
                rounding=rounding,
            )
            return [values[output["value"]] for output in self._document["outputs"]]
        assert not held, "only of the graph itself"
        last = self.derivatives[-1]
        count = len(inputs) - len(last.results)
        cotangents = dict(zip(last.results, inputs[count:], strict=True))
        return self.below.gradients(
            inputs[:count],
            cotangents,
            last.wrt,
            double=double,
            create_graph=True,
            rounding=rounding,
        )

    def gradients(
        self,
        inputs: Sequence[torch.Tensor],
        cotangents: Cotangents,
        wrt: Sequence[int],
        *,
        double: bool = False,
        create_graph: bool = False,
        in_the_forward: Mapping[int, torch.Tensor] | None = None,
        held: Mapping[int, torch.Tensor] | None = None,
        moved: Mapping[int, torch.Tensor] | None = None,
        rounding: RandomRounding | None = None,
    ) -> list[torch.Tensor | None]:
        """The gradients, by PyTorch's autograd.

        double: whether floats of every width are computed as float64. held: results from which
        others are computed; their gradients follow those of `wrt`. in_the_forward: values that
        inputs had in the forward, in memory of their own; the derivative reads their present
        values. moved: inputs in the memory that they have been given since, which nodes read that
        saved the inputs themselves. rounding: moves values by their last bits.
        """
        with torch.enable_grad():
            # Each input is a new tensor, since one may have been computed from another.
            seen = [_widened(each, double) for each in inputs]
            apart = {*wrt, *(moved or ())}
            seen = [_leaf(each, n in wrt) if n in apart else each for n, each in enumerate(seen)]
            own = {number: _leaf(each) for number, each in (held or {}).items()}
            leaves = [*(seen[number] for number in wrt), *own.values()]
            now = {number: seen[number] for number in in_the_forward or ()}
            for number, then in (in_the_forward or {}).items():
                seen[number] = then
            with _drawn_once(seen) if self.draws else contextlib.nullcontext():
                values = self.evaluate(seen, double=double, held=own, rounding=rounding)
            reached = [
                (values[number], given)
                for number, given in cotangents.items()
                if given is not None and values[number] is not None and values[number].requires_grad
            ]
            if not reached:
                return [None] * len(leaves)
            for number, tensor in (moved or {}).items():
                seen[number].data = tensor.detach()
            for number, tensor in now.items():
                with torch.no_grad(), _uncounted(seen[number]):
                    seen[number].copy_(tensor)
            return list(
                torch.autograd.grad(
                    [result for result, _ in reached],
                    leaves,
                    [given.to(result.dtype) for result, given in reached],
                    create_graph=create_graph,
                    allow_unused=True,
                )
            )


# Within this context, writes to a tensor do not increment its version.
_uncounted = torch.autograd._unsafe_preserve_version_counter


@contextlib.contextmanager
def _drawn_once(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Makes ops of these tensors draw random numbers once, unless the tensors stand for many: in a
    vmap over cotangents alone, the forward's numbers are used for all of them."""
    if any(map(is_wrapped, tensors)):
        yield
        return
    nested = torch._C._vmapmode_increment_nesting() - 1
    for _ in range(nested + 1):
        torch._C._vmapmode_decrement_nesting()
    try:
        with temporarily_clear_interpreter_stack():
            yield
    finally:
        for _ in range(nested):
            torch._C._vmapmode_increment_nesting()


def is_wrapped(tensor: torch.Tensor | None) -> bool:
    """Whether the tensor stands for many tensors, as within a vmap, or is of a subclass."""
    if tensor is None:
        return False
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return True
    functorch = torch._C._functorch
    return functorch.is_functorch_wrapped_tensor(tensor) or functorch.is_legacy_batchedtensor(
        tensor
    )


def _leaf(tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
    """A new tensor to differentiate by: a view, if the tensor requires a gradient, so that the
    caller's graph stays connected; otherwise a detached leaf."""
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_(requires_grad)


def _widened(tensor: torch.Tensor, double: bool) -> torch.Tensor:
    return tensor.double() if double and tensor.is_floating_point() else tensor
