# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions behind whose own code the observer looks for what they call."""

from __future__ import annotations

import functools
import types
from typing import Any


def disabled(function: Any) -> Any:
    """What torch._disable_dynamo was given for `function`, with what its first call keeps there."""
    names = function.__code__.co_freevars
    cells = dict(zip(names, function.__closure__))
    inner = cells["fn"].cell_contents
    if getattr(inner, "__dynamo_disable", None) is None:
        import torch._dynamo

        recursive = cells["recursive"].cell_contents
        inner.__dynamo_disable = torch._dynamo.disable(inner, recursive, wrapping=False)
    return inner


def dispatch_code() -> types.CodeType:
    """Of the function by which each functools.singledispatch finds what stands for a class."""
    codes = functools.singledispatch.__code__.co_consts
    return next(
        each for each in codes if isinstance(each, types.CodeType) and each.co_name == "dispatch"
    )
