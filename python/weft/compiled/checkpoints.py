# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls within torch.utils.checkpoint, whose backward repeats them and has to save the same values.

A region's forward hands what autograd saves to a hook of the checkpoint's, which only counts it;
the backward runs the region again with another hook, which counts as well. So a call has to be run
in the same way both times, by a program or by PyTorch (`Regions`), and computing gradients to
compare a program with PyTorch must not run the region again (`Keeping`).
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
# Free variables of the hooks of forward and backward, by their names in torch.utils.checkpoint.
_OF_FORWARD = "frame"
_OF_BACKWARD = "target_frame_ref"


@dataclass(frozen=True)
class Region:
    """A region. frame: torch's object for it, None if that is not found. again: whether it is being
    run once more, in the backward."""

    frame: Any
    again: bool


def current() -> Region | None:
    """The innermost region of this thread, if it counts the values that are saved."""
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
    """The regions in which PyTorch runs the calls of one program, since it ran the first one."""

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
    """The result of the checkpoint's hook for a tensor, and the tensor itself while gradients are
    compared."""

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
        """A context in which PyTorch runs the call."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def release(self) -> None:
        """Forgets what is kept. The region is then run again when its values are needed."""
        for each in self._pack.saved:
            if (saved := each()) is not None:
                saved.tensor = None


@contextlib.contextmanager
def nothing_counted() -> Iterator[None]:
    """Within this context nothing that is computed counts as part of a region."""
    if current() is None:
        yield
        return
    with torch.autograd.graph.saved_tensors_hooks(_same, _same):
        yield


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
