# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the user's code asks about tensors as Python objects, while fake ones stand for them.

`type(x)` and `x.__class__` are what they are in an ordinary call. Whether two tensors are one, or
what the identity of one is, no guard of a traced program watches: it is told.

It listens for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import os
import sysconfig
import types
from collections.abc import Callable

import torch

from weft import _capture

_STDLIB = sysconfig.get_path("stdlib") + os.sep
_SITE = tuple({sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib")})
_TORCH = os.path.dirname(torch.__file__) + os.sep
_WEFT = os.path.dirname(os.path.dirname(__file__)) + os.sep
# What torch makes of graphs.
_MADE = ("<frozen ", "<eval_with_key>")

_TENSOR = torch.Tensor()
_PARAMETER = torch.nn.Parameter(torch.Tensor())


def _is_users(code: types.CodeType) -> bool:
    """Whether it is code of the user's, or of a library that is not torch's or Python's."""
    file = code.co_filename
    if file.startswith(_STDLIB) and not file.startswith(_SITE):
        return False
    if file.startswith(_TORCH):
        return file.startswith(os.path.join(_TORCH, "testing", ""))
    return not file.startswith((_WEFT, *_MADE))


def _stand_in(tensor: torch.Tensor) -> torch.Tensor:
    kind = type(tensor)
    if kind is torch.Tensor or not kind.__module__.startswith(("torch._subclasses", "torch.fx")):
        return tensor
    return _PARAMETER if isinstance(tensor, torch.nn.Parameter) else _TENSOR


def listen(note: Callable[[str, types.FrameType], bool]) -> None:
    """note: told what the call asks, and in which frame."""
    _capture.listen_to_trace(_is_users, torch.Tensor, _stand_in, note)
