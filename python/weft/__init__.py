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
    from weft import cache, config, dlpack, ir, te, tune
    from weft.artifact import load
    from weft.compiled import (
        artifact_path,
        compile,
        from_exported_program,
        graph,
        profile,
        report,
        stats,
    )
    from weft.onnx import from_onnx
    from weft.traced import from_pt2, from_traced

__version__ = "0.1.0"

__all__ = [
    "artifact_path",
    "cache",
    "compile",
    "config",
    "dlpack",
    "errors",
    "from_exported_program",
    "from_onnx",
    "from_pt2",
    "from_traced",
    "graph",
    "get_num_threads",
    "ir",
    "load",
    "profile",
    "report",
    "set_num_threads",
    "stats",
    "te",
    "tune",
]

_HOMES = {
    "artifact_path": "weft.compiled",
    "compile": "weft.compiled",
    "from_exported_program": "weft.compiled",
    "from_onnx": "weft.onnx",
    "from_pt2": "weft.traced",
    "from_traced": "weft.traced",
    "graph": "weft.compiled",
    "load": "weft.artifact",
    "profile": "weft.compiled",
    "report": "weft.compiled",
    "stats": "weft.compiled",
}


def __getattr__(name: str) -> Any:
    if name in ("cache", "config", "dlpack", "ir", "te", "tune"):
        return importlib.import_module(f"weft.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
