# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that ops have within, though no tensor of the traced program is of them: where the middle
of a sorted dim is, how long the windows of an adaptive pool are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._sympy.functions import FloorDiv

_POOLS = frozenset(
    f"aten.{name}{n}d.default"
    for name in ("adaptive_avg_pool", "_adaptive_avg_pool", "adaptive_max_pool")
    for n in (1, 2, 3)
)
_MEDIANS = frozenset(f"aten.{name}" for name in ("median.default", "median.dim", "nanmedian.dim"))
_SHIFTS = frozenset(f"aten.fft_{name}.default" for name in ("fftshift", "ifftshift"))


def implied_sizes(node: torch.fx.Node) -> Iterator[Any]:
    """Sizes that the op implies, as sympy expressions of the first argument's sizes."""
    target = str(node.target)
    if target not in _POOLS | _MEDIANS | _SHIFTS or not isinstance(node.args[0], torch.fx.Node):
        return
    sizes = [_expression(size) for size in node.args[0].meta["val"].shape]
    if target in _POOLS:
        wanted = node.args[1] if isinstance(node.args[1], (tuple, list)) else [node.args[1]]
        for size, out in zip(sizes[::-1], wanted[::-1]):
            if isinstance(out, int) and out > 1:
                yield FloorDiv(size - 1, out)
    elif target in _SHIFTS:
        for size in sizes:
            yield from (FloorDiv(size, 2), FloorDiv(size + 1, 2))
    elif target.endswith("default"):
        yield FloorDiv(math.prod(sizes) - 1, 2)
    elif sizes:
        yield FloorDiv(sizes[node.args[1]] - 1, 2)


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
