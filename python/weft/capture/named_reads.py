# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which attributes of modules code may read: those that it names, unless it has a way to others.

What is kept beside a module and read by no call, such as the rewards of an episode, may then
change without a program being another one.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

# Ways to attributes whose names are computed, or to all of an object's.
_WAYS = frozenset(
    "__dict__ __getattribute__ __getstate__ __reduce__ __reduce_ex__ __slots__ __match_args__ "
    "getattr hasattr setattr delattr vars dir eval exec compile locals globals attrgetter "
    "methodcaller copy deepcopy pickle dumps dump save script trace symbolic_trace replicate "
    "getmembers getattr_static asdict astuple replace fields gc get_referents get_objects ctypes "
    "_getframe currentframe format_map share_memory __init__".split()
)
_FUNCTIONS = (getattr, hasattr, setattr, delattr, vars, dir, eval, exec, locals, globals)
_CLASSES = (operator.attrgetter, operator.methodcaller)
_MODULES = (
    *("copy", "copyreg", "pickle", "_pickle", "marshal", "inspect", "dataclasses", "gc", "ctypes"),
    *("pprint", "reprlib", "shelve", "multiprocessing", "concurrent", "threading", "importlib"),
    *("torch.serialization", "torch.jit", "torch.fx", "torch.multiprocessing", "torch.package"),
    *("torch.nn.parallel", "torch.ao", "torch.quantization", "torch.onnx", "torch.export"),
)
_HELD = (list, deque, dict, set, int, float, bool, str, type(None))


@functools.lru_cache(maxsize=4096)
def texts(code: types.CodeType) -> frozenset[str]:
    """Names that code reads or sets attributes by, and text in it, of formats and patterns. What
    `__init__` sets, no call does."""
    names: set[str] = {*code.co_names}
    if code.co_name == "__init__":
        names = {each.argval for each in dis.get_instructions(code)
                 if each.opname != "STORE_ATTR" and each.argval in names}  # fmt: skip
    return frozenset(names.union(_texts(code.co_consts)))


def _texts(constants: tuple) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _texts(tuple(constant))


@functools.lru_cache(maxsize=4096)
def has_ways(code: types.CodeType) -> bool:
    """Whether code may read attributes that it does not name."""
    names = {*code.co_names} - ({"__init__"} if code.co_name == "__init__" else set())
    if not _WAYS.isdisjoint(names):
        return True
    return any(each.opname == "MATCH_CLASS" for each in dis.get_instructions(code))


def is_way(value: Any) -> bool:
    """Whether it is a function or class of Python's or torch's that reads whatever an object has,
    under whichever name the user's code knows it."""
    if isinstance(value, _CLASSES):
        return True
    if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return False
    if any(value is each for each in (*_FUNCTIONS, *_CLASSES)):
        return True
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and any(
        module == each or module.startswith(f"{each}.") for each in _MODULES
    )


@functools.cache
def _names_of_layers() -> frozenset[str]:
    """By which torch's layers read attributes, of each other and of what they are given."""
    named: set[str] = set()
    for name, module in [*sys.modules.items()]:
        if name.startswith(("torch.nn.", "torch.utils.checkpoint")):
            for value in [*vars(module).values()]:
                for function in [value, *(vars(value).values() if isinstance(value, type) else ())]:
                    if isinstance(function, types.FunctionType):
                        named |= _all_names(function.__code__)
    return frozenset(named)


def _all_names(code: types.CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return {*code.co_names, *_texts(code.co_consts)}.union(*map(_all_names, inner))


def is_torchs(name: str, value: Any) -> bool:
    """Whether torch itself may read such an attribute of a module of the user's."""
    return type(value) not in _HELD or name.startswith("_") or name in _names_of_layers()
