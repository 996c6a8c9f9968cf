# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Abstract classes, which can be told of subclasses at any time."""

from __future__ import annotations

import abc
from _abc import _get_dump
from typing import Any

from weft._core import ObjectGuards
from weft.capture.signature import Same


def registered(kind: Any, guards: ObjectGuards) -> frozenset | None:
    """The classes that were registered as subclasses of an abstract class, or of one of its
    subclasses."""
    if not isinstance(kind, abc.ABCMeta):
        return None
    guards.watch_answer(abc.get_cache_token)
    found, waiting = set(), [kind]
    derived: set[type] = set()
    while waiting:
        each = waiting.pop()
        if each not in derived and isinstance(each, abc.ABCMeta):
            derived.add(each)
            found.update((Same(each), Same(known())) for known in _get_dump(each)[0])
            waiting += type.__subclasses__(each)
    return frozenset(found)
