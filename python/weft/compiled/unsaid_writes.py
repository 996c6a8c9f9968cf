# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Undoes writes that operators' schemas do not declare, in a run that is only for comparison."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from weft.compiled.specialize import Specialized
from weft.frontend.inplace import may_write_unsaid
from weft.observe.snapshot import Memory


class UnsaidWrites:
    """Before a run of a program, copies the memory of `tensors`, which it reads, if PyTorch runs
    operators in it that may write to something that their schemas do not declare."""

    def __init__(self, program: Specialized, tensors: Iterable[torch.Tensor]) -> None:
        assert program.lowered is not None
        unknown = any(may_write_unsaid(each.target) for each in program.lowered.fallbacks)
        self._kept = [Memory(each) for each in tensors] if unknown else []

    def put_back(self) -> bool:
        """Puts the memory back. Returns whether any of it had changed."""
        written = [each for each in self._kept if not each.agrees(each.again())]
        for each in written:
            each.restore()
        return bool(written)
