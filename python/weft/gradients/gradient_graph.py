# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph, its gradients, which are a graph again, and so on to any order.

What each of them means PyTorch can say in its own ops, and differentiate. The programs are those of
`derivative_program.py`.
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

# Of a graph's results by number, None for one that nobody used.
Cotangents = dict[int, torch.Tensor | None]


@dataclass(frozen=True)
class Derivative:
    """The gradients of the inputs `wrt` along the cotangents of `results`."""

    wrt: tuple[int, ...]
    results: tuple[int, ...]


@dataclass
class GradientGraph:
    """`graph`, or where `derivatives` are given, the gradients of the gradients … of it: its inputs
    are those of the graph that it differentiates, then a cotangent of each of `results`, and its
    results a gradient of each of `wrt`.

    graph: in JSON, lowered for training. draws: whether it draws random numbers. programs, onward:
    of its derivatives, by the inputs that require gradients: from the inputs, and from what the
    forward of the graph below has saved (`through_saved.py`). exposes: whether that forward is to
    show autograd what it saves.
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
        """Whether there is this graph of gradients, or there are fewer than `most` yet."""
        return derivative in self._above or len(self._above) < most

    def higher(self) -> Iterator[tuple[int, Any]]:
        """The programs of the derivatives of second and higher order, each with its order."""
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
    ) -> list[torch.Tensor | None]:
        """Its results in PyTorch's ops; a gradient that autograd does not know is None. held: in
        the place of results of the graph that is differentiated, by number."""
        if self.below is None:
            if self._document is None:
                self._document = json.loads(self.graph)
            outputs = self._document["outputs"]
            values = interpreter.run_nodes(
                self._document,
                inputs,
                double=double,
                held={outputs[number]["value"]: each for number, each in (held or {}).items()},
            )
            return [values[output["value"]] for output in self._document["outputs"]]
        assert not held, "only of the graph itself"
        last = self.derivatives[-1]
        count = len(inputs) - len(last.results)
        cotangents = dict(zip(last.results, inputs[count:], strict=True))
        return self.below.gradients(
            inputs[:count], cotangents, last.wrt, double=double, create_graph=True
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
    ) -> list[torch.Tensor | None]:
        """Of its meaning, by PyTorch's autograd. double: floats of every width are float64. held:
        results that others are computed of, which have their gradients behind those of `wrt`.
        in_the_forward: inputs that were others then, in memory of their own; the derivative reads
        them as they are now. moved: inputs in the memory that they were given since, which what has
        saved them themselves reads."""
        with torch.enable_grad():
            # Of their own: one input may have been computed from another.
            seen = [_widened(each, double) for each in inputs]
            apart = {*wrt, *(moved or ())}
            seen = [_leaf(each, n in wrt) if n in apart else each for n, each in enumerate(seen)]
            own = {number: _leaf(each) for number, each in (held or {}).items()}
            leaves = [*(seen[number] for number in wrt), *own.values()]
            now = {number: seen[number] for number in in_the_forward or ()}
            for number, then in (in_the_forward or {}).items():
                seen[number] = then
            with _drawn_once(seen) if self.draws else contextlib.nullcontext():
                values = self.evaluate(seen, double=double, held=own)
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


# Within it, writes to a tensor are no step of its version.
_uncounted = torch.autograd._unsafe_preserve_version_counter


@contextlib.contextmanager
def _drawn_once(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Random numbers among ops of these tensors, unless they stand for many: in a vmap over
    cotangents alone they are those of the forward for all of them."""
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
    """Whether it stands for many tensors, as within a vmap, or is of a subclass."""
    if tensor is None:
        return False
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return True
    functorch = torch._C._functorch
    return functorch.is_functorch_wrapped_tensor(tensor) or functorch.is_legacy_batchedtensor(
        tensor
    )


def _leaf(tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
    """One of its own, connected with what the caller knows of it."""
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_(requires_grad)


def _widened(tensor: torch.Tensor, double: bool) -> torch.Tensor:
    return tensor.double() if double and tensor.is_floating_point() else tensor
