# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results that `functools.lru_cache` and `functools.cache` keep of a function.

Python has no name for them, but the collector tells what the function's object holds, in the order
of lru_cache_tp_traverse (CPython, Modules/_functoolsmodule.c): its class; the key, the result and
the class of each entry of a bounded cache; the dict of entries; the function; three of functools'
own, the last of which is the class of `cache_info()`.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

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


def _held(function: Callable[..., Any]) -> list[Any]:
    held = gc.get_referents(function)
    last = max(n for n, each in enumerate(held) if each is functools._CacheInfo)
    return held[1 : last - 3]
