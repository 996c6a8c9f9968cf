# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of the user's classes that a call makes and returns, such as a cache of keys and values.

torch.export returns pytrees. An object that is none goes through it as a `Made`: its tensors, and
a recipe by which every call makes an object like it.
"""

from __future__ import annotations

import enum
import functools
import gc
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.capture.signature import PLAIN

# Kinds of recipes: what `make` makes of them. SIZE: an int, the first size of a tensor that has no
# elements, so that tracing may take it for a symbol.
TENSOR, VALUE, TUPLE, LIST, DICT, OBJECT, SIZE = range(7)


@dataclass
class Made:
    """What stands for an object in a traced program's result. recipe: `make` reads it."""

    tensors: list[torch.Tensor]
    recipe: tuple


pytree.register_pytree_node(
    Made,
    lambda made: (made.tensors, made.recipe),
    lambda tensors, recipe: Made(list(tensors), recipe),
)


def existing_objects() -> list[Any]:
    """All objects that a call could return without making them. The list keeps them alive, so that
    what is made later lies elsewhere."""
    return gc.get_objects()


def returns_objects(result: Any) -> bool:
    """Whether a leaf of `result` is an object that no pytree describes."""
    return any(_is_object(leaf) for leaf in pytree.tree_leaves(result))


def stand_in(result: Any, existing: list[Any]) -> Any:
    """`result` with a `Made` in the place of every object; as it is, where one was there before
    the call, cannot be made by filling its attributes, or is reached in two ways."""
    if gc.get_freeze_count():  # what has been frozen is not among the existing
        return result
    seen = _Seen(existing)
    leaves, structure = pytree.tree_flatten(result)
    try:
        leaves = [_made(leaf, seen) if _is_object(leaf) else leaf for leaf in leaves]
    except _Unmakeable:
        return result
    return pytree.tree_unflatten(leaves, structure)


def make(tensors: list[torch.Tensor], recipe: tuple) -> Any:
    """The object that `recipe` describes."""
    kind, *rest = recipe
    if kind == TENSOR:
        return tensors[rest[0]]
    if kind == VALUE:
        return rest[0]
    if kind == SIZE:
        return tensors[rest[0]].shape[0]
    what, parts = rest[:2]
    values = [make(tensors, part) for part in parts]
    if kind == TUPLE:
        return tuple(values)
    if kind == LIST:
        return values
    if kind == DICT:
        return dict(zip(what, values))
    cls, names = what[:2]
    value = cls.__new__(cls)
    vars(value).update(zip(names, values))
    return value


class _Unmakeable(Exception):
    """No recipe makes such a value."""


class _Seen:
    """What may change and was there before the call, or has been reached."""

    def __init__(self, existing: list[Any]) -> None:
        self._existing = existing
        self._known = {id(each) for each in existing}

    def enter(self, value: Any) -> bool:
        """Whether it is new."""
        if id(value) in self._known:
            return False
        # The collector does not track dicts of plain values, but it knows what held them.
        if not gc.is_tracked(value) and (type(value) is not dict or id(value) in self._untracked):
            return False
        self._known.add(id(value))
        return True

    @functools.cached_property
    def _untracked(self) -> set[int]:
        held = gc.get_referents(*self._existing)
        return {id(each) for each in held if type(each) is dict and not gc.is_tracked(each)}


def _is_object(leaf: Any) -> bool:
    return not isinstance(leaf, (torch.Tensor, *PLAIN))


def _made(value: Any, seen: _Seen) -> Made:
    tensors: list[torch.Tensor] = []
    return Made(tensors, _recipe(value, tensors, seen))


def _recipe(value: Any, tensors: list[torch.Tensor], seen: _Seen) -> tuple:
    """Raises: _Unmakeable. Whatever may change is entered into `seen`."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return (TENSOR, len(tensors) - 1)
    if kind in PLAIN or isinstance(value, (type, enum.Enum, torch.Size)):
        return (VALUE, value)
    if kind is tuple:
        return (TUPLE, None, tuple(_recipe(each, tensors, seen) for each in value))
    if not seen.enter(value):
        raise _Unmakeable
    if kind is list:
        return (LIST, None, tuple(_recipe(each, tensors, seen) for each in value))
    if kind is dict and all(type(key) in PLAIN for key in value):
        parts = tuple(_recipe(each, tensors, seen) for each in value.values())
        return (DICT, tuple(value), parts)
    if not is_all_attributes(kind):
        raise _Unmakeable
    parts = tuple(_recipe(each, tensors, seen) for each in vars(value).values())
    return (OBJECT, (kind, tuple(vars(value))), parts)


def is_all_attributes(cls: type) -> bool:
    """Whether an object of `cls` is what its attributes are, and is nothing to watch over."""
    return (
        cls.__new__ is object.__new__
        and cls.__dictoffset__ != 0
        and not any(_slots(base) for base in cls.__mro__)
        and not hasattr(cls, "__del__")
        and not issubclass(cls, torch.nn.Module)
    )


def _slots(cls: type) -> set[str]:
    """The attributes of a class that are not in the dicts of its objects."""
    named = vars(cls).get("__slots__", ())
    return {*([named] if isinstance(named, str) else named)} - {"__dict__", "__weakref__"}
