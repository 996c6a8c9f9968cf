# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `weft.explain` returns: how a call is run, and why."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Explanation:
    """How one call of a compiled function or module is run.

    whole: whether one program answers such calls. breaks: why PyTorch runs them instead, with the
    user's lines. shapes: of the tensors that the program was made for, "" without a program.
    kernels: their number. host_ops: the ops that PyTorch runs within the program, with the reasons.
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
