# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call writes, as it was at a moment: a tensor's memory, an entry of a dict."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch

from weft.observe.sameness import difference


def snapshot(written: Any, key: Hashable = None) -> Memory | Entry:
    """written: a tensor; or with a key a dict, or an object whose attribute it is."""
    if isinstance(written, torch.Tensor):
        return Memory(written)
    return Entry(written if type(written) is dict else vars(written), key)


class Memory:
    """tensor: whose storage is copied, as a whole. Nobody's version counter notices."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        memory = torch.empty(0, dtype=torch.uint8)
        with torch.no_grad():
            self._memory = memory.set_(tensor.untyped_storage())
            self._bytes = self._memory.clone()

    def restore(self) -> None:
        self._memory.copy_(self._bytes)

    def again(self) -> Memory:
        """As it is now."""
        return Memory(self.tensor)

    def agrees(self, other: Memory) -> bool:
        return torch.equal(self._bytes, other._bytes)

    def is_near(self, other: Memory, tolerance: float) -> bool:
        size = self._bytes.numel() - self._bytes.numel() % self.tensor.element_size()
        values = [each._bytes[:size].view(self.tensor.dtype) for each in (self, other)]
        return difference(*values, tolerance=tolerance) is None


_ABSENT = object()


class Entry:
    def __init__(self, owner: dict, key: Hashable) -> None:
        self._owner, self._key = owner, key
        self._value = owner.get(key, _ABSENT)

    def restore(self) -> None:
        if self._value is not _ABSENT:
            self._owner[self._key] = self._value
        else:
            self._owner.pop(self._key, None)

    def again(self) -> Entry:
        return Entry(self._owner, self._key)

    def agrees(self, other: Entry) -> bool:
        return difference(self._value, other._value) is None

    def is_near(self, other: Entry, tolerance: float) -> bool:
        return difference(self._value, other._value, tolerance=tolerance) is None
