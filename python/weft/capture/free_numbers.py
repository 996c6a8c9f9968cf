# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain numbers in attributes of modules and objects, in the dicts and lists that these hold, and
in globals, whose values are no part of a state."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Set
from typing import Any

from weft.frontend.numbers import Arithmetic, Name, Owner, can_be_taken

# Of an attribute or item: the address of the dict or list that has it, and its name, key or index.
Place = tuple[int, Name]
NO_PLACES: frozenset[Place] = frozenset()
# Whose items can be replaced, and are asked for without any code of the user's.
_PLAIN_OWNERS = (dict, list, OrderedDict, defaultdict)


def held(owner: Owner, name: Name) -> Any:
    """What is there; None if nothing is."""
    if not isinstance(owner, list):
        return owner.get(name)
    return owner[name] if type(name) is int and name < len(owner) else None


def can_be_place(owner: Any, name: Any) -> bool:
    """Whether an item of a container is one that programs can read there."""
    return type(owner) in _PLAIN_OWNERS and type(name) in (str, int)


class FreeNumbers:
    """Those of one look at a state.

    places: which values are not to count, where programs can take them. numbers: all attributes and
    items that are numbers, with the dict or list that has each. found: those that are free, in
    order.
    """

    def __init__(self, places: Set[Any]) -> None:
        self.places = places
        self.numbers: dict[Place, tuple[Owner, Any]] = {}
        self.found: list[Place] = []

    def has(self, owner: Owner, name: Name) -> bool:
        """Whether what is there is a free number."""
        return (id(owner), name) in self.places and _is_free(held(owner, name))

    def names(self, owner: Owner) -> frozenset[Name]:
        """The names, keys or indices of the free numbers that a dict or list has."""
        return frozenset(name for _, name in self.places if self.has(owner, name))

    def stand_in(self, owner: Owner, name: Name, value: Any) -> tuple | None:
        """What stands in a state's key for the value of a free number, which may be a traced one;
        None for any other number. A program reads it there, of the object that there is now."""
        place = (id(owner), name)
        self.numbers[place] = (owner, value)
        if place not in self.places or not _is_free(value):
            return None
        self.found.append(place)
        return ("any", value.__class__, id(owner))


def _is_free(value: Any) -> bool:
    """Whether a program can take it."""
    return is_number(value) and (issubclass(type(value), Arithmetic) or can_be_taken(value))


def is_number(value: Any) -> bool:
    """An int or a float, or what stands for one in a trace."""
    kind = type(value)
    return kind is float or kind is int or issubclass(kind, Arithmetic)
