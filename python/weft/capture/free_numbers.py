# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of modules and objects that are plain numbers, whose values are no part of a state."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from weft.frontend.numbers import Arithmetic, can_be_taken

# Of an attribute: the address of the dict that has it, and its name.
Place = tuple[int, str]
NO_PLACES: frozenset[Place] = frozenset()


class FreeNumbers:
    """Those of one look at a state.

    places: which values are not to count, where programs can take them. numbers: all attributes
    that are numbers, with the dict that has each. found: those that are free, in order.
    """

    def __init__(self, places: Set[Any]) -> None:
        self.places = places
        self.numbers: dict[Place, tuple[dict[str, Any], Any]] = {}
        self.found: list[Place] = []

    def names(self, owner: dict[str, Any]) -> frozenset[str]:
        """The names of the free numbers that a dict has."""
        return frozenset(
            name
            for place, name in self.places
            if place == id(owner) and name in owner and _is_free(owner[name])
        )

    def kind_of(self, owner: dict[str, Any], name: str, value: Any) -> type | None:
        """The class that stands for the value of a free number, which may be a traced one."""
        place, kind = (id(owner), name), value.__class__
        self.numbers[place] = (owner, value)
        if place not in self.places or not _is_free(value):
            return None
        self.found.append(place)
        return kind


def _is_free(value: Any) -> bool:
    """Whether a program can take it."""
    return is_number(value) and (issubclass(type(value), Arithmetic) or can_be_taken(value))


def is_number(value: Any) -> bool:
    """An int or a float, or what stands for one in a trace."""
    kind = type(value)
    return kind is float or kind is int or issubclass(kind, Arithmetic)
