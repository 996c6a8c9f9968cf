# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Marks, which tell whether a tensor has been written, or given other memory, since."""

from __future__ import annotations

from typing import Any

import torch


class Mark:
    """A tensor, and what is needed to tell whether it has been written or given other memory."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._place = self._now()
        # Inference mode does not increase version counters.
        self.counts = not (torch.is_inference_mode_enabled() or tensor.is_inference())
        self._content = self._fingerprint()

    def _now(self) -> tuple:
        tensor = self.tensor
        return (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.requires_grad)

    def _fingerprint(self) -> Any:
        if self.counts:
            return self.tensor._version
        with torch.no_grad():
            content = self.tensor.detach().contiguous().flatten().view(torch.uint8)
            return torch.hash_tensor(content).item() if content.numel() else None

    def moved(self) -> bool:
        return self._now() != self._place

    def written(self) -> bool:
        return self._fingerprint() != self._content
