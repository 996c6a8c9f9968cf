# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the forward of an autograd function keeps for its backward.

Tensors that the backward program reads are saved through autograd, which checks that they do not
change, frees them, and hands them to the hooks of saved tensors. Tensors that only a further
derivative would read are kept on the context, with their version. For each input its memory at the
time of the call is kept as well, since the input may be given other memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.gradients.eager_saves import Saves
from weft.gradients.gradient_graph import is_wrapped

# The arguments of a backward program as (kind, number): an "input" of its graph, a "result" of it,
# a "saved" value, or the "gradient" of a result.
Reads = list[tuple[str, int]]
Paired = Mapping[tuple[str, int], torch.Tensor | None]


def reads_of(manifest: dict[str, Any]) -> Reads:
    """The arguments of a backward program, from its manifest."""
    names = [argument["name"] for argument in manifest["entries"]["main"]["arguments"]]
    return [(kind, int(number)) for kind, number in (name.split() for name in names)]


@dataclass(frozen=True)
class Kept:
    """Which tensors of a call are saved through autograd: numbers of inputs, and of the forward
    program's results. beside: the inputs that are not.

    These follow what eager execution saves. copied: those of `through` that eager execution does
    not save, so that the user may change them. watched: what eager execution saves besides
    `through`.
    """

    through: tuple[tuple[bool, int], ...]
    beside: tuple[int, ...]
    copied: frozenset[tuple[bool, int]] = frozenset()
    watched: tuple[tuple[bool, int], ...] = ()

    @staticmethod
    def of(
        reads: Reads,
        inputs: int,
        results: int,
        saves: Saves | None = None,
        changing: Container[int] = (),
    ) -> Kept:
        """inputs, results: the numbers of the graph's inputs and results; saved values follow the
        results. saves: what eager execution saves, if that is known. changing: inputs that are
        copied in each call."""
        places = {"input": (True, 0), "result": (False, 0), "saved": (False, results)}
        through = tuple(
            (places[kind][0], number + places[kind][1])
            for kind, number in reads
            if kind != "gradient"
        )
        beside = [number for number in range(inputs) if (True, number) not in through]
        if saves is None:
            return Kept(through, tuple(beside))
        copied = {
            (is_input, number)
            for is_input, number in through
            if not (
                (number in changing or saves.has(number))
                if is_input
                else (number >= results or number in saves.results)
            )
        }
        also = [(True, number) for number in beside if saves.has(number) and number not in changing]
        also += [(False, number) for number in saves.results if (False, number) not in through]
        also += [each for each in saves.unread if not (each[0] and each[1] in changing)]
        beside = sorted([*beside, *(number for is_input, number in copied if is_input)])
        return Kept(through, tuple(beside), frozenset(copied), tuple(also))

    def save(
        self,
        ctx: Any,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        *,
        connected: bool = False,
    ) -> None:
        """Saves the tensors of a call. inputs: of the graph. results: of the forward program.
        connected: whether autograd is to lead from saved results to the call."""
        kept = []
        for is_input, number in self.through:
            each = (inputs if is_input else results)[number]
            is_copied = (is_input, number) in self.copied and (is_input or not connected)
            kept.append(each.clone() if is_copied else each)
        ctx.kept, ctx.then, ctx.numbers = self, {}, ()
        ctx.others = [(number, inputs[number], inputs[number]._version) for number in self.beside]
        # Hooks are given the tensors themselves, whatever happens to these later.
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is None:
            numbers = {n for is_input, n in self.through if is_input} | {*self.beside}
            then = {n: inputs[n].data for n in numbers if _has_address(inputs[n])}
            if kept or self.watched:
                ctx.numbers = tuple(then)
                kept += [(inputs if is_input else results)[n] for is_input, n in self.watched]
                kept += then.values()
            else:
                ctx.then = then
        ctx.save_for_backward(*kept)


def paired(ctx: Any, reads: Reads) -> dict[tuple[str, int], torch.Tensor | None]:
    """Each argument of the backward program with its tensor, None for cotangents, which come last.
    It may be called once in a backward: a checkpoint gives what is saved only once."""
    kept: Kept = ctx.kept
    through = len(kept.through)
    # Reading this raises an error after a first backward, as it should.
    tensors = ctx.saved_tensors if through or kept.watched else ()
    if ctx.numbers:
        ctx.then = dict(zip(ctx.numbers, tensors[-len(ctx.numbers) :], strict=True))
    cotangents = [None] * (len(reads) - through)
    return dict(zip(reads, (*tensors[:through], *cotangents), strict=True))


def paired_once(ctx: Any, reads: Reads) -> dict[tuple[str, int], torch.Tensor | None]:
    """As `paired`, for all callers within the running backward. ctx.paired: the result of `paired`,
    and the backward that it belongs to; the last caller sets it to None."""
    task = torch._C._current_graph_task_id()
    if ctx.paired is None or ctx.paired[0] != task:
        ctx.paired = task, paired(ctx, reads)
    return ctx.paired[1]


def inputs_of(ctx: Any, kept: Paired) -> list[torch.Tensor]:
    """All inputs of the graph, in the memory that they had in the call. kept: the result of
    `paired`.

    Raises: RuntimeError, PyTorch's, if an input that is kept on the context has been changed since.
    """
    inputs = _inputs_now(ctx, kept)
    for _, tensor, version in ctx.others:
        unchanged(tensor, version)
    for number, then in moved(ctx, kept).items():
        inputs[number] = _AsItWas.apply(inputs[number], then)
    return [inputs[number] for number in range(len(inputs))]


def moved(ctx: Any, kept: Paired) -> dict[int, torch.Tensor]:
    """The inputs that have been given other memory since the call, by number, each in its old
    memory."""
    now = _inputs_now(ctx, kept)
    return {number: then for number, then in ctx.then.items() if is_moved(now[number], then)}


def moved_to(ctx: Any, kept: Paired, saves: Saves | None) -> dict[int, torch.Tensor]:
    """The saved tensors that autograd would read in their new memory, as they are now."""
    now = _inputs_now(ctx, kept)
    return {n: now[n] for n in moved(ctx, kept) if reads_anew(ctx.kept, saves, n)}


def reads_anew(kept: Kept, saves: Saves | None, number: int) -> bool:
    """Whether autograd would read an input in the memory that it has been given since the call,
    while the program reads the old memory."""
    if saves is None:
        return True
    is_read = (True, number) in kept.through and number not in saves.views
    return number in saves.itself and not is_read


def as_read(ctx: Any, kept: Paired, saves: Saves | None) -> dict[tuple[str, int], Any]:
    """`kept`, with tensors replaced so that the program reads the memory that autograd would
    read."""
    then = {
        ("input", number): each
        for number, each in moved(ctx, kept).items()
        if (True, number) not in ctx.kept.copied and (saves is None or number not in saves.itself)
    }
    return {read: then.get(read, each) for read, each in kept.items()}


def _inputs_now(ctx: Any, kept: Paired) -> dict[int, torch.Tensor]:
    inputs = {number: tensor for (kind, number), tensor in kept.items() if kind == "input"}
    inputs.update((number, tensor) for number, tensor, _ in ctx.others)
    return inputs


def is_moved(tensor: torch.Tensor, then: torch.Tensor) -> bool:
    """Whether the tensor has been given other memory."""
    return not (
        tensor.data_ptr() == then.data_ptr()
        and tensor.dtype is then.dtype
        and tensor.shape == then.shape
        and tensor.stride() == then.stride()
    )


def _has_address(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not is_wrapped(tensor)


class _AsItWas(torch.autograd.Function):
    """A function of autograd: a tensor in the memory that it had before."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, then: torch.Tensor) -> torch.Tensor:
        return then.detach()

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor, None]:
        return cotangent, None


def unchanged(tensor: torch.Tensor, version: int) -> torch.Tensor:
    """The tensor itself. Raises: RuntimeError, PyTorch's, if it has been changed since this
    version."""
    if tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an "
            f"inplace operation: [{tensor.type()} {list(tensor.shape)}] is at version "
            f"{tensor._version}; expected version {version} instead"
        )
    return tensor


@contextlib.contextmanager
def random_state(state: torch.Tensor | None) -> Iterator[None]:
    """Within this context PyTorch draws from `state`, and its own state is put back afterwards.
    None changes nothing."""
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield
