# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of modules. Those around a forward are code that the call runs, as the forward is; what
waits for a backward, and what runs although the forward raises, PyTorch looks after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

BACKWARD = ("_backward_hooks", "_backward_pre_hooks")
FORWARD = ("_forward_hooks", "_forward_pre_hooks")
HOOKS = BACKWARD + FORWARD


def forward_hooks(module: torch.nn.Module) -> Iterator[tuple[str, Any, bool]]:
    """The name of each one's table, the hook, and whether it is given keyword arguments."""
    attributes = vars(module)
    for name in FORWARD:
        with_keywords = attributes[f"{name}_with_kwargs"]
        for number, hook in (attributes.get(name) or {}).items():
            yield name, hook, number in with_keywords


def has_others(module: torch.nn.Module) -> bool:
    """Whether it has hooks that are no part of the call."""
    attributes = vars(module)
    return any(attributes.get(name) for name in (*BACKWARD, "_forward_hooks_always_called"))
