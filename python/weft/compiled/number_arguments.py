# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain numbers among the arguments and attributes: which of them are inputs of programs, and which
are constants.

A number becomes an input of the next program once a second value of it occurs, and Python still
computes with it (frontend/numbers.py). If such a program can only stand for one value, for example
because a size depends on it, there is a program for each value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from weft import errors
from weft.capture.isolated import Abandoned
from weft.capture.reachability import References
from weft.capture.signature import (
    ChangesArgument,
    Declined,
    HasEffects,
    Heard,
    Read,
    Signature,
    describe,
)
from weft.capture.snapshots import Snapshot
from weft.capture.state import snapshot
from weft.compiled.requests import Environment, Found, Request
from weft.compiled.specialize import Specialized, declined
from weft.frontend.numbers import (
    NumberInputs,
    Owner,
    WantedNumbers,
    can_be_taken,
    is_same,
)

if TYPE_CHECKING:
    from weft.compiled.programs import Programs

_MOST_KINDS = 256
# The number of latest calls of each kind whose numbers are kept.
_MOST_SEEN = 4


class NumbersFixed(Declined):
    """A program that was to have numbers as inputs stands for one value of these leaves. Without
    leaves: the call's numbers are not such that they can be inputs."""

    def __init__(self, leaves: frozenset[int], reason: str) -> None:
        super().__init__(reason)
        self.leaves = leaves


class TakenNumbers:
    """The numbers of a call that are inputs of a program."""

    def __init__(self, inputs: NumberInputs, wanted: WantedNumbers) -> None:
        self.inputs = inputs
        self.wanted = wanted
        self.function = inputs.function(wanted.attributes)

    @staticmethod
    def of(inputs: NumberInputs | None, request: Request) -> TakenNumbers | None:
        """The inputs; None for a program without such inputs. Raises: NumbersFixed, if the program
        is only for constants."""
        if inputs is None or not inputs.matters:
            return None
        if inputs.fixed >= set(inputs.leaves):
            raise NumbersFixed(inputs.fixed, inputs.told())
        made = TakenNumbers(inputs, request.numbers)
        if inputs.take(request.signature.leaves, made.function) is None:
            raise NumbersFixed(frozenset(), "a number is none that elements can hold")
        return made

    def tensor(self, leaves: Sequence[Any]) -> torch.Tensor:
        """The buffer with the numbers of a call that the program stands for. leaves: of its
        arguments."""
        return torch.tensor(self.inputs.take(leaves, self.function), dtype=torch.float64)

    def described(self, args: tuple, kwargs: dict[str, Any], read: Read | None = None) -> Signature:
        """The pattern of the program's calls, of which this is one."""
        given = self.tensor(describe(args, kwargs).leaves)
        signature = describe(args, kwargs, read, numbers=self.inputs.arguments, given=given)
        signature.take = self.function
        return signature


@dataclass
class VaryingNumbers:
    """The numbers of one callable that vary. Numbers are identified by the kind of call and the
    leaf, attributes by their dict and name.

    are_inputs: whether numbers may be inputs of programs. with_objects: whether attributes may once
    calls have objects among their arguments, whose sizes vary in any case: a model may note such a
    size, as that of the cache that it has made last. from_first: whether arguments may be at their
    first values already; programs are then also compared at values that are made up. seen: the
    numbers of the latest calls without a program, by kind and leaf. counts: how many of these
    differed from earlier ones, by kind. latest: the attributes of the latest state. before: earlier
    values of those that have changed. varying: numbers with two or more values. fixed: those of
    them that are nevertheless part of the pattern or state. taken: those that are inputs of
    programs. reasons: why others are fixed.
    """

    are_inputs: bool = True
    with_objects: bool = True
    from_first: bool = False
    seen: dict[Hashable, list[dict[int, Any]]] = field(default_factory=dict)
    counts: Counter[Hashable] = field(default_factory=Counter)
    latest: dict[Hashable, tuple[Owner, Any]] = field(default_factory=dict)
    before: dict[Hashable, Any] = field(default_factory=dict)
    varying: set[Hashable] = field(default_factory=set)
    fixed: set[Hashable] = field(default_factory=set)
    taken: set[Hashable] = field(default_factory=set)
    reasons: dict[Hashable, str] = field(default_factory=dict)
    _frees: bool = False

    @property
    def free(self) -> set[Any]:
        """Attributes that are not part of the state."""
        return self.varying - self.fixed

    def state(self, references: References, signature: Signature) -> Snapshot:
        """The present state, for a call. Numbers that are found to vary are not part of it from now
        on."""
        state = snapshot(references, free=self.free)
        self._frees |= self.are_inputs or (self.with_objects and bool(signature.objects))
        if not self._frees:
            return state
        changed = {
            place
            for place, (_, value) in state.numbers.items()
            if place in self.latest and not is_same(value, self.latest[place][1])
        }
        self.before.update((place, self.latest[place][1]) for place in changed)
        self.latest = state.numbers
        if changed <= self.varying:
            return state
        self.varying |= changed
        return snapshot(references, free=self.free)

    def free_sizes(self, target: Any, sizes: Collection[int]) -> None:
        """Frees attributes of the target itself that are these sizes, of what a call fills: they
        are notes of it, and will be others the next time."""
        owner = id(getattr(target, "__dict__", None))
        self.varying.update(
            place
            for place, (_, value) in self.latest.items()
            if place[0] == owner and type(value) is int and value in sizes
        )

    def wanted(self, signature: Signature, state: Snapshot, gradients: bool) -> WantedNumbers:
        """The numbers that are to be inputs of a program for the call."""
        kind = kind_of(signature, gradients)
        attributes = tuple((self.latest[place][0], place[1]) for place in state.free)
        numbers = {n: x for n, x in enumerate(signature.leaves) if type(x) in (int, float)}
        is_full = kind not in self.seen and len(self.seen) >= _MOST_KINDS
        if not self.are_inputs or not numbers or is_full:
            return WantedNumbers(kind, (), attributes)
        made_up = [{n: _another(x) for n, x in numbers.items()}] if self.from_first else []
        past = self.seen.setdefault(kind, made_up)
        for before in past:
            self.varying.update((kind, n) for n, x in numbers.items() if not is_same(x, before[n]))
        if not any(all(is_same(x, each[n]) for n, x in numbers.items()) for each in past):
            past.append(numbers)
            self.counts[kind] += 1
            del past[:-_MOST_SEEN]
        free = self.free
        arguments = (n for n, x in numbers.items() if (kind, n) in free and can_be_taken(x))
        return WantedNumbers(kind, tuple(arguments), attributes)

    def are_few(self, wanted: WantedNumbers) -> bool:
        """Whether calls of the kind have had so few values that there may be a program for a range
        of sizes for each of them: a program has either numbers or sizes as inputs."""
        return self.counts[wanted.kind] <= _MOST_SEEN

    def fix(self, wanted: WantedNumbers, leaves: Collection[int], reason: str) -> None:
        """Makes these numbers part of patterns and states from now on."""
        for leaf in leaves:
            self.fixed.add(wanted.key(leaf))
            self.reasons.setdefault(wanted.key(leaf), reason)

    def has_taken(self, wanted: WantedNumbers, fixed: NumberInputs | None) -> None:
        """Notes which numbers are inputs of a program, and for which it stands for one value."""
        self.taken.update(map(wanted.key, wanted.leaves))
        if fixed is not None:
            self.fix(wanted, fixed.fixed, fixed.told())

    def suspects(self, wanted: WantedNumbers, leaves: Sequence[Any]) -> list[int]:
        """The numbers that no program is likely to have as inputs: ints, on which sizes may depend,
        unless a program has had them as inputs. leaves: of the arguments."""
        new = [leaf for leaf in wanted.leaves if wanted.key(leaf) not in self.taken]
        among = new or [*wanted.leaves]
        whole = [leaf for leaf in among if type(wanted.value(leaf, leaves)) is int]
        return whole or among


def _another(number: float) -> float:
    """Another number of the same type; between 0 and 1 for such a float."""
    if isinstance(number, float):
        return 0.75 * number + (0.125 if number != 0.5 else 0.25)
    return number + 1


def kind_of(signature: Signature, gradients: bool) -> Hashable:
    """A key that is equal for calls that differ only in numbers, and in sizes and elements of
    tensors."""
    facts: list[Any] = [gradients, signature.names, len(signature.arguments)]
    for leaf in signature.leaves:
        if isinstance(leaf, torch.Tensor):
            facts.append((leaf.dtype, leaf.dim(), leaf.requires_grad))
        elif type(leaf) in (int, float):
            facts.append(type(leaf))
        else:
            facts.append((type(leaf), leaf))
    return tuple(facts)


def found_for(
    specialized: Specialized,
    environment: Environment,
    signature: Signature,
    args: tuple,
    kwargs: dict[str, Any],
) -> Found:
    """The program for a call. signature: of the call; numbers that are inputs of the program are
    left out of the pattern."""
    if specialized.numbers is not None:
        signature = specialized.numbers.described(args, kwargs)
    return Found(specialized, environment, signature)


def withdraw(programs: Programs, found: Found, difference: str) -> None:
    """Lets such calls have programs for exactly their numbers from now on."""
    taken = found.specialized.numbers
    assert taken is not None
    reason = f"the program does not reproduce eager execution: {difference}"
    with programs.lock:
        programs.varying.fix(taken.wanted, taken.inputs.leaves, reason)
        others = found.environment.specializations
        others[:] = [each for each in others if each is not found.specialized]


def with_numbers(
    varying: VaryingNumbers, request: Request, make: Callable[[], Specialized]
) -> Specialized | None:
    """The program with as many of the call's numbers as inputs as possible. None if no number can
    be an input, so that a program for constants is needed. If attributes become part of the state,
    the state is another one, and PyTorch runs the call.

    Raises: errors for calls that no program can stand for.
    """
    while request.numbers.leaves:
        wanted = request.numbers
        try:
            made = make()
            varying.has_taken(wanted, None if made.numbers is None else made.numbers.inputs)
            return made
        except (HasEffects, Heard, ChangesArgument, Abandoned, errors.PassError):
            raise
        except Exception as why:  # a fault of the compiler costs speed, never the user's result
            reason = str(why)
            if isinstance(why, NumbersFixed):
                fixed: Collection[int] = why.leaves
                if not fixed and not wanted.attributes:
                    request.numbers = wanted.without(wanted.leaves)
                    continue
                fixed = fixed or wanted.leaves
            else:
                fixed = varying.suspects(wanted, request.signature.leaves)
        varying.fix(wanted, fixed, reason)
        if any(leaf < 0 for leaf in fixed):
            passing = declined(request.signature, errors.CaptureError(reason))
            passing.transient = True
            return passing
        request.numbers = wanted.without(fixed)
    return None
