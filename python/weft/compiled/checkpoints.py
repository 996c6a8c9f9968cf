# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls within torch.utils.checkpoint, whose backward makes them again and has to save the same.

A region's forward hands what autograd saves to a hook of the checkpoint's and keeps a number of it
alone; the backward runs the region again under another hook, and counts. So a call has to be run by
the same, a program or PyTorch, both times (`Regions`), and gradients that are asked for while a
program is compared with PyTorch must not run the region again (`Keeping`).
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import checkpoint

_MODULE = checkpoint.__name__
# What the hooks of a forward and of a backward close over, by the names in torch.utils.checkpoint.
_OF_FORWARD = "frame"
_OF_BACKWARD = "target_frame_ref"


@dataclass(frozen=True)
class Region:
    """frame: torch's object of it, None if that is not found. again: whether it runs once more, in
    the backward."""

    frame: Any
    again: bool


def current() -> Region | None:
    """The innermost region that the thread is in, if that is one whose saved values are counted."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    if hooks is None:
        return None
    pack = hooks[0]
    if isinstance(pack, _Pack):
        return pack.region
    if getattr(pack, "__module__", None) != _MODULE:
        return None
    held = _closure(pack)
    if _OF_BACKWARD in held:
        return Region(held[_OF_BACKWARD](), again=True)
    return Region(held.get(_OF_FORWARD), again=False)


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    return {} if code is None else dict(
        zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True)
    )  # fmt: skip


class Regions:
    """Those in which PyTorch runs the calls of one program, as it has run the first one."""

    def __init__(self) -> None:
        self._frames: weakref.WeakSet[Any] = weakref.WeakSet()

    def add(self, region: Region) -> None:
        if region.frame is not None:
            self._frames.add(region.frame)

    def update(self, others: Regions) -> None:
        self._frames |= others._frames

    def __contains__(self, region: Region) -> bool:
        return region.frame in self._frames


@dataclass
class Saved:
    """What the checkpoint's hook made of a tensor, and the tensor while gradients are compared."""

    packed: Any
    tensor: torch.Tensor | None


class _Pack:
    """The hook of the region, and a reference to each tensor that it is given."""

    def __init__(self, region: Region, pack: Callable[[torch.Tensor], Any]) -> None:
        self.region = region
        self._pack = pack
        self.saved: list[weakref.ref[Saved]] = []

    def __call__(self, tensor: torch.Tensor) -> Saved:
        made = Saved(self._pack(tensor), tensor)
        self.saved.append(weakref.ref(made))
        return made


class Keeping:
    """Keeps what a call saves within a region, until `release`."""

    def __init__(self, region: Region) -> None:
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
        assert hooks is not None
        pack, unpack = hooks
        self._pack = _Pack(region, pack)

        def unpacked(saved: Saved) -> torch.Tensor:
            return unpack(saved.packed) if saved.tensor is None else saved.tensor

        self._unpack = unpacked

    def call(self) -> contextlib.AbstractContextManager[Any]:
        """While PyTorch runs it."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def release(self) -> None:
        """Forgets what is kept: the region runs again when somebody asks for it."""
        for each in self._pack.saved:
            if (saved := each()) is not None:
                saved.tensor = None


@contextlib.contextmanager
def nothing_counted() -> Iterator[None]:
    """What is computed meanwhile is none of a region's."""
    if current() is None:
        yield
        return
    with torch.autograd.graph.saved_tensors_hooks(_same, _same):
        yield


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
