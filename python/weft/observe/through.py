# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of libraries through which the observer finds the functions that they call."""

from __future__ import annotations

import functools
import types
from typing import Any


def disabled(function: Any) -> Any:
    """The function that torch._disable_dynamo has wrapped as `function`. What the first call of
    `function` would store on it is stored now."""
    names = function.__code__.co_freevars
    cells = dict(zip(names, function.__closure__))
    inner = cells["fn"].cell_contents
    if getattr(inner, "__dynamo_disable", None) is None:
        import torch._dynamo

        recursive = cells["recursive"].cell_contents
        inner.__dynamo_disable = torch._dynamo.disable(inner, recursive, wrapping=False)
    return inner


def dispatch_code() -> types.CodeType:
    """The code by which each functools.singledispatch finds the implementation for a class."""
    codes = functools.singledispatch.__code__.co_consts
    return next(
        each for each in codes if isinstance(each, types.CodeType) and each.co_name == "dispatch"
    )
