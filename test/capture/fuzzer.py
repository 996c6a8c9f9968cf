# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes one thing after another in two equal worlds, an eager and a compiled one, and compares
the calls that follow."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from capture.comparison import Comparison, Differs
from capture.corpus import Name, World, make_world
from capture.mutations import (
    CallArguments,
    Lost,
    Mutation,
    apply_to_arguments,
    apply_to_target,
    mutations_of,
    surrounding,
)
from capture.observed import Observed, observe, seed
from capture.surroundings import STYLES, plainly

# After so many the worlds are made anew: environments that Weft keeps are as few.
MUTATIONS_OF_A_PAIR = 40
WARM_CALLS = 3


@dataclass(frozen=True)
class Wrong:
    """mutation: None if the program differs as it is. when: the call that differed."""

    program: Name
    mutation: Mutation | None
    when: str
    difference: str

    def __str__(self) -> str:
        change = "" if self.mutation is None else f" [{self.mutation}]"
        return f"{self.program}{change}, {self.when}: {self.difference}"


@dataclass
class Judged:
    """whole: whether the program as it is runs compiled. reason: why not. tried: mutations.
    answered: calls that a program answered. captured: mutations after which Weft might capture.
    unclear: mutations of which nothing can be said, with what came up."""

    program: Name
    whole: bool = False
    reason: str | None = None
    tried: int = 0
    captured: int = 0
    answered: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


class _Pair:
    """Two worlds of a program, called in turn."""

    def __init__(self, program: Name, subject: Any) -> None:
        self.subject, self.calls = subject, 0
        self.eager, self.other = make_world(program), make_world(program)
        self.compiled = subject.compile(self.other.case.target)

    def close(self) -> None:
        self.eager.close()
        self.other.close()

    def call(self, mutation: Mutation | None = None) -> None:
        """Raises: Differs; Lost, if the mutation cannot be made."""
        self.calls += 1
        eager = self._call_one(self.eager, self.eager.case.target, mutation)
        other = self._call_one(self.other, self.compiled, mutation)
        if (eager is None) != (other is None):
            raise Differs("a change can be made in one world alone")
        if eager is None:
            raise Lost(str(mutation))
        try:
            comparison = Comparison()
            _compare(comparison, eager[0], other[0])
            comparison.compare(self.eager.case.target, self.other.case.target, "the target")
            comparison.compare(self.eager.case.state, self.other.case.state, "the state")
        finally:
            undone = _undo(eager[1].undo + other[1].undo)
        if undone is not None:
            raise _Unclear(undone)

    def _call_one(
        self, world: World, target: Callable[..., Any], mutation: Mutation | None
    ) -> tuple[Observed, CallArguments] | None:
        seed(self.calls)
        try:
            args, kwargs = world.case.arguments()
        except Exception:  # they need what the mutation changed
            return None
        given = CallArguments(list(args), dict(kwargs))
        if mutation is not None and mutation.kind == "argument":
            try:
                apply_to_arguments(mutation, world, given)
            except Lost:
                return None
        style = plainly
        if mutation is not None and mutation.kind == "style":
            style = STYLES[mutation.path]
        seed(self.calls)
        made, names = tuple(given.args), dict(given.kwargs)
        with torch.set_grad_enabled(world.grad), surrounding(mutation):
            observed = observe(lambda: style(target, made, names), made, names)
        return observed, given


def _compare(comparison: Comparison, eager: Observed, other: Observed) -> None:
    if (eager.error is None) != (other.error is None):
        raise Differs(f"{_outcome(other)} instead of {_outcome(eager)}")
    comparison.compare(eager.args, other.args, "the arguments")
    comparison.compare(eager.kwargs, other.kwargs, "the keywords")
    comparison.compare(eager.error, other.error, "the error")
    comparison.compare(eager.value, other.value, "the result")
    for name in ("printed", "logged", "warned", "modes", "generators"):
        comparison.compare(getattr(eager, name), getattr(other, name), f"what is {name}")


def _outcome(observed: Observed) -> str:
    if observed.error is None:
        return "a value"
    return f"{type(observed.error).__name__} ({str(observed.error)[:100]})"


def all_mutations(program: Name) -> list[Mutation]:
    world = make_world(program)
    try:
        return mutations_of(world)
    finally:
        world.close()


def fuzz(
    program: Name,
    subject: Any,
    mutations: Iterable[Mutation],
    captures: Callable[[Mutation], bool],
    found: Callable[[Wrong], Any] = lambda wrong: None,
) -> Judged:
    """captures: whether the subject may capture programs anew after a mutation, which is slow.
    found: is told of what is wrong at once."""
    judged = Judged(program)
    pair = _warm(program, subject, judged)
    used = 0
    try:
        for mutation in mutations:
            if pair is None or used == MUTATIONS_OF_A_PAIR:
                if pair is not None:
                    judged.answered += subject.answered(pair.compiled)
                    pair.close()
                pair, used = _warm(program, subject, None), 0
            if pair is None:
                break
            used += 1
            try:
                if _judge(pair, mutation, captures(mutation)):
                    judged.tried += 1
                    judged.captured += captures(mutation)
            except _Found as why:
                judged.tried += 1
                judged.wrong.append(Wrong(program, mutation, why.when, str(why)))
                found(judged.wrong[-1])
            except _Unclear as why:
                judged.unclear.append(f"{program} [{mutation}]: {why}")
            else:
                continue
            pair.close()
            pair = None
    finally:
        if pair is not None:
            judged.answered += subject.answered(pair.compiled)
            pair.close()
    return judged


class _Unclear(Exception):
    """The change cannot be undone, or the worlds cannot be looked at with it."""


class _Found(Exception):
    def __init__(self, when: str, difference: str) -> None:
        super().__init__(difference)
        self.when = when


def _warm(program: Name, subject: Any, judged: Judged | None) -> _Pair | None:
    pair = _Pair(program, subject)
    for number in range(WARM_CALLS):
        try:
            pair.call()
        except Differs as why:
            if judged is not None:
                judged.wrong.append(Wrong(program, None, f"call {number + 1}", str(why)))
            pair.close()
            return None
    if judged is not None:
        judged.whole = subject.is_whole(pair.compiled)
        judged.reason = None if judged.whole else next(iter(subject.reasons(pair.compiled)), None)
    return pair


def _judge(pair: _Pair, mutation: Mutation, captures: bool) -> bool:
    """Whether it could be made. Raises: _Found, _Unclear."""
    when = "changed"
    quiet = contextlib.nullcontext() if captures else pair.subject.capturing_nothing()
    undo: list[Callable[[], Any]] = []
    try:
        with quiet:
            if mutation.kind in ("target", "change"):
                for world in (pair.eager, pair.other):
                    seed(0)
                    undo.append(apply_to_target(mutation, world))
            for number in range(3 if captures else 2):
                when = f"call {number + 1} after the change"
                pair.call(mutation)
    except Lost:
        return False
    except Differs as why:
        raise _Found(when, str(why)) from None
    except Exception as why:
        raise _Unclear(f"{type(why).__name__}: {why}") from why
    finally:
        undone = _undo(undo)
    if undone is not None:
        raise _Unclear(undone)
    try:
        for number in (1, 2):
            when = f"call {number} after it was undone"
            pair.call()
    except Differs as why:
        raise _Found(when, str(why)) from None
    except Lost as why:
        raise _Unclear(f"the arguments cannot be made again: {why}") from None
    return True


def _undo(changes: list[Callable[[], Any]]) -> str | None:
    """Why one cannot be undone: what both worlds share has been put back by the first."""
    why = None
    for each in reversed(changes):
        try:
            each()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
    return why


def chosen(mutations: list[Mutation], most: int | None, seed_: str) -> list[Mutation]:
    """At most so many, chosen by seed, in a random order."""
    order = random.Random(seed_).sample(mutations, len(mutations))
    return order if most is None else order[:most]
