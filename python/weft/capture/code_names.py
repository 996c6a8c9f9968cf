# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What code objects name: globals with their attributes, imports, text."""

from __future__ import annotations

import dis
import functools
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

# Where frames of torch's and of ours are.
NOT_THE_USERS = (torch.__path__[0] + os.sep, str(Path(__file__).parents[1]) + os.sep)

# Operations, each with the number of bits ahead of the number of its name.
_CACHE = dis.opmap.get("CACHE", -1)
_OF_GLOBALS = {dis.opmap[name]: 0 for name in ("LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")}
_OF_GLOBALS[dis.opmap["LOAD_GLOBAL"]] = 1
_OF_ATTRIBUTES = {
    dis.opmap[name]: int(name == "LOAD_ATTR" and sys.version_info >= (3, 12))
    for name in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")
    if name in dis.opmap
}


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and the codes of the functions, lambdas and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def strings(code: types.CodeType) -> Iterator[str]:
    for each in codes(code):
        yield from texts(each.co_consts)


def texts(constants: Iterable[Any]) -> Iterator[str]:
    """Those in the tuples and sets of constants, too, that loops and `in` go by."""
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from texts(constant)


@functools.lru_cache(maxsize=4096)
def global_paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Global names with the attributes of them that are read or set: `np.pi` is ("np", "pi").

    Remembered, as a changed attribute costs a call another look at all code that it reaches.
    """
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    names, data, high = code.co_names, code.co_code, 0
    # Each of `dis.get_instructions`' objects takes longer to make than this takes to look at ten.
    for at in range(0, len(data), 2):
        operation = data[at]
        if operation == _CACHE:
            continue
        argument = high | data[at + 1]
        high = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if operation in _OF_ATTRIBUTES and path:
            path.append(names[argument >> _OF_ATTRIBUTES[operation]])
        elif not high:
            if path:
                paths.append(tuple(path))
                path = []
            if operation in _OF_GLOBALS:
                path = [names[argument >> _OF_GLOBALS[operation]]]
    if path:
        paths.append(tuple(path))
    return tuple(paths)


@functools.lru_cache(maxsize=4096)
def imports(code: types.CodeType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Modules, by absolute names, with the names that are imported from each."""
    found: list[tuple[str, tuple[str, ...]]] = []
    constants: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_CONST":
            constants.append(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            level, names = constants[-2:]
            if level == 0:
                found.append((instruction.argval, names or ()))
    return tuple(found)


def line_of(target: Callable[..., Any] | None) -> str | None:
    """Where the user's function begins, for an error that a call as a whole has met."""
    function = target.forward if isinstance(target, torch.nn.Module) else target
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    is_users = code is not None and not code.co_filename.startswith(NOT_THE_USERS)
    return f"{code.co_filename}:{code.co_firstlineno}" if is_users else None
