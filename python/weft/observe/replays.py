# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays of an observed call from what was there ahead of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from weft.observe.sameness import difference
from weft.observe.snapshot import Entry, Memory


class Surroundings:
    """torch's settings of a moment that decide what a program sees."""

    def __init__(self) -> None:
        self._guard = torch._C._dynamo.guards.GlobalStateGuard()
        self._inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()

    def settings(self) -> tuple[Any, ...]:
        """Functions in C that ask for the same, each with what it has to give behind it."""
        return self._guard.check, True, torch.is_inference_mode_enabled, self._inference

    def restore(self) -> None:
        """Puts back what a replay may have set that did not come to its end."""
        torch._C._set_grad_enabled(self._grad)

    def hold(self) -> bool:
        return (
            self._guard.check()
            and torch.is_inference_mode_enabled() == self._inference
            and torch.is_grad_enabled() == self._grad
        )


@contextlib.contextmanager
def as_ahead(ahead: list[Memory | Entry], generators: torch.Tensor) -> Iterator[list[Any]]:
    """What an observed call has written is as it was ahead of it, and behind the block again as it
    was left. ahead: snapshots. Gives a list that gets what is there when the block ends."""
    tensors = tuple(each.tensor for each in ahead if isinstance(each, Memory))
    left, generators_left = [each.again() for each in ahead], torch.get_rng_state()
    grad = torch.is_grad_enabled()
    at_end: list[Any] = []
    with torch.autograd._unsafe_preserve_version_counter(tensors):
        for each in reversed(ahead):
            each.restore()
        torch.set_rng_state(generators)
        try:
            yield at_end
            at_end += [each.again() for each in ahead]
        finally:
            for each in reversed(left):
                each.restore()
            torch.set_rng_state(generators_left)
            torch._C._set_grad_enabled(grad)


def fault_of_replay(
    program: Any,
    ahead: list[Memory | Entry],
    generators: torch.Tensor,
    value: Any,
    args: tuple,
    kwargs: dict[str, Any],
) -> str | None:
    """Replays the call from what was there ahead of it; leaves what the call has left."""
    generators_left = torch.get_rng_state()
    left = [each.again() for each in ahead]
    with as_ahead(ahead, generators) as replayed:
        missed = program.why_miss(args, kwargs)
        found = None if missed else program.rehearse(args, kwargs)
        same_numbers = torch.equal(torch.get_rng_state(), generators_left)
    if missed is not None:
        return f"changes what it has read: {missed}"
    if not found:
        return "an operation gives another result when it is run again"
    if not same_numbers:
        return "takes other random numbers when it is run again"
    if not all(x.agrees(y) for x, y in zip(left, replayed)):
        return "writes something else when it is run again"
    return difference(value, found[0])


def fault_of_compiled(
    program: Any,
    ahead: list[Memory | Entry],
    generators: torch.Tensor,
    value: Any,
    args: tuple,
    kwargs: dict[str, Any],
    tolerance: float,
) -> str | None:
    """The same of compiled code that has been attached to the program."""
    left = [each.again() for each in ahead]
    with as_ahead(ahead, generators) as made:
        found = program.rehearse(args, kwargs)
    if not found:
        return "a value that depends on data comes out otherwise"
    if not all(x.is_near(y, tolerance) for x, y in zip(left, made)):
        return "it writes something else"
    return difference(value, found[0], tolerance=tolerance)
