# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays of an observed call, from the state that was there before it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from weft.errors import CaptureError
from weft.frontend.inplace import may_write_unsaid
from weft.observe import other_threads
from weft.observe.graph import LoggedGraph, graph_of
from weft.observe.records import tensors_from_outside
from weft.observe.sameness import difference
from weft.observe.snapshot import (
    Data,
    Entry,
    Gradient,
    Memory,
    RequiresGradient,
    containers_of,
)
from weft.observe.trials import in_child

T = TypeVar("T")
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


class Surroundings:
    """The current settings of torch that influence what a program does."""

    def __init__(self) -> None:
        self._guard = torch._C._dynamo.guards.GlobalStateGuard()
        self._inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()

    def settings(self) -> tuple[Any, ...]:
        """Functions in C that ask for these settings, each followed by the expected answer."""
        return self._guard.check, True, torch.is_inference_mode_enabled, self._inference

    def restore(self) -> None:
        """Puts back settings that a replay may have changed before it was broken off."""
        torch._C._set_grad_enabled(self._grad)

    def hold(self) -> bool:
        return (
            self._guard.check()
            and torch.is_inference_mode_enabled() == self._inference
            and torch.is_grad_enabled() == self._grad
        )


@dataclass(frozen=True)
class ObservedCall:
    """An observed call, directly after it.

    registers: what the guards of its program load, as the call has found it. ahead: snapshots, made
    before the call, of what it has written. generators: torch's random state before the call.
    value: its result. left, generators_left: as `ahead` and `generators`, after the call. apart:
    whether other threads live, which must not see a repetition of the call. unsaid: collects the
    names of operators that were found to write to something that their schemas do not name.
    """

    args: tuple
    kwargs: dict[str, Any]
    registers: list[Any]
    ahead: list[Memory | Entry]
    generators: torch.Tensor
    value: Any
    left: list[Any]
    generators_left: torch.Tensor
    apart: bool
    unsaid: list[str] = field(default_factory=list)

    @staticmethod
    def of(
        program: Any, args: tuple, kwargs: dict[str, Any], generators: torch.Tensor, value: Any
    ) -> ObservedCall:
        """The call that the program has just been made of."""
        ahead = program.take_snapshots()
        left, generators_left = [each.again() for each in ahead], torch.get_rng_state()
        before = (program.take_registers(), ahead, generators, value)
        return ObservedCall(args, kwargs, *before, left, generators_left, other_threads.live())

    @property
    def draws(self) -> bool:
        """Whether the random state has changed meanwhile: by the call, or by another thread."""
        return not torch.equal(self.generators, self.generators_left)

    def try_out(self, function: Callable[[], T]) -> T:
        """`function()`, which repeats the call, where nobody sees it. What it returns has to
        pickle. Raises: Declined, as `in_child`."""
        return in_child(function) if self.apart else function()

    @contextlib.contextmanager
    def as_ahead(self, program: Any) -> Iterator[list[Any]]:
        """Within this context everything that the call has written is as it was before the call;
        afterwards it is again as the call left it. This includes what operators write without
        naming it. Yields a list that is filled with snapshots at the end of the context."""
        tensors = tuple(each.tensor for each in self.ahead if isinstance(each, Memory))
        grad = torch.is_grad_enabled()
        at_end: list[Any] = []
        with torch.autograd._unsafe_preserve_version_counter(tensors):
            for each in reversed(self.ahead):
                each.restore()
            if self.draws or self.apart:
                torch.set_rng_state(self.generators)
            taken = self._taken_by_unknown(program)
            try:
                yield at_end
                at_end += self.now()
            finally:
                for name, memory in taken:
                    if not memory.agrees(memory.again()):
                        memory.restore()
                        self.unsaid.append(name)
                for each in reversed(self.left):
                    each.restore()
                if self.draws:
                    torch.set_rng_state(self.generators_left)
                torch._C._set_grad_enabled(grad)

    def containers_ahead(self) -> dict[int, Any]:
        """By address, copies of the containers that the call has changed, as they were before."""
        return containers_of(self.ahead)

    @contextlib.contextmanager
    def for_compiling(self, program: Any) -> Iterator[None]:
        """Within this context a backend may compile the program, and run what it compiles: what
        this writes to memory is undone. Raises: CaptureError, if tensors are not as they were, and
        other threads would see it if they were."""
        if not self.apart:
            with self.as_ahead(program):
                yield
            return
        if any(isinstance(each, (Data, Gradient, RequiresGradient)) for each in self.ahead):
            raise CaptureError("the call sets properties of tensors, which other threads may read")
        memories = [each.again() for each in self.ahead if isinstance(each, Memory)]
        try:
            yield
        finally:
            for each in memories:
                if not each.agrees(each.again()):
                    each.restore()

    def _taken_by_unknown(self, program: Any) -> list[tuple[str, Memory]]:
        """The memory of tensors from outside that is passed to operators of which it is not known
        whether they write only to what they name."""
        taken = []
        for function, arguments, *_ in program.records():
            name = str(function)
            if isinstance(function, _OPERATORS) and may_write_unsaid(name):
                for tensor in tensors_from_outside(arguments, self.registers):
                    taken.append((name, Memory(tensor)))
        return taken

    def now(self) -> list[Any]:
        """Snapshots of the same places as they are now."""
        return [each.again() for each in self.ahead]


@dataclass(frozen=True)
class Replay:
    """What a replay has shown: why it fails, or None, and whether it draws from torch's
    generator."""

    fault: str | None
    draws: bool = False


def replay(program: Any, call: ObservedCall) -> Replay:
    """Repeats the call by its program, from the state before it. Everything is left as the call has
    left it."""
    with call.as_ahead(program) as replayed:
        missed = program.why_miss(call.args, call.kwargs)
        found = None if missed else program.dry_run(call.args, call.kwargs)
        generators = torch.get_rng_state()
    if missed is not None:
        return Replay(f"changes what it has read: {missed}")
    if call.unsaid:
        return Replay(f"{call.unsaid[0]} writes to what its schema does not name")
    if not found:
        return Replay("an operation gives another result when it is run again")
    draws = not torch.equal(generators, call.generators)
    drawn_by_others = call.apart and not draws
    if not drawn_by_others and not torch.equal(generators, call.generators_left):
        return Replay("takes other random numbers when it is run again")
    if not all(x.agrees(y) for x, y in zip(call.left, replayed)):
        return Replay("writes something else when it is run again")
    return Replay(difference(call.value, found[0]), draws)


def fault_of_graph(program: Any, graph: LoggedGraph, call: ObservedCall) -> str | None:
    """Why the graph of the program's log, which torch's operations run, does not give what the call
    gave, or None."""
    if call.apart:
        with call.as_ahead(program):
            again = graph_of(program, call.registers, {})
            if not graph.computes_as(again):
                return "it takes what has changed since the call began"
    failed: list[Exception] = []

    def run(*tensors: torch.Tensor) -> tuple:
        try:
            made: tuple = graph.module(*tensors)
        except Exception as error:  # after an error of the graph the log is replayed instead
            failed.append(error)
            raise
        return made

    graph.attach(program, run)
    try:
        fault = replay(program, call).fault
    finally:
        program.detach()
    return f"{type(failed[0]).__name__}: {failed[0]}" if failed else fault


def fault_of_compiled(program: Any, call: ObservedCall, tolerance: float) -> str | None:
    """As `fault_of_graph`, for compiled code that has been attached to the program."""
    with call.as_ahead(program) as made:
        found = program.dry_run(call.args, call.kwargs)
    if not found:
        return "a value that depends on data comes out otherwise"
    if not all(x.agrees(y, tolerance) for x, y in zip(call.left, made)):
        return "it writes something else"
    return difference(call.value, found[0], tolerance=tolerance)
