# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A `PackedSequence` among the arguments of a program that stands for any lengths: how many
sequences each step has is data, and all rows are those of one argument, of some number."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx.experimental.symbolic_shapes import statically_known_true

from weft.capture.argument_objects import as_size
from weft.capture.signature import Declined
from weft.frontend import packed


@dataclass(frozen=True)
class RowsOfSteps:
    """What calls of a program have in common of the tensor that says how many sequences each step
    has: how many the first step has, and how many rows all have: `rows`, if that is known to the
    program, or if `is_size` the size `size` as traced, which is a symbol."""

    sequences: int
    rows: int | None = None
    is_size: bool = False
    size: torch.SymInt | None = None

    def __call__(self, given: torch.Tensor) -> tuple[list[torch.Tensor], bool]:
        """As a pytree is flattened: sizes of other programs have another context."""
        sizes = given.tolist() if given.dim() == 1 else []
        parts = [given, as_size(sum(sizes))] if self.is_size else [given]
        return parts, self._holds(sizes)

    def _holds(self, sizes: Sequence[int]) -> bool:
        if not are_sizes(sizes) or sizes[0] != self.sequences:
            return False
        return self.rows is None or sum(sizes) == self.rows

    def and_also(self, other: Any) -> RowsOfSteps:
        if other is None or other == RowsOfSteps(self.sequences):
            return self
        if self not in (other, RowsOfSteps(self.sequences)):
            raise Declined("two packed sequences of one number of sequences in each step")
        return other


def are_sizes(sizes: Sequence[int]) -> bool:
    """Whether steps may have so many sequences, one after the other."""
    is_ordered = all(a >= b for a, b in itertools.pairwise(sizes))
    return len(sizes) > 0 and is_ordered and sizes[-1] > 0


@dataclass(frozen=True)
class PackedArgument:
    """As traced. sizes: how many sequences each step has. bound: what of that the program was made
    for. rows: how many all are, where that is asked for."""

    sizes: torch.Tensor
    bound: RowsOfSteps
    rows: int | torch.SymInt

    @staticmethod
    def of(sizes: torch.Tensor, values: Sequence[int], rows: torch.Tensor | None) -> PackedArgument:
        """values: the sizes of the call. rows: as many as there are, or None.

        Raises: Declined, for what PyTorch refuses.
        """
        count = sum(values) if rows is None else rows.shape[0]
        known = count.node.hint if isinstance(count, torch.SymInt) else count
        if not are_sizes(values) or sum(values) != known:
            raise Declined("a packed sequence that PyTorch refuses")
        if rows is None:
            bound = RowsOfSteps(values[0])
        elif isinstance(count, torch.SymInt):
            bound = RowsOfSteps(values[0], None, True, count)
        else:
            bound = RowsOfSteps(values[0], count)
        return PackedArgument(sizes, bound, count)

    @property
    def batch(self) -> int:
        return self.bound.sequences

    def recurrent(
        self, kind: str, x: torch.Tensor, _: Any, states: Any, params: Any, *settings: Any
    ) -> tuple[torch.Tensor, ...]:
        """The net's output, (rows, ...), and states."""
        lengths, steps = self._lengths(), self.sizes.shape[0]
        states = list(states) if kind == "lstm" else [states]
        rows = packed.rows(self._dense(x, 0.0), lengths)
        given = kind, rows, lengths, steps, states, list(params)
        output, *states = packed.recurrent_rows(*given, *settings)
        return self._rows(packed.padded(output, lengths, steps, 0.0)), *states

    def padded(
        self, rows: torch.Tensor, _: Any, batch_first: bool, value: float, total: int = -1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(steps, batch, ...), and the length of each sequence."""
        padded, steps = self._dense(rows, value), self.sizes.shape[0]
        if total > 0 and not statically_known_true(total == steps):
            if isinstance(steps, torch.SymInt):
                raise Declined("sequences that are padded to another size than a symbol's")
            if total < steps:
                raise Declined("fewer steps than a packed sequence has, which PyTorch refuses")
            behind = [*[0, 0] * (padded.dim() - 1), 0, total - steps]
            padded = F.pad(padded, behind, value=value)
        return padded.transpose(0, 1) if batch_first else padded, self._lengths()

    def _lengths(self) -> torch.Tensor:
        """How many steps each sequence has, in descending order."""
        return (self.sizes[:, None] > torch.arange(self.batch)).sum(0)

    def _starts(self) -> torch.Tensor:
        """The first row of each step."""
        return self.sizes.cumsum(0) - self.sizes

    def _dense(self, rows: torch.Tensor, value: float) -> torch.Tensor:
        """rows: (rows, ...). To (steps, batch, ...), with `value` where a sequence has no step."""
        places = torch.arange(self.batch)
        counting = places < self.sizes[:, None]
        found = rows[torch.where(counting, self._starts()[:, None] + places, 0)]
        counting = counting.reshape(*counting.shape, *[1] * (rows.dim() - 1))
        return torch.where(counting, found, torch.full((), value, dtype=rows.dtype))

    def _rows(self, padded: torch.Tensor) -> torch.Tensor:
        """padded: (steps, batch, ...). To (rows, ...)."""
        numbers, starts = torch.arange(self.rows), self._starts()
        step = (starts <= numbers[:, None]).sum(1) - 1
        return padded[step, numbers - starts[step]]
