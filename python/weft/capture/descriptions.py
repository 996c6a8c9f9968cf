# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A digest of what a program depends on that is equal in another process.

Keys of states (state.py) name objects by identity, which holds in one process alone. Here an object
is named by what it is: a function by its code, a class by its name, a container by its items. What
cannot be named in this way has no digest.
"""

from __future__ import annotations

import contextvars
import copyreg
import enum
import functools
import hashlib
import inspect
import logging
import os
import re
import struct
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Set
from typing import Any

import torch

from weft.capture import remembered_calls
from weft.capture.kinds_of_state import LOCKS
from weft.capture.observation import is_standard_stream
from weft.capture.reachability import is_library, is_library_class, is_stable
from weft.capture.signature import PLAIN, Same

_WORD = struct.calcsize("P")
# A state of a model has some thousands of parts.
_MOST_PARTS = 200_000

# Files of torch and of Python, whose versions are named once.
_VERSIONED = (torch.__path__[0] + os.sep, os.path.dirname(os.__file__) + os.sep)

_MAPPINGS = (dict, types.MappingProxyType)
_CONTAINERS = (tuple, list, deque, OrderedDict, *_MAPPINGS)
_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodWrapperType,
)
_ALIASES = (types.GenericAlias, types.UnionType)
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


class Unknown(Exception):
    """There is something that has no name in another process."""


class Description:
    """Collects parts. packages: the top-level packages of what has been named."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # alive, so that addresses stay their own
        self.packages: set[str] = set()

    def digest(self) -> str:
        lengths = ",".join(map(str, map(len, self._texts)))
        data = "".join((lengths, ";", *self._texts)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=20).hexdigest()

    def add(self, part: Any) -> None:
        """A part of a key: plain values, tuples and frozensets of parts, classes, and `Same` of
        anything. Raises: Unknown."""
        kind = type(part)
        if kind is Same:
            self.object(part.value)
        elif kind in PLAIN or kind is torch.Size:
            self._text(f"{kind.__name__} {part!r}")
        elif isinstance(part, tuple):
            self._text(f"{kind.__name__} of {len(part)}")
            for each in part:
                self.add(each)
        elif isinstance(part, frozenset):
            self._set(part)
        elif isinstance(part, type):
            self.object(part)
        else:
            raise Unknown(f"a {kind.__qualname__} in a key")

    def object(self, value: Any) -> None:
        """Anything, by what it is. Raises: Unknown."""
        kind = type(value)
        if kind in PLAIN or kind is torch.Size:
            self.add(value)
            return
        number = self._numbers.get(id(value))
        if number is not None:
            self._text(f"again {number}")
            return
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        if isinstance(value, type):
            self._named(value)
        elif kind is types.FunctionType:
            self._function(value)
        elif kind is types.CodeType:
            self._code(value)
        elif kind is types.MethodType:
            self._all("method", value.__func__, value.__self__)
        elif isinstance(value, types.ModuleType):
            self._text(f"module {value.__name__}")
        elif isinstance(value, _IN_C):
            self._in_c(value)
        elif isinstance(value, torch.Tensor):
            self.tensor(value)
        elif isinstance(value, _OPERATORS):
            self._text(f"operator {value}")
        elif isinstance(value, _CONTAINERS):
            self._container(value)
        elif kind in (set, frozenset):
            self._set(value)
        elif isinstance(value, (staticmethod, classmethod)):
            self._all(kind.__name__, value.__func__)
        elif isinstance(value, property):
            self._named(kind)
            self._all(
                "property", value.fget, value.fset, value.fdel, getattr(value, "__dict__", None)
            )
        elif isinstance(value, remembered_calls.KIND):  # what it remembers, its function would give
            self._all("remembers", value.__wrapped__, vars(value))
        elif kind is types.GeneratorType and inspect.getgeneratorstate(value) == "GEN_CREATED":
            self._all("generator", value.gi_code, value.gi_frame.f_locals)
        elif kind is functools.partial:
            self._all("partial", value.func, value.args, value.keywords)
        else:
            self._instance(value)

    def tensor(self, value: torch.Tensor) -> None:
        """Without its elements. Raises: Unknown."""
        if value.layout is not torch.strided:
            raise Unknown(f"a tensor of layout {value.layout}")
        self._named(type(value))
        flags = (value.requires_grad, value.is_leaf, value.is_inference(), value.is_neg())
        facts = (value.dtype, value.device, tuple(value.shape), value.stride(), *flags)
        self._text(repr((*facts, value.is_conj())))
        if attributes := vars(value):
            self.object(attributes)

    def _text(self, text: str) -> None:
        self._texts.append(text)
        if len(self._texts) > _MOST_PARTS:
            raise Unknown("too many parts")

    def _all(self, name: str, *values: Any) -> None:
        self._text(name)
        for each in values:
            self.object(each)

    def _library_class(self, kind: type) -> None:
        """Raises: Unknown, for a class of the user's, in which code may answer for attributes."""
        if not (is_stable(kind) or is_library_class(kind)):
            raise Unknown(f"an object of {kind.__qualname__}")
        self._named(kind)

    def _named(self, kind: type) -> None:
        self._package(kind.__module__)
        self._text(f"class {kind.__module__} {kind.__qualname__}")

    def _package(self, module: Any) -> None:
        self.packages.add(str(module).partition(".")[0])

    def _function(self, function: types.FunctionType) -> None:
        self._package(function.__module__)
        self._text(f"function {function.__module__} {function.__qualname__}")
        # A decorated function has the name of another one.
        self._code(function.__code__)
        if not is_stable(function):
            self._all("defaults", function.__defaults__, function.__kwdefaults__)
            if is_library(function):  # what functions of the user's hold is looked at (state.py)
                for cell in function.__closure__ or ():
                    self._all("cell", *_contents(cell))

    def _code(self, code: types.CodeType) -> None:
        if code.co_filename.startswith(_VERSIONED):
            self._text(f"code {code.co_filename}:{code.co_firstlineno} {code.co_qualname}")
        else:
            self._text(_digest_of_code(code))

    def _in_c(self, value: Any) -> None:
        self._text(f"{type(value).__name__} {getattr(value, '__qualname__', value.__name__)}")
        owner = getattr(value, "__objclass__", None)
        owner = getattr(value, "__self__", None) if owner is None else owner
        if owner is None:
            self._text(str(getattr(value, "__module__", None)))
        else:
            self.object(owner)

    def _container(self, value: Any) -> None:
        """C is asked what it holds: a class of a library's may tell something else."""
        kind = type(value)
        base = next(base for base in _CONTAINERS if isinstance(value, base))
        if kind not in _CONTAINERS:
            self._library_class(kind)
            self._all("attributes", getattr(value, "__dict__", None))
        self._text(f"{base.__name__} of {len(value)}")
        if isinstance(value, defaultdict):
            self.object(value.default_factory)
        if base is OrderedDict or base in _MAPPINGS:
            for key, held in base.items(value):
                self.object(key)
                self.object(held)
        else:
            for each in base.__iter__(value):
                self.object(each)

    def _set(self, value: Set[Any]) -> None:
        """In an order of its own: that of a set is another one in each process. Its items name
        nothing in common with others, as they have no place to be numbered in."""
        digests = []
        for each in value:
            alone = Description()
            alone.add(each)
            if any(not isinstance(kept, type) for kept in alone._kept):
                raise Unknown("a set of objects")
            self.packages |= alone.packages
            digests.append(alone.digest())
        self._text(f"{type(value).__name__} {sorted(digests)}")

    def _instance(self, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum):
            self._named(kind)
            self._text(str(value.name))
        elif isinstance(value, re.Pattern):
            self._all("pattern", value.pattern, value.flags)
        elif kind.__module__ == "typing" or isinstance(value, _ALIASES):
            self._text(repr(value))
        elif kind.__name__ == "PyCapsule":  # a pointer of C's
            self._text("capsule")
        elif isinstance(value, LOCKS):
            self._text(f"lock {kind.__name__}")
        elif isinstance(value, contextvars.ContextVar):
            self._all(f"variable {value.name}", value.get(None))
        elif isinstance(value, logging.Logger):
            self._text(f"logger {value.name}")
        elif isinstance(value, logging.Handler):
            self._named(kind)
            self._text(f"handler {value.level}")
        elif is_standard_stream(value):
            self._text("stream")
        else:
            self._library_class(kind)
            if not _is_of_python(kind):
                raise Unknown(f"an object of {kind.__qualname__}")
            self._all("attributes", getattr(value, "__dict__", None))
            for name in copyreg._slotnames(kind):
                self._all(f"slot {name}", *([getattr(value, name)] if hasattr(value, name) else ()))


def _contents(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is not filled yet
        return ()


def _is_of_python(kind: type) -> bool:
    """Whether objects hold nothing beside attributes, slots and weak references."""
    words = len(copyreg._slotnames(kind)) + bool(kind.__weakrefoffset__)
    return kind.__basicsize__ == object.__basicsize__ + words * _WORD and not kind.__itemsize__


@functools.lru_cache(maxsize=1 << 14)
def _digest_of_code(code: types.CodeType) -> str:
    """Lines as well: reasons and reports name them."""
    facts = [
        repr(getattr(code, name))
        for name in (
            *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags"),
            *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_filename"),
            *("co_qualname", "co_firstlineno", "co_linetable", "co_exceptiontable"),
        )
    ]
    facts += map(_constant, code.co_consts)
    return hashlib.blake2b("\0".join(facts).encode("utf-8", "surrogatepass")).hexdigest()


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _digest_of_code(value)
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(_constant, value))}"
    if isinstance(value, tuple):
        return f"tuple {[*map(_constant, value)]}"
    return f"{type(value).__name__} {value!r}"
