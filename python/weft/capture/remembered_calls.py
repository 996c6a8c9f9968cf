# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results that `functools.lru_cache` and `functools.cache` keep of a function.

Python has no name for them, but the collector tells what the function's object holds, in the order
of lru_cache_tp_traverse (CPython, Modules/_functoolsmodule.c): its class; the key, the result and
the class of each entry of a bounded cache; the dict of entries; the function; three of functools'
own, the last of which is the class of `cache_info()`. The second one of those stands ahead of the
arguments by keyword in a key.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable
from typing import Any

from weft.capture.reachability import is_library

KIND = functools._lru_cache_wrapper


def entries(function: Callable[..., Any]) -> dict[Any, Any]:
    """The dict that has an entry for each call that is remembered; to find one changes nothing."""
    found = _held(function)[-1]
    if type(found) is not dict or len(found) != function.cache_info().currsize:
        raise TypeError(f"the calls that {function!r} remembers are not where CPython keeps them")
    return found


def results(function: Callable[..., Any]) -> list[Any]:
    """Of the calls that are remembered, in the order in which they were first made."""
    *linked, found = _held(function)
    if not linked:
        return [*found.values()]
    of_key = {id(key): value for key, value in zip(linked[0::3], linked[1::3], strict=True)}
    return [of_key[id(key)] for key in found]


def answer(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call would be given of those remembered; nobody counts it.

    Raises: KeyError, if there is none.
    """
    *linked, found = _held(function)
    key: Any = args
    typed = function.cache_parameters()["typed"]  # type: ignore[attr-defined]
    if not typed and not kwargs and len(args) == 1 and type(args[0]) in (str, int):
        key = args[0]
    if kwargs:
        key += (_mark(function), *(each for item in kwargs.items() for each in item))
    if typed:
        key += (*map(type, args), *map(type, kwargs.values()))
    value = found[key]
    if not linked:
        return value
    pairs = zip(linked[0::3], linked[1::3], strict=True)
    return next(each for other, each in pairs if hash(other) == hash(key) and other == key)


def answered(objects: Iterable[Any]) -> int:
    """How many calls functions among the objects have answered by what they remember; those of
    libraries are nobody's to look at."""
    own = (each for each in objects if isinstance(each, KIND) and not _is_of_library(each))
    return sum(each.cache_info().hits for each in own)


def _is_of_library(function: Callable[..., Any]) -> bool:
    inner = vars(function).get("__wrapped__")
    return isinstance(inner, types.FunctionType) and is_library(inner)


def _mark(function: Callable[..., Any]) -> Any:
    held = gc.get_referents(function)
    return held[max(n for n, each in enumerate(held) if each is functools._CacheInfo) - 2]


def _held(function: Callable[..., Any]) -> list[Any]:
    held = gc.get_referents(function)
    last = max(n for n, each in enumerate(held) if each is functools._CacheInfo)
    return held[1 : last - 3]
