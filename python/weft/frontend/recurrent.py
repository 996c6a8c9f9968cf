# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets, which torch's decompositions unroll: a cell for each step, layer, direction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from weft.frontend.lowered import Decline

_LSTM = torch.ops.aten.lstm.input
# Each cell costs some 60 ms of compilation, and its code is run once. On one thread, cells of
# 128 with a batch of 8 and of 512 with one: GRUs take 0.6 and 0.9 of eager's time at 64 steps,
# 0.8 and 1.2 at 128; LSTMs, which eager gives to oneDNN, 0.9 and 0.75 at 16, 1.3 and 0.9 at
# 32, 1.6 and 1.0 at 64.
_MAX_CELLS = {
    _LSTM: 16,
    torch.ops.aten.gru.input: 64,
    torch.ops.aten.rnn_tanh.input: 64,
    torch.ops.aten.rnn_relu.input: 64,
}


def is_recurrent(op: torch._ops.OpOverload) -> bool:
    return op in _MAX_CELLS


def drops_out(args: Sequence[Any]) -> bool:
    """Whether a recurrent net's call draws random numbers, for the dropout between layers."""
    dropout, train = args[5], args[6]
    return bool(train and dropout)


def refuse_many_cells(op: torch._ops.OpOverload, args: Sequence[Any]) -> None:
    """Raises: Decline, where PyTorch's own loop is better than cells without one."""
    if not is_recurrent(op):
        return
    x, _, _, _, layers, _, _, bidirectional, batch_first = args
    steps = x.shape[1 if batch_first else 0]
    cells = steps * layers * (2 if bidirectional else 1)
    if cells > _MAX_CELLS[op]:
        raise Decline(f"unrolled it has {cells} cells, more than {_MAX_CELLS[op]}")


@contextlib.contextmanager
def decomposed_to_cells(op: torch._ops.OpOverload) -> Iterator[None]:
    """torch decomposes an LSTM into oneDNN's layers where oneDNN is on. The switch is the
    process's: what another thread runs meanwhile takes torch's own kernels.
    """
    if op != _LSTM:
        yield
        return
    # Past torch.backends, which a program may have frozen.
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)
