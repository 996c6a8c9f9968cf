# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences: the ops that stand for them in a traced program, and the steps in groups of
like sizes.

PyTorch's own ops read how many sequences each step has from a tensor. Of `recurrent` these are
numbers, known when the program is made. The others take lengths that only a run knows, of at most
`steps`; what they pack has a size that depends on data.
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
_library.define("rows(Tensor x, Tensor lengths) -> Tensor")
_library.define("sizes(Tensor lengths, SymInt steps) -> Tensor")
_library.define("padded(Tensor rows, Tensor lengths, SymInt steps, float value) -> Tensor")
_library.define(
    "recurrent_rows(str kind, Tensor x, Tensor lengths, SymInt steps, Tensor[] states, "
    "Tensor[] params, bool has_biases, int layers, float dropout, bool train, bool bidirectional) "
    "-> Tensor[]"
)
_library.define(
    "dropout(Tensor x, Tensor lengths, float p) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)
recurrent = torch.ops.weft_packed.recurrent.default
rows = torch.ops.weft_packed.rows.default
sizes = torch.ops.weft_packed.sizes.default
padded = torch.ops.weft_packed.padded.default
recurrent_rows = torch.ops.weft_packed.recurrent_rows.default
dropout = torch.ops.weft_packed.dropout.default
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


def _rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """x: (steps, batch, ...), lengths: (batch), in descending order. To (rows, ...)."""
    return torch._pack_padded_sequence(x, lengths, False)[0]


def _some_rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    torch._check(x.dim() >= 2 and lengths.shape == x.shape[1:2])
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), *x.shape[2:])


def _sizes(lengths: torch.Tensor, steps: int) -> torch.Tensor:
    """How many sequences each step has, of as many steps as the longest has."""
    counted = torch.arange(steps)[:, None] < lengths
    return counted.sum(1)[: int(lengths.max())]


def _some_sizes(lengths: torch.Tensor, steps: int) -> torch.Tensor:
    return lengths.new_empty(torch.library.get_ctx().new_dynamic_size())


def _padded(rows: torch.Tensor, lengths: torch.Tensor, steps: int, value: float) -> torch.Tensor:
    """The packed rows as (steps, batch, ...)."""
    return torch._pad_packed_sequence(rows, _sizes(lengths, steps), False, value, steps)[0]


def _padded_shape(rows: torch.Tensor, lengths: torch.Tensor, steps: int, value: float):
    return rows.new_empty(steps, lengths.shape[0], *rows.shape[1:])


def _run_rows(kind, x, lengths, steps, *rest) -> list[torch.Tensor]:
    return _run(kind, x, _sizes(lengths, steps).tolist(), *rest)


def _shapes_of_rows(kind, x, lengths, steps, states, params, has_biases, layers, dropout, *rest):
    directions = 2 if rest[-1] else 1
    torch._check(x.dim() == 2 and x.shape[1] == params[0].shape[1])
    torch._check(all(tensor.dtype == x.dtype for tensor in (*states, *params)))
    for state in states:
        torch._check(state.dim() == 3 and state.shape[0] == layers * directions)
        torch._check(state.shape[1] == lengths.shape[0])
    output = x.new_empty(x.shape[0], directions * states[0].shape[2])
    return [output, *(x.new_empty(state.shape) for state in states)]


def _dropout(x: torch.Tensor, lengths: torch.Tensor, p: float) -> torch.Tensor:
    """x: (steps, batch, ...). Of the rows that there are, in their order: others are 0."""
    kept = torch.nn.functional.dropout(_rows(x, lengths), p)
    return _padded(kept, lengths, x.shape[0], 0.0)


def _dropped_shape(x: torch.Tensor, lengths: torch.Tensor, p: float) -> torch.Tensor:
    return x.new_empty(x.shape)


for _name, _kernel, _fake in (
    ("recurrent", _run, _shapes),
    ("rows", _rows, _some_rows),
    ("sizes", _sizes, _some_sizes),
    ("padded", _padded, _padded_shape),
    ("recurrent_rows", _run_rows, _shapes_of_rows),
    ("dropout", _dropout, _dropped_shape),
):
    _library.impl(_name, _kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"weft_packed::{_name}", _fake, lib=_library)


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
