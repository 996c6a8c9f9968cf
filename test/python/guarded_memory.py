# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that ends at an inaccessible page, or begins right after one. The rest of its own pages
must not change."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import torch

from weft.frontend.dtypes import DTYPES

SIDES = ("end", "begin")
PAGE = mmap.PAGESIZE
UNTOUCHED = 0xA5
_NO_ACCESS = 0  # PROT_NONE, which the mmap module does not define

_libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """`size` bytes between two inaccessible pages, shared with forked children.

    side: "end": they end at one page, as closely as `alignment` allows; "begin": they begin right
    after the other.
    """

    def __init__(self, label: str, size: int, side: str, alignment: int = 1) -> None:
        self.label, self.size = label, size
        self.room = max(PAGE, -(-size // PAGE) * PAGE)
        self.mapping = mmap.mmap(-1, self.room + 2 * PAGE)
        self._first = ctypes.addressof(ctypes.c_char.from_buffer(self.mapping))
        slack = (self.room - size) // alignment * alignment if side == "end" else 0
        self.start = PAGE + slack
        self.mapping[PAGE : PAGE + self.room] = bytes([UNTOUCHED]) * self.room
        self._protect(0, PAGE, _NO_ACCESS)
        self._protect(PAGE + self.room, PAGE, _NO_ACCESS)

    @property
    def address(self) -> int:
        return self._first + self.start

    def clear(self) -> None:
        self.mapping[self.start : self.start + self.size] = bytes(self.size)

    def seal(self) -> None:
        """Makes the memory read-only."""
        self._protect(PAGE, self.room, mmap.PROT_READ)

    def damage(self) -> str | None:
        """Which bytes next to the buffer have changed, or None."""
        before = self.mapping[PAGE : self.start]
        behind = self.mapping[self.start + self.size : PAGE + self.room]
        changed = [i - len(before) for i, byte in enumerate(before) if byte != UNTOUCHED]
        changed += [self.size + i for i, byte in enumerate(behind) if byte != UNTOUCHED]
        return f"{self.label} ({self.size} bytes): byte {changed[0]} changed" if changed else None

    def tensor(self, spec: dict[str, Any]) -> torch.Tensor:
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        count = self.size // dtype.itemsize
        flat = torch.frombuffer(self.mapping, dtype=dtype, count=count, offset=self.start)
        return flat.as_strided(shape, spec["strides"])

    def _protect(self, offset: int, size: int, protection: int) -> None:
        if _libc.mprotect(ctypes.c_void_p(self._first + offset), size, protection):
            raise OSError(ctypes.get_errno(), "mprotect")
