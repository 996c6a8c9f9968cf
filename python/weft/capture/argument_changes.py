# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call changes in objects among its arguments, such as a cache that it makes longer.

An object before the call is numbered by the paths to its parts. What the call has bound to other
values is a list of changes, which make the same of any object of that form: new tensors are results
of the program, and what was there before is found by its path.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.capture.argument_objects import (
    NO_COUNTERS,
    Counters,
    NoRecipe,
    as_size,
    has_attributes_alone,
)
from weft.capture.returned_objects import DICT, LIST, OBJECT, SIZE, TENSOR, TUPLE, VALUE
from weft.capture.signature import PLAIN

# A part that was there before the call: (_OLD, path).
_OLD = -1
# How a path's step and a change find an entry: in the attributes, in a list, in a dict.
_ATTRIBUTE, _ITEM, _KEY = range(3)
Path = tuple[tuple[int, Any], ...]
# Of one object: (path of the part, what it is, whether all its entries go first, keys, recipes).
Changes = tuple[tuple[Path, int, bool, tuple, tuple], ...]


@dataclass(frozen=True)
class Filled:
    """What a call fills objects with that were empty, as a prompt does a cache. sizes: of the
    tensors, but for their first. counters: attributes that are one of these, too, before the call
    or after it."""

    sizes: frozenset[int]
    counters: Counters


@dataclass
class Changed:
    """What stands in a traced program's result for what the user gets, where the call changes
    objects among its arguments. tensors: that these are given. changes: of each object."""

    result: Any
    tensors: list[torch.Tensor]
    changes: tuple[Changes, ...]


pytree.register_pytree_node(
    Changed,
    lambda each: ([each.result, each.tensors], each.changes),
    lambda parts, changes: Changed(*parts, changes),
)


class Before:
    """An object as it is ahead of a call, which `changes` compares with what has become of it."""

    def __init__(self, value: Any, counters: Counters = NO_COUNTERS) -> None:
        """counters: attributes whose values are sizes. Raises: NoRecipe."""
        self._counters = counters
        self._paths: dict[int, Path] = {}
        # The parts that may change, what they are, and what they held; they keep all alive.
        self._parts: list[tuple[Path, int, Any, dict]] = []
        self._tensors: list[torch.Tensor] = []
        self._enter(value, ())

    def changes(self, tensors: list[torch.Tensor]) -> Changes:
        """Appends to `tensors` those that the object has been given. Raises: NoRecipe."""
        made: dict[int, int] = {}
        found = []
        for path, kind, part, before in self._parts:
            now = _entries(part, kind)
            # Attributes that are new follow the others, as they would be set.
            is_cut = list(now)[: len(before)] != list(before)
            new = [key for key in now if is_cut or not self._is_same(before, key, now[key])]
            if new or is_cut:
                recipes = tuple(
                    _size(now[key], tensors)
                    if (type(part), key) in self._counters
                    else self._recipe(now[key], tensors, made)
                    for key in new
                )
                found.append((path, kind, is_cut, tuple(new), recipes))
        return tuple(found)

    def resized(self, changes: Changes, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether what changes bind are other sizes: of a tensor, or ints. Not where the call fills
        what was empty: the next one does not do so again."""
        places = {path: before for path, _, _, before in self._parts}
        found = False
        for path, _, _, keys, recipes in changes:
            for key, recipe in zip(keys, recipes):
                old = places[path].get(key)
                if recipe[0] == TENSOR:
                    if not isinstance(old, torch.Tensor):
                        return False
                    new = tensors[recipe[1]]
                    sizes = (*old.shape, *new.shape)
                    if any(isinstance(each, torch.SymInt) for each in sizes):
                        return True  # who asks what a symbol is decides it
                    found |= old.dim() == new.dim() and old.shape != new.shape
                elif recipe[0] == VALUE:
                    found |= type(recipe[1]) is type(old) is int
        return found

    def filled(self, changes: Changes, tensors: Sequence[torch.Tensor]) -> Filled:
        """What changes bind to tensors that was none."""
        places = {path: (part, before) for path, _, part, before in self._parts}
        sizes: set[int] = set()
        counters: set[tuple[type, str]] = set()
        for path, kind, _, keys, recipes in changes:
            part, before = places[path]
            new = {
                size
                for key, recipe in zip(keys, recipes)
                if not isinstance(before.get(key), torch.Tensor)
                for number in _tensors_in(recipe)
                for size in tensors[number].shape[1:]
                if type(size) is int and size > 1
            }
            sizes |= new
            if kind != OBJECT or not new:
                continue
            counters |= {
                (type(part), key)
                for key, recipe in zip(keys, recipes)
                if recipe[0] == VALUE and type(recipe[1]) is type(before.get(key)) is int
            }
            ints = [key for key, each in before.items() if type(each) is int and each in new]
            counters |= {(type(part), key) for key in ints if len(ints) == 1}
        return Filled(frozenset(sizes), frozenset(counters))

    def _enter(self, value: Any, path: Path) -> None:
        kind = _kind_of(value)
        if kind in (VALUE, SIZE):
            return
        self._paths.setdefault(id(value), path)
        if kind == TENSOR:
            self._tensors.append(value)
            return
        entries = _entries(value, kind)
        if kind != TUPLE:
            self._parts.append((path, kind, value, entries))
        step = {OBJECT: _ATTRIBUTE, DICT: _KEY}.get(kind, _ITEM)
        for key, entry in entries.items():
            self._enter(entry, (*path, (step, key)))

    def _is_same(self, before: dict, key: Any, now: Any) -> bool:
        if key not in before:
            return False
        old = before[key]
        if _kind_of(now) != VALUE or _kind_of(old) != VALUE:
            return now is old
        return _plain(now) == _plain(old)

    def _recipe(self, value: Any, tensors: list[torch.Tensor], made: dict[int, int]) -> tuple:
        """made: the numbers of new tensors by address; -1 for what else is new."""
        path = self._paths.get(id(value))
        kind = _kind_of(value)
        if kind == SIZE:
            raise NoRecipe("a size")
        if kind == VALUE:
            return (VALUE, value, *_plain(value)[1:])
        if path is not None:
            return (_OLD, path)
        if kind == TENSOR:
            if id(value) not in made:
                made[id(value)] = len(tensors)
                tensors.append(value)
            return (TENSOR, made[id(value)])
        if kind != TUPLE:
            if id(value) in made:
                raise NoRecipe(f"a {type(value).__qualname__} that it reaches in two ways")
            made[id(value)] = -1
        entries = _entries(value, kind)
        what = (type(value), tuple(entries)) if kind == OBJECT else tuple(entries)
        return (kind, what, tuple(self._recipe(e, tensors, made) for e in entries.values()))


def apply(parts: list[Any], changes: tuple[Changes, ...]) -> Any:
    """What a program returns, once the objects are changed. parts: that result, the new tensors,
    and the objects. While they are collected, they are left alone."""
    result, tensors, *objects = parts
    collected = getattr(_collecting, "tensors", None)
    if collected is not None:
        collected += tensors
        return result
    for value, own in zip(objects, changes, strict=True):
        # What is there is looked up before anything is bound anew.
        ready = [
            (_at(value, path), kind, cut, keys, [_make(r, value, tensors) for r in recipes])
            for path, kind, cut, keys, recipes in own
        ]
        for part, kind, cut, keys, values in ready:
            _bind(part, kind, cut, keys, values)
    return result


@contextlib.contextmanager
def collecting() -> Iterator[list[torch.Tensor]]:
    """The tensors that changed objects would be given, while the objects are left alone."""
    _collecting.tensors = []
    try:
        yield _collecting.tensors
    finally:
        _collecting.tensors = None


_collecting = threading.local()


def _bind(part: Any, kind: int, cut: bool, keys: tuple, values: list[Any]) -> None:
    if kind == LIST:
        if cut:
            part[:] = values
        for key, value in zip(keys, values):
            if key < len(part):
                part[key] = value
            else:
                part.append(value)
        return
    entries = vars(part) if kind == OBJECT else part
    if cut:
        entries.clear()
    entries.update(zip(keys, values))


def _at(value: Any, path: Path) -> Any:
    for step, key in path:
        value = vars(value)[key] if step == _ATTRIBUTE else value[key]
    return value


def _make(recipe: tuple, root: Any, tensors: Sequence[torch.Tensor]) -> Any:
    kind = recipe[0]
    if kind == TENSOR:
        return tensors[recipe[1]]
    if kind == VALUE:
        return recipe[1]
    if kind == SIZE:
        return tensors[recipe[1]].shape[0]
    if kind == _OLD:
        return _at(root, recipe[1])
    values = [_make(each, root, tensors) for each in recipe[2]]
    if kind == TUPLE:
        return tuple(values)
    if kind == LIST:
        return values
    if kind == DICT:
        return dict(zip(recipe[1], values))
    cls, names = recipe[1]
    made = cls.__new__(cls)
    vars(made).update(zip(names, values))
    return made


def _tensors_in(recipe: tuple) -> list[int]:
    """The numbers of the new tensors."""
    kind = recipe[0]
    if kind in (LIST, TUPLE, DICT, OBJECT):
        return [number for part in recipe[2] for number in _tensors_in(part)]
    return [recipe[1]] if kind == TENSOR else []


def _kind_of(value: Any) -> int:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return TENSOR
    if kind in PLAIN or isinstance(value, (type, enum.Enum, torch.Size)):
        return VALUE
    if kind in (tuple, list, dict):
        return {tuple: TUPLE, list: LIST, dict: DICT}[kind]
    if isinstance(value, torch.SymInt):
        return SIZE
    if isinstance(value, (torch.SymFloat, torch.SymBool)) or not has_attributes_alone(value):
        raise NoRecipe(f"a {kind.__qualname__}")
    return OBJECT


def _entries(value: Any, kind: int) -> dict:
    """The entries of an object by attribute, key or index."""
    if kind == OBJECT:
        return dict(vars(value))
    if kind == DICT:
        if not all(type(key) in PLAIN for key in value):
            raise NoRecipe("a dict with keys that are no plain values")
        return dict(value)
    return dict(enumerate(value))


def _size(number: int, tensors: list[torch.Tensor]) -> tuple:
    tensors.append(as_size(number))
    return (SIZE, len(tensors) - 1)


def _plain(value: Any) -> tuple:
    """Equal for the same alone: 1 is not True, and 0.0 not -0.0."""
    kind = type(value)
    return value, kind, value.hex() if kind is float else None
