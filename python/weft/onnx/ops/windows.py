# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the windows of convolutions and pools lie: pads, strides, dilations and `auto_pad`."""

from __future__ import annotations

from dataclasses import dataclass

from weft import errors
from weft.onnx.table import Node


@dataclass(frozen=True)
class Windows:
    """The windows by spatial axis. before, after: padding. ceil_after: what `ceil_mode` adds after
    that."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    ceil_after: list[int]

    @property
    def is_symmetric(self) -> bool:
        return self.before == self.after and not any(self.ceil_after)

    def pads(self, with_ceil: bool = True) -> list[int]:
        """The padding as torch.nn.functional.pad takes it."""
        after = self.after
        if with_ceil:
            after = [a + b for a, b in zip(after, self.ceil_after)]
        return [each for pair in zip(self.before[::-1], after[::-1]) for each in pair]


def windows(node: Node, sizes: list[int], kernel: list[int]) -> Windows:
    """sizes: of the spatial axes of what the windows move over."""
    rank = len(sizes)
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    pads = node.get("pads", [0] * (2 * rank))
    if len(kernel) != rank or len(pads) != 2 * rank:
        raise errors.ModelError(
            f"{node}: expected a kernel of {rank} and pads of {2 * rank} numbers, "
            f"found {len(kernel)} and {len(pads)}"
        )
    before, after = list(pads[:rank]), list(pads[rank:])
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    auto = node.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        for i, size in enumerate(sizes):
            count = -(-size // strides[i])
            total = max((count - 1) * strides[i] + extents[i] - size, 0)
            small, large = total // 2, total - total // 2
            before[i], after[i] = (small, large) if auto == "SAME_UPPER" else (large, small)
    elif auto == "VALID":
        before, after = [0] * rank, [0] * rank
    ceil_after = [0] * rank
    if node.get("ceil_mode", 0):
        for i, size in enumerate(sizes):
            padded = size + before[i] + after[i]
            count = -(-(padded - extents[i]) // strides[i]) + 1
            if (count - 1) * strides[i] >= size + before[i]:
                count -= 1  # a window must begin before what is padded after
            ceil_after[i] = max((count - 1) * strides[i] + extents[i] - padded, 0)
    return Windows(list(kernel), list(strides), list(dilations), before, after, ceil_after)
