# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the forward of an autograd function keeps for its backward.

What the backward program reads goes through autograd, which watches it, frees it and gives it to
the hooks of saved tensors. What only a further derivative would read is held beside, with its
version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# What a backward program takes, as (kind, number): an "input" of its graph, a "result" of it, a
# "saved" value, or the "gradient" of a result.
Reads = list[tuple[str, int]]


def reads_of(manifest: dict[str, Any]) -> Reads:
    """manifest: of a backward program."""
    names = [argument["name"] for argument in manifest["entries"]["main"]["arguments"]]
    return [(kind, int(number)) for kind, number in (name.split() for name in names)]


@dataclass(frozen=True)
class Kept:
    """What of a call goes through autograd: of the inputs or else of the forward program's results,
    by number. beside: inputs that do not."""

    through: tuple[tuple[bool, int], ...]
    beside: tuple[int, ...]

    @staticmethod
    def of(reads: Reads, inputs: int, results: int) -> Kept:
        """inputs, results: of the graph, how many; saved values follow the results."""
        places = {"input": (True, 0), "result": (False, 0), "saved": (False, results)}
        through = tuple(
            (places[kind][0], number + places[kind][1])
            for kind, number in reads
            if kind != "gradient"
        )
        beside = tuple(number for number in range(inputs) if (True, number) not in through)
        return Kept(through, beside)

    def save(
        self, ctx: Any, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
    ) -> None:
        """inputs: of the graph. results: of the forward program."""
        ctx.save_for_backward(
            *[(inputs if is_input else results)[number] for is_input, number in self.through]
        )
        ctx.others = [(number, inputs[number], inputs[number]._version) for number in self.beside]


def paired(ctx: Any, reads: Reads) -> dict[tuple[str, int], torch.Tensor | None]:
    """Each read with its tensor, None for cotangents, which come last. Once in a backward: a
    checkpoint gives what is saved no second time."""
    is_any = any(kind != "gradient" for kind, _ in reads)
    kept = ctx.saved_tensors if is_any else ()  # which raises after a first backward
    return dict(zip(reads, (*kept, *[None] * (len(reads) - len(kept))), strict=True))


def paired_once(ctx: Any, reads: Reads) -> dict[tuple[str, int], torch.Tensor | None]:
    """The same for all who ask in the backward that is going on. ctx.paired: what `paired` has
    given, and in which backward; the last one to ask sets it to None."""
    task = torch._C._current_graph_task_id()
    if ctx.paired is None or ctx.paired[0] != task:
        ctx.paired = task, paired(ctx, reads)
    return ctx.paired[1]


def inputs_of(ctx: Any, kept: Mapping[tuple[str, int], torch.Tensor | None]) -> list[torch.Tensor]:
    """All inputs of the graph. kept: what `paired` has given.

    Raises: RuntimeError, PyTorch's, if one of those held beside has changed since.
    """
    inputs = {number: tensor for (kind, number), tensor in kept.items() if kind == "input"}
    for number, tensor, version in ctx.others:
        inputs[number] = unchanged(tensor, version)
    return [inputs[number] for number in range(len(inputs))]


def unchanged(tensor: torch.Tensor, version: int) -> torch.Tensor:
    """Itself. Raises: RuntimeError, PyTorch's, if it has been changed since it had this version."""
    if tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an "
            f"inplace operation: [{tensor.type()} {list(tensor.shape)}] is at version "
            f"{tensor._version}; expected version {version} instead"
        )
    return tensor


@contextlib.contextmanager
def random_state(state: torch.Tensor | None) -> Iterator[None]:
    """PyTorch draws from `state` within, and goes on as before afterwards; None changes nothing."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield
