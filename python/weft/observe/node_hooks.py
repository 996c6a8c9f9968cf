# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notices when a node of autograd gets a hook. A node that accumulates the gradient of a leaf gives
no way to ask whether it has one."""

from __future__ import annotations

import functools

import torch

from weft import _capture


def notice_hooks() -> None:
    """Starts noticing. Torch's nodes in C++ and Python register each hook by the function that is
    replaced here."""
    mixin = torch.autograd.function._HookMixin
    register = mixin._register_hook

    @functools.wraps(register)
    def noticed(*args, **kwargs):
        _capture.note_hook()
        return register(*args, **kwargs)

    mixin._register_hook = staticmethod(noticed)
