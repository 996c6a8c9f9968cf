# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor's memory as it was at a moment."""

from __future__ import annotations

import torch


class Snapshot:
    """tensor: whose storage is copied, as a whole. Nobody's version counter notices."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        memory = torch.empty(0, dtype=torch.uint8)
        with torch.no_grad():
            self._memory = memory.set_(tensor.untyped_storage())
            self._bytes = self._memory.clone()

    def restore(self) -> None:
        self._memory.copy_(self._bytes)

    def agrees(self, other: Snapshot) -> bool:
        return torch.equal(self._bytes, other._bytes)
