# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the forward of an autograd function keeps for its backward.

What the backward program reads goes through autograd, which watches it, frees it and gives it to
the hooks of saved tensors. What only a further derivative would read is held beside, with its
version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

# What a backward program takes, as (kind, number): an "input" of its graph, a "result" of it, a
# "saved" value, or the "gradient" of a result.
Reads = list[tuple[str, int]]


def reads_of(manifest: dict[str, Any]) -> Reads:
    """manifest: of a backward program."""
    names = [argument["name"] for argument in manifest["entries"]["main"]["arguments"]]
    return [(kind, int(number)) for kind, number in (name.split() for name in names)]


def save(
    ctx: Any,
    reads: Reads,
    inputs: Sequence[torch.Tensor],
    results: Sequence[torch.Tensor],
    count: int,
) -> None:
    """inputs: of the graph. results: of the forward program, of which the first `count` are the
    graph's and the others saved values."""
    kept = []
    for kind, number in reads:
        match kind:
            case "input":
                kept.append(inputs[number])
            case "result":
                kept.append(results[number])
            case "saved":
                kept.append(results[number + count])
    ctx.save_for_backward(*kept)
    read = {number for kind, number in reads if kind == "input"}
    ctx.others = {n: (each, each._version) for n, each in enumerate(inputs) if n not in read}


def paired(ctx: Any, reads: Reads) -> Iterator[tuple[tuple[str, int], torch.Tensor | None]]:
    """Each read with its tensor, None for cotangents, which come last."""
    kept = ctx.saved_tensors
    return zip(reads, (*kept, *[None] * (len(reads) - len(kept))), strict=True)


def inputs_of(ctx: Any, reads: Reads) -> list[torch.Tensor]:
    """All inputs of the graph.

    Raises: RuntimeError, PyTorch's, if one of those held beside has changed since.
    """
    inputs = {number: tensor for (kind, number), tensor in paired(ctx, reads) if kind == "input"}
    for number, (tensor, version) in ctx.others.items():
        if tensor._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: [{tensor.type()} {list(tensor.shape)}] is at version "
                f"{tensor._version}; expected version {version} instead"
            )
        inputs[number] = tensor
    return [inputs[number] for number in range(len(inputs))]


@contextlib.contextmanager
def random_state(state: torch.Tensor | None) -> Iterator[None]:
    """PyTorch draws from `state` within, and goes on as before afterwards; None changes nothing."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield
