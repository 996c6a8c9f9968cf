# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notices that a node of autograd gets a hook: what accumulates the gradients of a leaf shows
nobody that it has one."""

from __future__ import annotations

import functools

import torch

from weft import _capture


def notice_hooks() -> None:
    """From now on. Torch's nodes in C++ and in Python ask this function for what holds a hook."""
    mixin = torch.autograd.function._HookMixin
    register = mixin._register_hook

    @functools.wraps(register)
    def noticed(*args, **kwargs):
        _capture.note_hook()
        return register(*args, **kwargs)

    mixin._register_hook = staticmethod(noticed)
