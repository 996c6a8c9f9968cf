# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays of an observed call, from the state that was there before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from weft.errors import CaptureError
from weft.frontend.inplace import may_write_unsaid
from weft.observe.graph import LoggedGraph
from weft.observe.records import tensors_from_outside
from weft.observe.sameness import difference
from weft.observe.snapshot import Entry, Memory

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
    """An observed call. ahead: snapshots, made before the call, of what it has written. generators:
    torch's random state before the call. value: its result. unsaid: collects the names of operators
    that were found to write to something that their schemas do not name. draws: whether it has
    changed the random state, which other threads draw from, too: otherwise that is let alone."""

    args: tuple
    kwargs: dict[str, Any]
    ahead: list[Memory | Entry]
    generators: torch.Tensor
    value: Any
    unsaid: list[str] = field(default_factory=list)
    draws: bool = field(init=False)

    def __post_init__(self) -> None:
        draws = not torch.equal(self.generators, torch.get_rng_state())
        object.__setattr__(self, "draws", draws)

    @contextlib.contextmanager
    def as_ahead(self, program: Any) -> Iterator[list[Any]]:
        """Within this context everything that the call has written is as it was before the call;
        afterwards it is again as the call left it. This includes what operators write without
        naming it. Yields a list that is filled with snapshots at the end of the context."""
        tensors = tuple(each.tensor for each in self.ahead if isinstance(each, Memory))
        left, generators_left = self.now(), torch.get_rng_state()
        grad = torch.is_grad_enabled()
        at_end: list[Any] = []
        with torch.autograd._unsafe_preserve_version_counter(tensors):
            for each in reversed(self.ahead):
                each.restore()
            if self.draws:
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
                for each in reversed(left):
                    each.restore()
                if self.draws:
                    torch.set_rng_state(generators_left)
                torch._C._set_grad_enabled(grad)

    def _taken_by_unknown(self, program: Any) -> list[tuple[str, Memory]]:
        """The memory of tensors from outside that is passed to operators of which it is not known
        whether they write only to what they name."""
        registers = program.registers(self.args, self.kwargs) or []
        taken = []
        for function, arguments, *_ in program.records():
            name = str(function)
            if isinstance(function, _OPERATORS) and may_write_unsaid(name):
                for tensor in tensors_from_outside(arguments, registers):
                    taken.append((name, Memory(tensor)))
        return taken

    def now(self) -> list[Any]:
        """Snapshots of the same places as they are now."""
        return [each.again() for each in self.ahead]


def registers_of(program: Any, call: ObservedCall) -> list[Any]:
    """The values that the program's guards load from the call, with everything as it was before the
    call. Raises: CaptureError, if the guards do not hold."""
    found: list[Any] | None = program.registers(call.args, call.kwargs)
    if found is None:
        raise CaptureError("changes what it has read")
    return found


def fault_of_replay(program: Any, call: ObservedCall) -> str | None:
    """Why a replay of the call from the state before it fails, or None. Everything is left as the
    call has left it."""
    generators_left = torch.get_rng_state()
    left = call.now()
    with call.as_ahead(program) as replayed:
        missed = program.why_miss(call.args, call.kwargs)
        found = None if missed else program.dry_run(call.args, call.kwargs)
        same_numbers = torch.equal(torch.get_rng_state(), generators_left)
    if missed is not None:
        return f"changes what it has read: {missed}"
    if call.unsaid:
        return f"{call.unsaid[0]} writes to what its schema does not name"
    if not found:
        return "an operation gives another result when it is run again"
    if not same_numbers:
        return "takes other random numbers when it is run again"
    if not all(x.agrees(y) for x, y in zip(left, replayed)):
        return "writes something else when it is run again"
    return difference(call.value, found[0])


def fault_of_graph(program: Any, graph: LoggedGraph, call: ObservedCall) -> str | None:
    """As `fault_of_replay`, for the graph of the program's log, which torch's operations run."""
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
        fault = fault_of_replay(program, call)
    finally:
        program.detach()
    return f"{type(failed[0]).__name__}: {failed[0]}" if failed else fault


def fault_of_compiled(program: Any, call: ObservedCall, tolerance: float) -> str | None:
    """As `fault_of_replay`, for compiled code that has been attached to the program."""
    left = call.now()
    with call.as_ahead(program) as made:
        found = program.dry_run(call.args, call.kwargs)
    if not found:
        return "a value that depends on data comes out otherwise"
    if not all(x.agrees(y, tolerance) for x, y in zip(left, made)):
        return "it writes something else"
    return difference(call.value, found[0], tolerance=tolerance)
