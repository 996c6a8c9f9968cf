# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of modules. Those around a forward are code that the call runs, as the forward is; what
waits for a backward, and what runs although the forward raises, PyTorch looks after."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from weft.capture.signature import Same

BACKWARD = ("_backward_hooks", "_backward_pre_hooks")
FORWARD = ("_forward_hooks", "_forward_pre_hooks")
HOOKS = BACKWARD + FORWARD
TENSORS = ("_parameters", "_buffers")
# Attributes of every module that do not tell its computation apart.
BOOKKEEPING = frozenset(
    (*HOOKS, *TENSORS, "_modules", "_non_persistent_buffers_set")
    + tuple(f"{name}_with_kwargs" for name in HOOKS)
    + tuple(f"{name}_always_called" for name in HOOKS)
    + tuple(f"_{when}state_dict_{kind}hooks" for when in ("", "load_") for kind in ("", "pre_"))
    + ("_load_state_dict_post_hooks",)
)


def tables(module: torch.nn.Module) -> Iterator[tuple[str, dict, dict]]:
    """The name of each, its hooks by number, and the numbers of those that are given keywords."""
    attributes = vars(module)
    for name in HOOKS:
        if (hooks := attributes.get(name)) is not None:
            yield name, hooks, attributes.get(f"{name}_with_kwargs", {})  # backward ones have none


def forward_hooks(module: torch.nn.Module) -> Iterator[tuple[str, Any, bool]]:
    """The name of each one's table, the hook, and whether it is given keyword arguments."""
    for name, hooks, with_keywords in tables(module):
        for number, hook in hooks.items() if name in FORWARD else ():
            yield name, hook, number in with_keywords


def by_code(hook: Any) -> Any:
    """Stands for a function: made anew it is the same hook, if what it reaches is the same."""
    return Same(hook.__code__) if type(hook) is types.FunctionType else hook


def has_others(module: torch.nn.Module) -> bool:
    """Whether it has hooks that are no part of the call."""
    attributes = vars(module)
    return any(attributes.get(name) for name in (*BACKWARD, "_forward_hooks_always_called"))
