# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's inputs under the names that its user gave them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.frontend import InputSource

_ROOT = "m0."  # tracing.py's name of the only module


def input_namer(
    target: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Callable[[InputSource], str | None]:
    """The names of inputs of `target(*args, **kwargs)`: `x`, `batch[0]`, `options['mask']` for
    what the caller passes, `layer.weight` for what a module holds. None where there is none.
    """
    users = _argument_names(target, args, kwargs)
    module = target.__self__ if isinstance(target, types.MethodType) else target

    def name(source: InputSource) -> str | None:
        if source.kind == "user":
            return users[source.index] if users else None
        if source.name and isinstance(module, torch.nn.Module):
            own = source.name.removeprefix(_ROOT)
            return source.name if own in users else own
        return source.name

    return name


def _argument_names(target: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """For each leaf of (args, kwargs); empty where the target does not tell."""
    called = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(called).parameters.values()
        leaves, _ = pytree.tree_flatten_with_path((args, kwargs))
    except (TypeError, ValueError):  # a built-in function, or a pytree without paths
        return []
    positional = [
        each.name
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    rest = next((each.name for each in parameters if each.kind == each.VAR_POSITIONAL), "args")
    positional += [f"{rest}[{i}]" for i in range(len(args) - len(positional))]
    return [
        (positional[path[1].idx] if path[0].idx == 0 else path[1].key) + pytree.keystr(path[2:])
        for path, _ in leaves
    ]
