# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators write in a run that is only compared, though their schemas do not name it."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from weft.compiled.specialize import Specialized
from weft.frontend.inplace import may_write_unsaid
from weft.observe.snapshot import Memory


class UnsaidWrites:
    """Ahead of a run of a program, keeps the memory of `tensors`, which it reads, if PyTorch runs
    operators in it that are not known to write nothing else than they say."""

    def __init__(self, program: Specialized, tensors: Iterable[torch.Tensor]) -> None:
        assert program.lowered is not None
        unknown = any(may_write_unsaid(each.target) for each in program.lowered.fallbacks)
        self._kept = [Memory(each) for each in tensors] if unknown else []

    def put_back(self) -> bool:
        """Whether there was anything to put back."""
        written = [each for each in self._kept if not each.agrees(each.again())]
        for each in written:
            each.restore()
        return bool(written)
