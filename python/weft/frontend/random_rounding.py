# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random rounding of a graph's values, to learn how far rounding alone may take its results.

Source: D. S. Parker, "Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic",
UCLA CSD-970002, 1997.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# Ops whose results are elements of their operands, or are otherwise exact. To round these would
# undo equalities, such as that of a maximum with an element.
_EXACT = {
    f"weft.{name}"
    for name in (
        *("abs", "broadcast_in_dim", "ceil", "concat", "constant", "copysign", "floor", "gather"),
        *("iota", "max", "min", "neg", "pad", "reshape", "reverse", "round_even", "select", "sign"),
        *("slice", "sort", "transpose", "trunc", "with_slopes"),
    )
}
# Two correct computations may lie so many times as far apart as one rounding of each value takes a
# result: a sum of many elements is rounded many times.
_MOST_SPREADS = 8
_RUNS = 3

Results = Sequence[torch.Tensor | None]


class RandomRounding:
    """Moves each value by one unit in the last place up, down or not at all, where it is rounded.
    Integers are taken for exact, as a position that is divided and rounded down.

    The factors are constants to autograd, so that gradients are moved at the same places. seed: of
    a generator of its own.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def input(self, value: torch.Tensor) -> torch.Tensor:
        """An input of the graph: a sum of inputs has the error of a sum of inputs so rounded."""
        if not value.is_floating_point():
            return value
        steps = torch.randint(-1, 2, value.shape, generator=self._generator)
        steps *= value.detach().frac() != 0
        return value * (1 + steps.to(value.dtype) * torch.finfo(value.dtype).eps)

    def result(
        self, node: dict[str, Any], operands: Sequence[torch.Tensor], value: torch.Tensor
    ) -> torch.Tensor:
        """A result of a node of the graph."""
        return value if _is_exact(node, operands, value) else self.input(value)


def _is_exact(node: dict[str, Any], operands: Sequence[torch.Tensor], value: torch.Tensor) -> bool:
    if node["op"] == "weft.convert":
        given = operands[0].dtype
        widens = given.is_floating_point and value.is_floating_point()
        return widens and torch.finfo(given).eps >= torch.finfo(value.dtype).eps
    kind = node["attrs"].get("kind", {})
    keeps = isinstance(kind, dict) and kind.get("mlir", "").endswith(("<max>", "<min>"))
    return keeps or node["op"] in _EXACT


@dataclass(frozen=True)
class Spread:
    """What rounding does to a result of a graph.

    value: by PyTorch's ops for the graph, in its own types. spread: how far random rounding has
    taken each element from that. most: of the element and of the tensor's mean, how far two
    computations may be apart whatever the spread: where a last bit changes a comparison, that is
    unbounded.
    """

    value: torch.Tensor
    spread: torch.Tensor
    most: float

    @property
    def largest(self) -> float:
        """How far two correct computations may be apart in any element."""
        return _MOST_SPREADS * float(self.spread.max())

    def excuses(self, eager: torch.Tensor, own: torch.Tensor) -> bool:
        """Whether rounding alone may explain the difference from PyTorch's result, which has to be
        close to the graph's as well."""
        x = eager.detach().double()
        size, spread = x.abs(), self.spread
        bound = torch.minimum(
            _MOST_SPREADS * (spread + spread.mean()), self.most * (size + size.mean())
        )
        return all(
            bool(((x - each.detach().double()).abs() <= bound).all()) for each in (own, self.value)
        )


def spreads_of(
    compute: Callable[[RandomRounding | None], Results], most: float
) -> list[Spread | None]:
    """The spread of each result. compute: the results, without and with random rounding. most: see
    `Spread`."""
    plain = [None if each is None else each.detach() for each in compute(None)]
    spreads = [0.0 if each is None else torch.zeros_like(each.double()) for each in plain]
    for seed in range(_RUNS):
        moved = compute(RandomRounding(seed))
        for place, (value, other) in enumerate(zip(plain, moved, strict=True)):
            if value is None or other is None:
                continue
            apart = (value.double() - other.detach().double()).abs().nan_to_num(nan=math.inf)
            spreads[place] = torch.maximum(spreads[place], apart)
    return [
        None if value is None else Spread(value, spread, most)
        for value, spread in zip(plain, spreads, strict=True)
    ]
