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
    from weft.artifacts.load import load
    from weft.capture.kept_out import disable
    from weft.compiled.api import (
        artifact_path,
        compile,
        explain,
        from_exported_program,
        graph,
        guards,
        log,
        profile,
        report,
        reset,
        schedules,
        stats,
        visualize,
        why_miss,
    )
    from weft.compiled.from_traced import from_pt2, from_traced
    from weft.compiled.sizes import Range
    from weft.compiled.warming import warm
    from weft.onnx import from_onnx
    from weft.training.compiled_step import compile_step
    from weft.training.functional_form import functional

__version__ = "0.1.0"

__all__ = [
    "Range",
    "artifact_path",
    "cache",
    "compile",
    "compile_step",
    "config",
    "disable",
    "dlpack",
    "errors",
    "explain",
    "from_exported_program",
    "from_onnx",
    "from_pt2",
    "from_traced",
    "functional",
    "graph",
    "guards",
    "get_num_threads",
    "ir",
    "load",
    "log",
    "profile",
    "report",
    "reset",
    "schedules",
    "set_num_threads",
    "stats",
    "te",
    "tune",
    "visualize",
    "warm",
    "why_miss",
]

_HOMES = {
    "Range": "weft.compiled.sizes",
    "artifact_path": "weft.compiled.api",
    "compile": "weft.compiled.api",
    "compile_step": "weft.training.compiled_step",
    "disable": "weft.capture.kept_out",
    "explain": "weft.compiled.api",
    "from_exported_program": "weft.compiled.api",
    "from_onnx": "weft.onnx",
    "from_pt2": "weft.compiled.from_traced",
    "from_traced": "weft.compiled.from_traced",
    "functional": "weft.training.functional_form",
    "graph": "weft.compiled.api",
    "guards": "weft.compiled.api",
    "load": "weft.artifacts.load",
    "log": "weft.compiled.api",
    "profile": "weft.compiled.api",
    "report": "weft.compiled.api",
    "reset": "weft.compiled.api",
    "schedules": "weft.compiled.api",
    "stats": "weft.compiled.api",
    "visualize": "weft.compiled.api",
    "warm": "weft.compiled.warming",
    "why_miss": "weft.compiled.api",
}


def __getattr__(name: str) -> Any:
    if name in ("cache", "config", "dlpack", "ir", "te", "tune"):
        return importlib.import_module(f"weft.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
