# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's IR in Python: read it, make it, rewrite it, lower it, compare it, run it.

`weft.ir(compiled, stage)` itself is the text of a compiled callable's IR. docs/compiler-writers-
face.md is a tour.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from weft.errors import (
    IRError,
    ParseError,
    PassError,
    PatternLimitError,
    Stale,
    VerificationError,
)
from weft.ir import loops, ops
from weft.ir.building import Builder, bind_parameters, call, emit, function
from weft.ir.elements import Syntax
from weft.ir.functions import Function
from weft.ir.host_functions import external, host
from weft.ir.lower_ops import fuse_loops, lower_ops
from weft.ir.module import STAGES, Module
from weft.ir.passes import Pass, Pipeline, module_pass
from weft.ir.patterns import Match, Pattern, pattern
from weft.ir.remarks import Remark
from weft.ir.rewriting import Rewriter
from weft.ir.types import Location, OtherType, TensorType, tensor
from weft.ir.user_ops import op
from weft.ir.values import Block, Operation, Value

if TYPE_CHECKING:
    from weft.ir.capturing import of
    from weft.ir.comparing import Difference, bisect, diff
    from weft.ir.running import executable, run
    from weft.ir.slowness import Slowdown

__all__ = [
    "STAGES",
    "Block",
    "Builder",
    "Difference",
    "Function",
    "IRError",
    "Location",
    "Match",
    "Module",
    "Operation",
    "OtherType",
    "ParseError",
    "Pass",
    "PassError",
    "Pattern",
    "PatternLimitError",
    "Pipeline",
    "Remark",
    "Rewriter",
    "Slowdown",
    "Stale",
    "Syntax",
    "TensorType",
    "Value",
    "VerificationError",
    "bind_parameters",
    "bisect",
    "call",
    "diff",
    "emit",
    "executable",
    "external",
    "function",
    "fuse_loops",
    "host",
    "loops",
    "lower_ops",
    "module_pass",
    "of",
    "op",
    "ops",
    "pattern",
    "run",
    "tensor",
]


# What captures and runs programs loads torch.export, which takes long.
_LATE = {
    "Slowdown": "weft.ir.slowness",
    "Difference": "weft.ir.comparing",
    "bisect": "weft.ir.comparing",
    "diff": "weft.ir.comparing",
    "executable": "weft.ir.running",
    "of": "weft.ir.capturing",
    "run": "weft.ir.running",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)


class _Package(ModuleType):
    """A module that can be called."""

    def __call__(self, compiled: Any, stage: str = "graph", role: str = "forward") -> str:
        """The IR of the latest program of what `weft.compile` returned, as text."""
        from weft.compiled.api import text_of_ir

        return text_of_ir(compiled, stage, role)


sys.modules[__name__].__class__ = _Package
