# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of results where torch refuses tensors without values, though not others, or runs
recurrent nets cell by cell to find them; and strides where torch's own are not the kernel's.
Those of the commonest operations beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
import torch._prims_common
from torch._decomp import meta_table
from torch._subclasses.fake_impls import bincount, op_implementations_dict
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from weft.frontend.plain_fakes import PLAIN_FAKES


@contextlib.contextmanager
def fakes_completed() -> Iterator[None]:
    """While it is entered, programs that use these operations can be traced."""
    op_implementations_dict.update(_FAKES)
    meta_table.update(_FAKES)  # torch prefers a decomposition to all but what stands here
    try:
        yield
    finally:
        for table, own in _TORCHS:
            for op in _FAKES:
                table.pop(op, None)  # another thread may have been first
            table.update(own)


def _grouped_mm(
    mode,
    op,
    x: torch.Tensor,
    weights: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """torch's own takes bfloat16 alone, and forgets that the kernel pads rows to 16 bytes."""
    torch._check(x.dtype == weights.dtype and out_dtype in (None, x.dtype) and bias is None)
    torch._check(x.dim() in (2, 3) and weights.dim() in (2, 3))
    torch._check((offs is None) == (x.dim() == weights.dim() == 3))
    torch._check(x.shape[-1] == weights.shape[-2])
    batches = [t.shape[0] for t in (x, weights) if t.dim() == 3]
    if offs is not None:
        torch._check(offs.dim() == 1 and offs.dtype == torch.int32)
        batches.append(offs.shape[0])
    torch._check(all(batch == batches[0] for batch in batches))
    rows, columns = x.shape[-2], weights.shape[-1]
    step = 16 // x.element_size()
    pitch = -(-columns // step) * step
    if x.dim() == weights.dim():
        return x.new_empty_strided((batches[0], rows, columns), (rows * pitch, pitch, 1))
    return x.new_empty_strided((rows, columns), (pitch, 1))


def recurrent(
    mode,
    op,
    x: torch.Tensor,
    states: torch.Tensor | Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """The results of a recurrent module, without values. x: (steps, batch, in), or (batch, steps,
    in). states: (layers * directions, batch, size) each. params: of the layers and directions in
    turn."""
    states = [states] if isinstance(states, torch.Tensor) else list(states)
    directions = 2 if bidirectional else 1
    torch._check(x.dim() == 3 and x.shape[2] == params[0].shape[1])
    torch._check(all(tensor.dtype == x.dtype for tensor in (*states, *params)))
    steps, batch = x.shape[1 if batch_first else 0], x.shape[0 if batch_first else 1]
    for state in states:
        torch._check(state.dim() == 3 and state.shape[:2] == (layers * directions, batch))
    torch._check(steps > 0)
    _check_weights(op, x, states, params, has_biases, layers, directions)
    output = x.new_empty(steps, batch, directions * states[0].shape[2])
    last = [x.new_empty(state.shape) for state in states]
    return output.transpose(0, 1) if batch_first else output, *last


_GATES = {torch.ops.aten.lstm.input: 4, torch.ops.aten.gru.input: 3}


def _check_weights(
    op,
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    layers: int,
    directions: int,
) -> None:
    size, cell = states[0].shape[2], states[-1].shape[2]
    rows = _GATES.get(op, 1) * cell
    shapes: list[tuple[int, ...]] = []
    for layer in range(layers):
        columns = directions * size if layer else x.shape[2]
        each = [(rows, columns), (rows, size), *[(rows,)] * 2 * has_biases]
        shapes += (each + [(size, cell)] * (size != cell)) * directions
    torch._check([tuple(param.shape) for param in params] == shapes)


def _max_unpool2d(
    mode, op, x: torch.Tensor, indices: torch.Tensor, output_size: Sequence[int]
) -> torch.Tensor:
    """As its argument lies, channels last or not; torch's own is row-major."""
    torch._check(x.dim() in (3, 4) and len(output_size) == 2 and x.shape == indices.shape)
    torch._check(indices.dtype == torch.int64)
    torch._check(all(x.shape[1:]))
    shape = (*x.shape[:-2], *output_size)
    if x.dim() == 3:
        return x.new_empty(shape)
    return x.new_empty(shape).contiguous(memory_format=torch._prims_common.suggest_memory_format(x))


def _ctc_loss(
    mode,
    op,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor | Sequence[int],
    target_lengths: torch.Tensor | Sequence[int],
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each sequence; and what the longest target decides the size of, which nothing
    reads in a call of `ctc_loss`. log_probs: (steps, batch, classes)."""
    env = mode.shape_env
    if env is None or not env.allow_dynamic_output_shape_ops:
        raise DynamicOutputShapeException(op)
    torch._check(log_probs.dim() == 3)
    with env.ignore_fresh_unbacked_symbols():
        states = env.create_unbacked_symint()
    steps, batch = log_probs.shape[:2]
    return log_probs.new_empty(batch), log_probs.new_empty(batch, steps, states)


def _bincount(
    mode, op, x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """As long as is asked for, since a program checks that nothing is larger (`ops/counts.py`)."""
    if minlength == 0:
        return bincount(mode, op, x, weights, minlength)
    dtype = torch.int64
    if weights is not None and x.numel():
        dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
    return x.new_empty(minlength, dtype=dtype)


# With these drivers the data do not decide of which results there are none.
_ALIKE = (None, "gels", "gelsy")


def _lstsq(
    mode,
    op,
    a: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, ...]:
    """Solution, residuals, ranks and singular values. a: (..., m, n). b: (..., m, k) or (..., m),
    the latter where that is the shape of a without its last dim."""
    rows, columns = a.shape[-2:]
    if driver not in _ALIKE or a.dim() < 2 or b.dim() < 1 or not a.numel() or not b.numel():
        raise DynamicOutputShapeException(op)
    is_vector = a.dim() - 1 == b.dim() and a.shape[:-1] == b.shape
    wide = b.unsqueeze(-1) if is_vector else b
    torch._check(wide.dim() > 1 and wide.shape[-2] == rows and a.dtype == b.dtype)
    batch = torch.broadcast_shapes(a.shape[:-2], wide.shape[:-2])
    space = a.new_empty((*batch, wide.shape[-1], max(rows, columns)))
    solution = space[..., :columns].transpose(-2, -1)
    nothing = a.new_empty(0)
    ranks = a.new_empty(batch if driver != "gels" else 0, dtype=torch.int64)
    residuals = nothing
    if driver == "gels" and rows > columns:
        residuals = a.new_empty((*batch, wide.shape[-1]))
    solution = solution.squeeze(-1) if is_vector else solution
    return solution, residuals, ranks, nothing.clone()


_FAKES = {
    **PLAIN_FAKES,
    torch.ops.aten.bincount.default: _bincount,
    torch.ops.aten.linalg_lstsq.default: _lstsq,
    torch.ops.aten._ctc_loss.default: _ctc_loss,
    torch.ops.aten._ctc_loss.Tensor: _ctc_loss,
    torch.ops.aten.max_unpool2d.default: _max_unpool2d,
    torch.ops.aten._grouped_mm.default: _grouped_mm,
    torch.ops.aten.lstm.input: recurrent,
    torch.ops.aten.gru.input: recurrent,
    torch.ops.aten.rnn_tanh.input: recurrent,
    torch.ops.aten.rnn_relu.input: recurrent,
}

# What torch itself has for these operators.
_TORCHS = tuple(
    (table, {op: table[op] for op in _FAKES if op in table})
    for table in (op_implementations_dict, meta_table)
)
