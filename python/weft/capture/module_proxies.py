# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules as torch's tracer shows them where one has two paths: as objects of subclasses of their
classes, which it makes. The call makes none, and no `__init_subclass__` of the user's is to run."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from torch.fx.experimental.proxy_tensor import _AttrProxy


def proxies_unnoticed() -> AbstractContextManager[Any]:
    """For a process that traces: `_AttrProxy` is the first base of these classes."""

    @classmethod
    def ignored(cls: type, **_: Any) -> None:
        pass

    return mock.patch.object(_AttrProxy, "__init_subclass__", ignored)
