# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph, its gradients, which are a graph again, and so on to any order.

What each of them means PyTorch can say in its own ops, and differentiate. The programs are those of
`derivative_program.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

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
        self, inputs: Sequence[torch.Tensor], *, double: bool = False
    ) -> list[torch.Tensor | None]:
        """Its results in PyTorch's ops; a gradient that autograd does not know is None."""
        if self.below is None:
            if self._document is None:
                self._document = json.loads(self.graph)
            values = interpreter.run_nodes(self._document, inputs, double=double)
            return [values[output["value"]] for output in self._document["outputs"]]
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
    ) -> list[torch.Tensor | None]:
        """Of its meaning, by PyTorch's autograd. double: floats of every width are float64.
        in_the_forward: inputs that were others then, in memory of their own; the derivative reads
        them as they are now."""
        with torch.enable_grad():
            # Of their own: one input may have been computed from another.
            seen = [_widened(each, double) for each in inputs]
            seen = [_leaf(each) if n in wrt else each for n, each in enumerate(seen)]
            leaves = [seen[number] for number in wrt]
            now = {number: seen[number] for number in in_the_forward or ()}
            for number, then in (in_the_forward or {}).items():
                seen[number] = then
            values = self.evaluate(seen, double=double)
            reached = [
                (values[number], given)
                for number, given in cotangents.items()
                if given is not None and values[number] is not None and values[number].requires_grad
            ]
            if not reached:
                return [None] * len(leaves)
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


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    """One that requires gradients, connected with what the caller knows of it."""
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_()


def _widened(tensor: torch.Tensor, double: bool) -> torch.Tensor:
    return tensor.double() if double and tensor.is_floating_point() else tensor
