# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of libraries among a call's arguments that are no pytrees, such as a cache of keys and
values. A program reads their tensors and may write to them in place; whatever else they hold is
part of what the program was made for, and stays as it is.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import _core
from weft.capture.reachability import is_library_class, is_stable
from weft.capture.returned_objects import (
    DICT,
    LIST,
    OBJECT,
    SIZE,
    TENSOR,
    TUPLE,
    VALUE,
    is_all_attributes,
    make,
)
from weft.capture.signature import PLAIN, Declined, Signature

_MANY = 64
Flat = tuple[list[torch.Tensor], tuple]
# Attributes that hold sizes, such as the number of tokens that a cache has seen: the class and the
# name.
Counters = frozenset[tuple[type, str]]
NO_COUNTERS: Counters = frozenset()


@dataclass
class Given:
    """What stands in a traced program's result for an object among the arguments. number: of the
    objects among them, in order."""

    number: int


pytree.register_pytree_node(Given, lambda given: ([], given.number), lambda _, n: Given(n))


class NoRecipe(Exception):
    """An object holds what no recipe describes; the message says what."""


def is_object(value: Any) -> bool:
    """Whether `flatten` may take it. A user's own class may have methods that read what changes;
    nobody watches that for an object that comes as an argument."""
    kind = type(value)
    if not is_all_attributes(kind) or pytree._get_node_type(value) in pytree.SUPPORTED_NODES:
        return False
    bases = [base for base in kind.__mro__ if not is_stable(base)]
    return bool(bases) and all(map(is_library_class, bases))


def has_attributes_alone(value: Any) -> bool:
    """Whether its attributes are all that it holds: an object, or one whose class a process that
    traces has made a pytree, but none of Python's own containers."""
    kind = type(value)
    return is_object(value) or kind in pytree.SUPPORTED_NODES and is_all_attributes(kind)


def flatten(value: Any, counters: Counters = NO_COUNTERS) -> Flat:
    """Its tensors, and all else, by which calls are told apart: patched classes, too. For each of
    `counters` there is a tensor of that size, without elements.

    Raises: NoRecipe.
    """
    return _flatten(value, True, counters)


def as_size(number: int) -> torch.Tensor:
    """A tensor whose first size it is."""
    return torch.zeros((number, 0))


def counters_between(one: tuple, other: tuple) -> Counters | None:
    """The attributes whose ints differ in two recipes of a form; None if anything else does."""
    if one == other:
        return NO_COUNTERS
    kind, what, parts = one[:3]
    if (kind, what) != other[:2] or kind in (VALUE, TENSOR, SIZE) or len(parts) != len(other[2]):
        return None
    found: set[tuple[type, str]] = set()
    for number, (a, b) in enumerate(zip(parts, other[2])):
        if kind == OBJECT and a != b and a[0] == b[0] == VALUE and type(a[1]) is type(b[1]) is int:
            found.add((what[0], what[1][number]))
            continue
        inner = counters_between(a, b)
        if inner is None:
            return None
        found |= inner
    return frozenset(found)


def sizes_in(recipe: tuple) -> list[int]:
    """The numbers in a recipe of the tensors that stand for counters."""
    kind = recipe[0]
    if kind == SIZE:
        return [recipe[1]]
    return [] if kind in (VALUE, TENSOR) else [n for part in recipe[2] for n in sizes_in(part)]


def form(recipe: tuple) -> tuple:
    """The recipe without its numbers; equal for objects that differ in lengths alone."""
    kind, what, parts = recipe[:3]
    if kind == VALUE:
        return (kind, what) if parts not in (int, float) else (kind, parts)
    if kind in (TENSOR, SIZE):
        return (kind,)
    return (kind, what[:2] if kind == OBJECT else what, tuple(map(form, parts)))


class ChangingObjects:
    """Objects whose attributes calls change, which no program does: calls with others like them are
    not traced again for each new length."""

    def __init__(self) -> None:
        self._reasons: dict[tuple, str] = {}
        self._compiled: set[type] = set()
        self._refused: Counter[type] = Counter()

    def note(self, signature: Signature, reason: str) -> None:
        for _, recipe in signature.objects:
            self._reasons[form(recipe)] = reason

    def compiled(self, signature: Signature) -> None:
        """Of objects of these classes, some stay as they are."""
        self._compiled.update(type(value) for value, _ in signature.objects)

    def refuse(self, signature: Signature) -> None:
        """Raises: Declined, for a call with an object like one that has been noted; after many of
        its class, and no program, with the class."""
        for value, recipe in signature.objects if self._reasons else ():
            reason = self._reasons.get(form(recipe))
            if reason is not None:
                kind = type(value)
                self._refused[kind] += 1
                many = self._refused[kind] > _MANY and kind not in self._compiled
                raise Declined(reason, type=kind if many else None)


def register(call: Any, counters: Counters = NO_COUNTERS) -> set[type]:
    """Makes the classes of objects within `call` known to the pytrees of a process that traces, and
    gives them."""
    known: dict[Any, torch.Tensor] = {}  # torch.export leaves its marks on them

    def once(tensor: torch.Tensor, place: Any) -> torch.Tensor:
        is_size = tensor.dim() == 2 and type(tensor.shape[0]) is int and place is not None
        return known.setdefault((place, tensor.shape[0]), tensor) if is_size else tensor

    def flat(value: Any) -> Flat:
        tensors, recipe = _flatten(value, False, counters)
        counted = sizes_in(recipe)
        places = ((id(value), i) if i in counted else None for i in range(len(tensors)))
        return [*map(once, tensors, places)], recipe

    def with_keys(value: Any) -> tuple[list[tuple[Any, torch.Tensor]], tuple]:
        tensors, recipe = flat(value)
        return [(pytree.SequenceKey(i), tensor) for i, tensor in enumerate(tensors)], recipe

    kinds: set[type] = set()
    for value in pytree.tree_leaves(call):
        kind = type(value)
        if isinstance(value, torch.Tensor) or kind in PLAIN or kind in kinds:
            continue
        if is_object(value):
            kinds.add(kind)
            pytree.register_pytree_node(
                kind,
                flat,
                lambda tensors, recipe: make(list(tensors), recipe),
                flatten_with_keys_fn=with_keys,
            )
    return kinds


def objects_in(call: Any, kinds: set[type]) -> list[Any]:
    """Those of `kinds` within `call`, in order."""
    found: list[Any] = []
    pytree.tree_leaves(call, is_leaf=lambda node: type(node) in kinds and not found.append(node))
    return found


def with_given(result: Any, objects: list[Any]) -> Any:
    """`result` with a `Given` in the place of each of the arguments' objects."""
    numbers = {id(each): number for number, each in reversed([*enumerate(objects)])}
    return pytree.tree_map(
        lambda node: Given(numbers[id(node)]) if id(node) in numbers else node,
        result,
        is_leaf=lambda node: id(node) in numbers,
    )


def _flatten(value: Any, versions: bool, counters: Counters) -> Flat:
    tensors: list[torch.Tensor] = []
    return tensors, _recipe(value, tensors, set(), versions, counters)


def _recipe(
    value: Any, tensors: list[torch.Tensor], seen: set[int], versions: bool, counters: Counters
) -> tuple:
    """As `make` reads it. seen: addresses of what may change, which is reached in one way."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return (TENSOR, len(tensors) - 1, ())
    if kind in PLAIN or isinstance(value, (type, enum.Enum, torch.Size)):
        # 1 is not True, and 0.0 not -0.0.
        return (VALUE, value, kind, value.hex() if kind is float else None)
    if kind is not tuple:
        if id(value) in seen:
            raise NoRecipe(f"a {kind.__qualname__} that it reaches in two ways")
        seen.add(id(value))
    if kind is tuple or kind is list:
        parts = tuple(_recipe(each, tensors, seen, versions, counters) for each in value)
        return (TUPLE if kind is tuple else LIST, None, parts)
    if kind is dict and all(type(key) in PLAIN for key in value):
        parts = tuple(_recipe(each, tensors, seen, versions, counters) for each in value.values())
        return (DICT, tuple(value), parts)
    if not has_attributes_alone(value):
        raise NoRecipe(f"a {kind.__qualname__}")
    attributes = vars(value)
    parts = tuple(
        _counted(each, tensors)
        if (kind, name) in counters and isinstance(each, (int, torch.SymInt))
        else _recipe(each, tensors, seen, versions, counters)
        for name, each in attributes.items()
    )
    version = _core.class_version(kind) if versions else 0
    return (OBJECT, (kind, tuple(attributes), version), parts)


def _counted(number: int, tensors: list[torch.Tensor]) -> tuple:
    tensors.append(as_size(number))
    return (SIZE, len(tensors) - 1, ())
