# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.tag_scope`: one tag for all tensors that are computed inside it."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Any

from weft.te.errors import TEError

_current: ContextVar[str] = ContextVar("te.tag", default="")


class tag_scope(contextlib.ContextDecorator):  # noqa: N801, a function of TVM's
    """`with te.tag_scope("conv"): …`, or a decorator: every `te.compute` inside gives its tensors
    this tag. Raises: TEError inside of another one, as in TVM."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def _recreate_cm(self) -> tag_scope:
        return tag_scope(self.tag)

    def __enter__(self) -> tag_scope:
        if _current.get():
            raise TEError(f"te.tag_scope: {self.tag!r} inside of {_current.get()!r}")
        self._token = _current.set(self.tag)
        return self

    def __exit__(self, *_: Any) -> None:
        _current.reset(self._token)


def tagged(tag: str, name: str) -> str:
    """The tag of a tensor with this name, for which `tag` was given."""
    if tag and _current.get():
        raise TEError(f"{name}: the tag {tag!r} inside of te.tag_scope({_current.get()!r})")
    return tag or _current.get()
