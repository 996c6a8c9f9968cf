# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All that can be changed in a program, each change by a name that holds in every world."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from capture.contents import changes_within
from capture.corpus import World
from capture.places import Reached, of_arguments, of_target
from capture.surroundings import STYLES, SURROUNDINGS
from capture.variants import variants

# Where a change is made: in what the target reaches, the next calls' arguments, around the calls.
KINDS = ("target", "argument", "change", "around", "style")


@dataclass(frozen=True)
class Mutation:
    kind: str
    path: str
    label: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.label}"


class Lost(Exception):
    """The mutation means nothing in this world as it is now."""


@dataclass
class CallArguments:
    """undo: what a mutation did to objects that live longer than the call."""

    args: list[Any]
    kwargs: dict[str, Any]
    undo: list[Callable[[], Any]] = field(default_factory=list)


def mutations_of(world: World) -> list[Mutation]:
    found = [Mutation("change", name, "made") for name in world.case.changes]
    found += _within("target", of_target(world))
    args, kwargs = world.case.arguments()
    found += _within("argument", of_arguments(world, list(args), dict(kwargs)))
    found += [Mutation("argument", "arguments", label) for label in _OF_SEVERAL]
    found += [Mutation("around", name, "entered") for name in SURROUNDINGS]
    found += [Mutation("style", name, "used") for name in STYLES]
    return found


def _within(kind: str, reached: Reached) -> Iterator[Mutation]:
    for path, place in reached.places.items():
        for label, _ in variants(place.value):
            yield Mutation(kind, path, label)
        if place.remove is not None:
            yield Mutation(kind, path, "removed")
    for path, value in reached.objects.items():
        for label, _ in changes_within(value):
            yield Mutation(kind, f"within {path}", label)


def apply_to_target(mutation: Mutation, world: World) -> Callable[[], Any]:
    """Returns what undoes it. Raises: Lost."""
    if mutation.kind == "change":
        return world.case.changes[mutation.path]()
    return _apply(mutation, of_target(world))


def apply_to_arguments(mutation: Mutation, world: World, given: CallArguments) -> None:
    """Raises: Lost."""
    several = _OF_SEVERAL.get(mutation.label)
    if mutation.path == "arguments" and several is not None:
        several(given)
        return
    given.undo.append(_apply(mutation, of_arguments(world, given.args, given.kwargs)))


def _apply(mutation: Mutation, reached: Reached) -> Callable[[], Any]:
    if mutation.path.startswith("within "):
        value = reached.objects.get(mutation.path.removeprefix("within "))
        changes = dict(changes_within(value)) if value is not None else {}
        if mutation.label not in changes:
            raise Lost(str(mutation))
        return _attempted(changes[mutation.label])
    place = reached.places.get(mutation.path)
    if place is None:
        raise Lost(str(mutation))
    if mutation.label == "removed" and place.remove is not None:
        return _attempted(place.remove)
    made = dict(variants(place.value)).get(mutation.label)
    if made is None:
        raise Lost(str(mutation))
    return _attempted(lambda: place.put(made()))


def _attempted(change: Callable[[], Callable[[], Any]]) -> Callable[[], Any]:
    """Python and torch refuse some: a module as a copy of one that cannot be copied, say."""
    try:
        return change()
    except Exception as why:
        raise Lost(f"{type(why).__name__}: {why}") from why


def _same_tensor(given: CallArguments) -> None:
    """The second tensor is the first itself."""
    first, second = _two_tensors(given)
    given.args[second] = given.args[first]


def _overlapping(given: CallArguments) -> None:
    """The second is a view of the first's memory, one element on."""
    first, second = _two_tensors(given)
    x, y = given.args[first], given.args[second]
    if x.shape != y.shape or x.dtype != y.dtype:
        raise Lost("their shapes differ")
    memory = torch.cat([x.flatten(), y.flatten()[:1]])
    given.args[first] = memory[: x.numel()].view(x.shape)
    given.args[second] = memory[1:].view(x.shape)


def _two_tensors(given: CallArguments) -> tuple[int, int]:
    found = [number for number, each in enumerate(given.args) if type(each) is torch.Tensor]
    if len(found) < 2:
        raise Lost("there are no two tensors")
    return found[0], found[1]


def _one_less(given: CallArguments) -> None:
    if not given.args:
        raise Lost("there is none")
    given.args.pop()


def _first_by_name(given: CallArguments) -> None:
    if len(given.args) != 1:
        raise Lost("there are several")
    given.kwargs["x"] = given.args.pop()


_OF_SEVERAL: dict[str, Callable[[CallArguments], None]] = {
    "the second is the first": _same_tensor,
    "they overlap": _overlapping,
    "one less": _one_less,
    "one more": lambda given: given.args.append(1.0),
    "an unknown keyword": lambda given: given.kwargs.update(unknown=1.0),
    "by name": _first_by_name,
}


@contextlib.contextmanager
def surrounding(mutation: Mutation | None) -> Iterator[None]:
    if mutation is None or mutation.kind != "around":
        yield
        return
    with SURROUNDINGS[mutation.path]():
        yield
