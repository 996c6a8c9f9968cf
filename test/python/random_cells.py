# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cells of random elementwise ops, matmuls, norms and states, in loops over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 5

_UNARY: dict[str, Callable] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: torch.softmax(x, -1),
    "norm": lambda x: F.layer_norm(x, (WIDTH,)),
    "relu": F.relu,
    "halved": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "mean": lambda x: x.mean(1, keepdim=True).expand_as(x),
}
_BINARY: dict[str, Callable] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "where": lambda x, y: torch.where(x > y, x * 0.5, y),
    "scores": lambda x, y: torch.einsum("bi,bj->bij", x, y).sum(1) / WIDTH,
}
UNARY, BINARY = [*_UNARY], [*_BINARY]


@dataclass(frozen=True)
class Step:
    """op: of `UNARY` or `BINARY`, or "linear". left, right: the numbers of its operands among the
    values."""

    op: str
    left: int
    right: int = 0


class RandomCell(nn.Module):
    """A random cell. states: the number of carried states. steps: what is computed from the states
    and the element, in order. after: the numbers of the values that, once bounded, are the next
    step's states. reads_previous: whether the previous step's element is one of the values, too.
    reverse: whether the loop begins with the last element."""

    def __init__(
        self,
        states: int,
        steps: list[Step],
        after: list[int],
        reads_previous: bool,
        reverse: bool,
    ):
        super().__init__()
        self.states, self.steps, self.after = states, steps, after
        self.reads_previous, self.reverse = reads_previous, reverse
        self.weights = nn.ModuleList(
            nn.Linear(WIDTH, WIDTH) if step.op == "linear" else nn.Identity() for step in steps
        )

    def forward(self, xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """xs: the input, (time, batch, WIDTH)."""
        states = [xs.new_zeros(xs.shape[1:]) + 0.1 * n for n in range(self.states)]
        previous, outputs = xs[0] * 0, []
        for x in reversed(xs.unbind(0)) if self.reverse else xs.unbind(0):
            values = [*states, x]
            if self.reads_previous:
                values.append(previous)
            for step, weight in zip(self.steps, self.weights, strict=True):
                left, right = (values[i % len(values)] for i in (step.left, step.right))
                if step.op == "linear":
                    values.append(weight(left))
                elif step.op in _UNARY:
                    values.append(_UNARY[step.op](left))
                else:
                    values.append(_BINARY[step.op](left, right))
            states = [torch.tanh(values[i % len(values)]) for i in self.after]
            outputs.append(values[-1])
            previous = x
        return torch.stack(outputs), *states
