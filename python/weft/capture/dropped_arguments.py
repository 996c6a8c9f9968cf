# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python functions of torch's that lose an argument where a mode hears of their calls, as tracing
does: they pass the others on. For a process that traces and ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch.overrides import handle_torch_function

# Each reads `handle_torch_function` from its module.
_DROPPED: dict[Callable[..., Any], str] = {
    torch.nn.functional.l1_loss: "weight",
    torch.functional.chain_matmul: "out",
    torch.Tensor.dim_order: "ambiguity_check",
}


@contextlib.contextmanager
def no_arguments_dropped() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for module in {sys.modules[function.__module__] for function in _DROPPED}:
            stack.enter_context(mock.patch.object(module, "handle_torch_function", _handle))
        yield


def _handle(function: Callable[..., Any], relevant: Any, *args: Any, **kwargs: Any) -> Any:
    dropped = _DROPPED.get(function)
    if dropped is not None:
        kwargs[dropped] = sys._getframe(1).f_locals[dropped]
    return handle_torch_function(function, relevant, *args, **kwargs)
