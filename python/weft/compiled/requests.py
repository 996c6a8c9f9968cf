# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that need a program, the states in which they are made, and the programs that are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from weft import _core
from weft.capture.argument_objects import NO_COUNTERS, Counters
from weft.capture.reachability import References
from weft.capture.signature import Signature
from weft.capture.snapshots import Snapshot
from weft.compiled.sizes import Wanted
from weft.compiled.specialize import Specialized
from weft.frontend.numbers import NO_NUMBERS, WantedNumbers

if TYPE_CHECKING:
    from weft.compiled.new_sizes import NewSizes
    from weft.compiled.ranges import RangeProgram


@dataclass
class Environment:
    """One state of torch and of the target, with the programs made in it. may_pass: whether it was
    reached through hooks, which may be gone after this call. settings: of torch, in this state."""

    core: _core.Environment
    state: Snapshot
    specializations: list[Specialized] = field(default_factory=list)
    ranges: list[RangeProgram] = field(default_factory=list)
    may_pass: bool = False
    settings: Any = field(default_factory=torch._C._dynamo.guards.GlobalStateGuard)

    def all(self) -> list[Specialized]:
        """All programs of the state, those for ranges of sizes last."""
        return [*self.specializations, *(each.specialized for each in self.ranges)]


@dataclass
class Found:
    """What is to run a call, and in which state."""

    specialized: Specialized
    environment: Environment
    signature: Signature


@dataclass
class Request:
    """A call without a program, and the state in which it was made.

    gradients: whether it records them. wanted: the sizes that are to be symbols. narrower: those
    that are to be symbols if `wanted` is not possible. kind: equal for calls that differ only in
    sizes. least: the least size that is to be a symbol. new_sizes: for an existing program with
    loops. numbers: those that are to be inputs of the program.
    counters: attributes of objects that are sizes.
    """

    args: tuple
    kwargs: dict[str, Any]
    signature: Signature
    references: References
    state: Snapshot
    environment: Environment
    gradients: bool
    wanted: Wanted = field(default_factory=dict)
    narrower: Wanted = field(default_factory=dict)
    kind: Any = None
    least: int = 0
    new_sizes: NewSizes | None = None
    numbers: WantedNumbers = NO_NUMBERS
    counters: Counters = NO_COUNTERS


class FillsObject(Exception):
    """The call fills an object among its arguments, such as a cache, with as much as it is given,
    and is to be looked up again: it may have a program for a range of sizes now."""


def wants_gradients(signature: Signature, state: Snapshot) -> bool:
    """Whether the call records gradients."""
    return records_gradients() and any(
        tensor.requires_grad for tensor in (*signature.examples, *state.gradients)
    )


def records_gradients() -> bool:
    """Whether autograd records ops on this thread. In inference mode it does not, even within
    `torch.enable_grad`."""
    return torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def none_has_gradients(programs: list[Specialized]) -> bool:
    """Whether there have been calls with gradients that PyTorch has to run."""
    wanting = [each for each in programs if each.wants_gradients]
    return bool(wanting) and all(each.build is None for each in wanting)


def is_whole(program: Specialized | RangeProgram) -> bool:
    """Whether the program is usable: not one that lacks a backward which is wanted."""
    return program.training is None or not program.training.asked
