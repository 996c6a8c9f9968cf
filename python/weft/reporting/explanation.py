# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How one call is run, and why: what `weft.explain` gives."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Explanation:
    """Of one call of a compiled function or module.

    whole: whether one program answers such calls. breaks: why PyTorch runs them instead, with the
    user's lines. shapes: of the tensors that the program is for, "" without one. kernels: how many
    it has. host_ops: those that PyTorch runs inside it, with the reasons.
    """

    whole: bool
    breaks: tuple[str, ...] = ()
    shapes: str = ""
    kernels: int = 0
    host_ops: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        if not self.whole:
            return "\n".join(["PyTorch runs this call:", *(f"  {each}" for each in self.breaks)])
        lines = [f"One program answers this call: {self.shapes}, {self.kernels} kernels."]
        lines += [f"  PyTorch runs {each}" for each in self.host_ops]
        return "\n".join(lines)
