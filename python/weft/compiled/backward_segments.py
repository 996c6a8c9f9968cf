# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients in segments, for code that uses the first ones while the rest is computed, such as the
reducer of DistributedDataParallel, which sends a bucket once its gradients are there.

A call is then a chain of nodes of autograd, one for each segment of the backward program. Each node
leads to the inputs of its segment and, by a tensor without elements, to the next node. In
autograd's queue the nodes that accumulate gradients come before all others, so that their hooks run
between the segments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from weft.artifacts.builds import Options
from weft.compiled.gradient_order import in_segments
from weft.compiled.gradient_values import compare_values
from weft.compiled.verification import Differs
from weft.gradients.derivative_program import Half
from weft.gradients.saved import Reads, reads_of, unchanged

# Smaller segments than a reducer's buckets of 25 MB gain little, and more segments would separate
# kernels that are fused otherwise.
_BYTES = 4 << 20
_FEWEST, _MOST = 2, 6
Read = tuple[str, int]


def are_awaited(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether something waits for the gradients of single tensors."""
    parallel = sys.modules.get("torch.nn.parallel.distributed")
    if parallel is not None:
        reducing = parallel.DistributedDataParallel._active_ddp_module
        if reducing is not None and reducing.require_backward_grad_sync:
            return True
    return any(each._post_accumulate_grad_hooks for each in tensors)


@dataclass
class Segments:
    """The programs of a backward's segments.

    numbers: for each segment, the inputs of the graph in the order in which it gives their
    gradients. places: their places among all gradients. reads: the arguments of each program.
    first_carried: for each program, the number of the first carried value that follows its
    gradients. last_reading: for each argument, the last segment that reads it. reason: why the
    backward is run as a whole, or None.
    """

    numbers: list[tuple[int, ...]]
    places: list[list[int]]
    halves: list[Half] = field(default_factory=list)
    reads: list[Reads] = field(default_factory=list)
    first_carried: list[int] = field(default_factory=list)
    last_reading: dict[Read, int] = field(default_factory=dict)
    compared: bool = False
    reason: str | None = None

    @staticmethod
    def of(
        graph: bytes,
        wrt: Sequence[int],
        inputs: Sequence[torch.Tensor],
        options: Callable[[str], Options],
    ) -> Segments:
        """The compiled segments. options: gives the options of a program by its role. Raises:
        errors.CompileError."""
        sizes = [inputs[number].nbytes for number in wrt]
        count = min(max(sum(sizes) // _BYTES, _FEWEST), _MOST)
        numbers = in_segments(json.loads(graph), wrt, sizes, count)
        places = [[wrt.index(number) for number in segment] for segment in numbers]
        made = Segments(numbers, places)
        groups = [next(n for n, each in enumerate(numbers) if x in each) for x in wrt]
        carried = 0
        for number, segment in enumerate(numbers):
            half = Half(graph, options(f"segment {number} by {','.join(map(str, groups))}"))
            made.halves.append(half)
            made.reads.append(reads_of(half.manifest))
            made.first_carried.append(carried)
            made.last_reading.update(dict.fromkeys(made.reads[-1], number))
            carried += len(half.manifest["entries"]["main"]["results"]) - len(segment)
        return made

    def compare(
        self,
        given: dict[Read, torch.Tensor],
        whole: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
    ) -> None:
        """Compares the segments' gradients with those of the whole backward. given: the arguments
        of that."""
        run = InSegments(self, {**given}, [True] * len(whole))
        own: list[Any] = [None] * len(whole)
        for number, places in enumerate(self.places):
            for place, gradient in zip(places, run.part(number), strict=True):
                own[place] = gradient
        try:
            compare_values(whole, own, lambda: None, cotangents)
        except Differs as why:
            self.reason = f"in segments {why}"
        self.compared = True


class Gradients(Protocol):
    """The gradients of one backward."""

    def part(self, segment: int) -> list[torch.Tensor | None]: ...


@dataclass
class AsAWhole:
    """Gradients that have all been computed."""

    segments: Segments
    gradients: Sequence[torch.Tensor | None]

    def part(self, segment: int) -> list[torch.Tensor | None]:
        return [self.gradients[place] for place in self.segments.places[segment]]


@dataclass
class InSegments:
    """Gradients that are computed segment by segment. given: the arguments of the programs, each
    kept until the last program that reads it. reached: which gradients autograd would give.
    versions: of the arguments, since hooks that run between segments may change these."""

    segments: Segments
    given: dict[Read, torch.Tensor]
    reached: Sequence[bool]
    versions: dict[Read, int] = field(init=False)

    def __post_init__(self) -> None:
        self.versions = {read: each._version for read, each in self.given.items()}

    def part(self, segment: int) -> list[torch.Tensor | None]:
        """The gradients of one segment, in their order. Raises: RuntimeError, PyTorch's, if an
        argument has been changed."""
        segments, places = self.segments, self.segments.places[segment]
        for read in segments.reads[segment]:
            if read in self.versions:
                unchanged(self.given[read], self.versions[read])
        results = segments.halves[segment].run([self.given[r] for r in segments.reads[segment]])
        first = segments.first_carried[segment]
        for number, each in enumerate(results[len(places) :]):
            self.given["carried", first + number] = each
        self.given = {
            read: each
            for read, each in self.given.items()
            if segments.last_reading.get(read, -1) > segment
        }
        gradients = dict(zip(sorted(places), results))
        return [gradients[place] if self.reached[place] else None for place in places]


class Chain:
    """The nodes of one call. The first one is the node of the call itself."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self._runs: dict[int, Gradients] = {}  # by the task of autograd's engine

    def tensors(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors that the first node depends on. inputs: of the graph."""
        link: list[torch.Tensor] = []
        for number, segment in reversed([*enumerate(self.segments.numbers)]):
            tensors = [*(inputs[each] for each in segment), *link]
            if number == 0:
                return tensors
            link = [_Link.apply(self, number, *tensors)]
        raise AssertionError("a chain without segments")

    def begin(self, gradients: Gradients) -> tuple[torch.Tensor | None, ...]:
        """The gradients that the first node gives."""
        while len(self._runs) >= _MOST:  # those of backwards that have not reached all nodes
            del self._runs[next(iter(self._runs))]
        self._runs[torch._C._current_graph_task_id()] = gradients
        return self.go_on(0)

    def go_on(self, segment: int) -> tuple[torch.Tensor | None, ...]:
        task = torch._C._current_graph_task_id()
        own = self._runs[task].part(segment)
        if segment + 1 < len(self.segments.numbers):
            return *own, torch.empty(0)
        del self._runs[task]
        return tuple(own)

    def edges(self, first: Any, wrt: Sequence[int]) -> list[Any]:
        """The node of autograd for each input of `wrt`. first: the first node of the chain."""
        node, found = first, {}
        for segment in self.segments.numbers:
            following = [each for each, _ in node.next_functions]
            found.update(zip(segment, following))
            node = following[-1]
        return [found[number] for number in wrt]


class _Link(torch.autograd.Function):
    """The node of a segment after the first one."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, segment: int, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.chain, ctx.segment = chain, segment
        return torch.empty(0)

    @staticmethod
    def backward(ctx: Any, link: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, None, *ctx.chain.go_on(ctx.segment)
