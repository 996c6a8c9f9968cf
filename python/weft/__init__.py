# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weft compiles PyTorch programs to native shared objects and calls them.

Importing this package loads neither torch nor the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft import errors
from weft._core import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from weft.artifact import load
    from weft.compiled import compile, from_exported_program

__version__ = "0.1.0"

__all__ = [
    "compile",
    "errors",
    "from_exported_program",
    "get_num_threads",
    "load",
    "set_num_threads",
]

_HOMES = {
    "compile": "weft.compiled",
    "from_exported_program": "weft.compiled",
    "load": "weft.artifact",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
