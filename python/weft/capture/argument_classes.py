# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes of arguments that are containers of a kind of their own: named tuples, dataclasses, what
torch's pytrees are told of. A pattern describes what such an object holds, and no guard watches
what code of its class reads.
"""

from __future__ import annotations

import dataclasses
import types
from _collections import _tuplegetter
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch.utils._pytree as pytree

from weft import _core
from weft.capture.library_paths import is_of_stdlib
from weft.capture.reachability import is_library_class, is_stable

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
# What Python's own machinery makes of a class's fields.
_OF_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType, _tuplegetter)
_OF_NAMED_TUPLES = ("_fields", "_field_defaults")


def code_of_users(kind: type) -> str | None:
    """The name of something that a class of the user's has beside fields, and that programs may
    depend on: a method, a property, an object. None if there is nothing."""
    for base in (*type(kind).__mro__, *kind.__mro__):
        if not is_stable(base) and not is_library_class(base):
            for name, member in vars(base).items():
                if not _is_of_fields(name, member):
                    return name
    return None


def _is_of_fields(name: str, member: Any) -> bool:
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if isinstance(member, types.FunctionType):
        # `dataclass` and `namedtuple` write some of theirs as text.
        file = member.__code__.co_filename
        return file.startswith("<") or is_of_stdlib(file)
    if type(member) in _PLAIN or isinstance(member, _OF_FIELDS) or name in _OF_NAMED_TUPLES:
        return True
    return name.startswith("__") and name.endswith("__") and is_stable(type(member))


def watched(flatten: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], tuple[Any, Any]]:
    """As `flatten`, and changes of the class and attributes beside its fields tell calls apart."""

    def flattened(value: Any) -> tuple[Any, Any]:
        children, context = flatten(value)
        return children, (context, _core.class_version(type(value)), *other_attributes(value))

    return flattened


def other_attributes(value: Any) -> Iterator[str]:
    """The attributes of a container or a dataclass that no field describes."""
    if dataclasses.is_dataclass(value):
        fields = {field.name for field in dataclasses.fields(value)}
    elif isinstance(value, (tuple, list, dict, deque)):
        fields = set()
    else:
        return
    yield from (name for name in getattr(value, "__dict__", ()) if name not in fields)


def parts_of(value: Any) -> dict[str, Any] | None:
    """What a pytree or a dataclass holds, by how each is reached; None of anything else."""
    node = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
    if node is None:
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return None
        fields = dataclasses.fields(value)
        return {f".{field.name}": getattr(value, field.name) for field in fields}
    children = node.flatten_fn(value)[0]
    if isinstance(value, dict) and len(value) == len(children):
        keys = (repr(key) if type(key) in _PLAIN else f"key {i}" for i, key in enumerate(value))
        return {f"[{key}]": each for key, each in zip(keys, children)}
    names = getattr(type(value), "_fields", None) if isinstance(value, tuple) else None
    labels = [f".{each}" for each in names] if names else [f"[{i}]" for i in range(len(children))]
    return dict(zip(labels, children))
