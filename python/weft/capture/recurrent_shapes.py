# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent modules in a trace: one op each, whose results have shapes and no values. torch would
run its decomposition, cell by cell, for the sake of those shapes. For a process that traces and
ends: it replaces kernels of torch's own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

import torch
from torch._C import DispatchKey
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from weft.frontend.fakes import recurrent

_OPS = (
    torch.ops.aten.lstm.input,
    torch.ops.aten.gru.input,
    torch.ops.aten.rnn_tanh.input,
    torch.ops.aten.rnn_relu.input,
)
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


@contextlib.contextmanager
def recurrent_nets_by_shape() -> Iterator[None]:
    """Within it the time that tracing takes does not depend on the length of a sequence."""
    replaced = {
        (op, key): op.py_kernels[key] for op in _OPS for key in _KEYS if key in op.py_kernels
    }
    for (op, key), kernel in replaced.items():
        op.py_kernels[key] = functools.partial(_shaped, op, kernel)
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for (op, key), kernel in replaced.items():
            op.py_kernels[key] = kernel
            op._dispatch_cache.clear()


def _shaped(
    op: torch._ops.OpOverload,
    kernel: Callable[..., tuple[torch.Tensor, ...]],
    x: torch.Tensor,
    states: torch.Tensor | Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    *settings: object,
) -> tuple[torch.Tensor, ...]:
    """Results that require gradients where those of `kernel` do. Where what computes them would be
    recorded in place of the op, as in a decomposition, it is `kernel` that does."""
    if get_proxy_mode() is not None:
        return kernel(x, states, params, *settings)
    try:
        results = recurrent(None, op, x, states, params, *settings)
    except (RuntimeError, IndexError):  # the decomposition says what is wrong in torch's words
        return kernel(x, states, params, *settings)
    given = [x, *([states] if isinstance(states, torch.Tensor) else states), *params]
    reached = [tensor for tensor in given if tensor.requires_grad]
    if not reached or not torch.is_grad_enabled():
        return results
    return tuple(result + reached[0].sum() for result in results)
