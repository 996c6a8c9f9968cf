# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets on packed sequences: the op that stands for them in a traced program, and the
steps in groups of like sizes.

PyTorch's own op reads how many sequences each step has from a tensor; here they are numbers, known
when the program is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

_library = torch.library.Library("weft_packed", "DEF")
_library.define(
    "recurrent(str kind, Tensor x, int[] batch_sizes, Tensor[] states, Tensor[] params, "
    "bool has_biases, int layers, float dropout, bool train, bool bidirectional) -> Tensor[]"
)
recurrent = torch.ops.weft_packed.recurrent.default
_KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# More scans cost compile time, fewer cost steps of sequences that have ended.
_MOST_GROUPS = 4


def _run(kind, x, batch_sizes, states, params, *settings) -> list[torch.Tensor]:
    sizes = torch.tensor(batch_sizes)
    given = tuple(states) if kind == "lstm" else states[0]
    if kind not in _KINDS:
        raise ValueError(f"expected a kind among {', '.join(_KINDS)}, found {kind!r}")
    return list(getattr(torch, kind)(x, sizes, given, params, *settings))


def _shapes(kind, x, batch_sizes, states, params, has_biases, layers, dropout, train, both):
    directions = 2 if both else 1
    torch._check(x.dim() == 2 and x.shape[1] == params[0].shape[1])
    torch._check(x.shape[0] == sum(batch_sizes))
    torch._check(all(tensor.dtype == x.dtype for tensor in (*states, *params)))
    for state in states:
        torch._check(state.dim() == 3 and state.shape[:2] == (layers * directions, batch_sizes[0]))
    output = x.new_empty(x.shape[0], directions * states[0].shape[2])
    return [output, *(x.new_empty(state.shape) for state in states)]


_library.impl("recurrent", _run, "CompositeExplicitAutograd")
torch.library.register_fake("weft_packed::recurrent", _shapes, lib=_library)


@dataclass(frozen=True)
class Run:
    """Steps that follow each other with as many sequences. first: the first of their rows."""

    first: int
    steps: int
    size: int

    @property
    def limit(self) -> int:
        return self.first + self.steps * self.size


def runs_of(batch_sizes: Sequence[int]) -> list[Run]:
    """batch_sizes: of each step, none larger than the one before."""
    runs: list[Run] = []
    for size in batch_sizes:
        if runs and runs[-1].size == size:
            runs[-1] = Run(runs[-1].first, runs[-1].steps + 1, size)
        else:
            runs.append(Run(runs[-1].limit if runs else 0, 1, size))
    return runs


def groups_of(runs: Sequence[Run], most: int = _MOST_GROUPS) -> list[Sequence[Run]]:
    """At most so many groups of runs that follow each other, where all steps of a group compute as
    many rows as its first run has, and the fewest rows in all are computed for nothing."""

    def waste(first: int, limit: int) -> int:
        return sum(run.steps * (runs[first].size - run.size) for run in runs[first:limit])

    # Of the first runs in as many groups: rows for nothing, and where the groups begin.
    best: list[tuple[int, tuple[int, ...]]] = [
        (waste(0, limit), (0,)) for limit in range(len(runs) + 1)
    ]
    for _ in range(min(most, len(runs)) - 1):
        best = [
            min(
                [best[limit]]
                + [
                    (best[cut][0] + waste(cut, limit), (*best[cut][1], cut))
                    for cut in range(1, limit)
                ]
            )
            for limit in range(len(runs) + 1)
        ]
    starts = best[-1][1]
    return [runs[a:b] for a, b in zip(starts, (*starts[1:], len(runs)), strict=True)]
