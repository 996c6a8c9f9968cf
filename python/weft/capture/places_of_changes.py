# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's line of what a call does to state: code is searched for what names it."""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterable, Iterator, Sequence

from weft.capture.guard_texts import difference
from weft.capture.reachability import References
from weft.capture.snapshots import Snapshot
from weft.frontend.lowered import Location

_SETS = ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF")
# Calls of objects that are there seldom run these.
_MAKES = ("__init__", "__new__", "__post_init__")
_NAMES = re.compile(r"[^\W\d]\w*")
# By which code fills gradients, changes settings of torch, and seeds or draws.
GRADIENTS = ("backward", "grad")
SETTINGS = (
    *("set_grad_enabled", "inference_mode", "set_default_dtype", "use_deterministic_algorithms"),
    *("set_autocast_enabled", "set_autocast_dtype", "set_float32_matmul_precision"),
    *("set_num_threads", "set_fastpath_enabled"),
)
RANDOM = (
    *("manual_seed", "seed", "fork_rng", "set_rng_state", "get_rng_state", "set_state", "setstate"),
    *("Generator", "initial_seed", "default_rng", "RandomState", "random", "randint", "choice"),
    *("choices", "sample", "shuffle", "uniform", "gauss", "normal", "rand", "randn"),
)


def place_of(references: References, names: Sequence[str]) -> str | None:
    """As `model.py:12 (forward)`: where one of the names is set, or else read; where none is, where
    the first of the user's functions begins. None without any."""
    known = [function.__code__ for function in references.code]
    known = [each for each in known if each.co_name not in _MAKES] or known
    for name, sets in [(name, sets) for sets in (True, False) for name in names]:
        for code in _codes(known):
            if (line := _line(code, name, sets)) is not None:
                return str(Location(code.co_filename, line, code.co_name))
    first = (Location(each.co_filename, each.co_firstlineno, each.co_name) for each in known)
    return next(map(str, first), None)


def place_of_change(references: References, before: Snapshot, after: Snapshot) -> str | None:
    """The place of what differs between the two, as `place_of` gives it."""
    names = [*_bound(references, before), *_named(difference(before.key, after.key))]
    return place_of(references, names)


def _bound(references: References, before: Snapshot) -> Iterator[str]:
    """Names of variables of modules and outer functions that are bound anew."""
    cells, names = before.bindings.changed()
    yield from names
    for function in references.functions:
        free = zip(function.__code__.co_freevars, function.__closure__ or ())
        yield from (name for name, cell in free if any(cell is each for each in cells))


def _named(text: str | None) -> list[str]:
    """The names in the path with which a text begins, the last one first: of
    `self.stats.calls == 3, found 4` first `calls`."""
    path = (text or "").partition(" ")[0]
    return _NAMES.findall(path)[::-1]


def _codes(codes: Iterable[types.CodeType]) -> Iterator[types.CodeType]:
    for code in codes:
        yield code
        yield from _codes(each for each in code.co_consts if isinstance(each, types.CodeType))


def _line(code: types.CodeType, name: str, sets: bool) -> int | None:
    for each in dis.get_instructions(code):
        if (each.opname in _SETS) == sets and each.argval == name and each.positions:
            return each.positions.lineno
    return None
