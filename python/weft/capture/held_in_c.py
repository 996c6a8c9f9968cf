# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What objects hold beside their attributes: items, text, a number, where their class derives from
one in C."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# Objects of these hold attributes alone.
OF_ATTRIBUTES = (object, types.SimpleNamespace)
# What they hold is fixed when they are made.
FIXED = (property, staticmethod, classmethod)
# What an object is as one of the base, by no method of its own class.
VALUES: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}


def base_in_c(kind: type) -> type:
    while kind.__flags__ & _MADE_IN_PYTHON and kind.__base__ is not None:
        kind = kind.__base__
    return kind


def items(value: dict) -> Iterable[tuple[Any, Any]]:
    """The items in their order, found without calling a method of the user's."""
    return OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value)
