# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math.sqrt` and logarithms of a size that is a symbol, which the functions of C would make a
number."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch._export.verifier import Verifier
from torch.fx.experimental.proxy_tensor import (
    _sym_register,
    disable_proxy_modes_tracing,
    get_proxy_mode,
)
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy.functions import OpaqueUnaryFn_log, OpaqueUnaryFn_log2

_SYMBOLS = (torch.SymInt, torch.SymFloat)
_LOGARITHMS = {"log": OpaqueUnaryFn_log, "log2": OpaqueUnaryFn_log2}


@contextlib.contextmanager
def functions_of_sizes() -> Iterator[None]:
    """While a trace runs, in a process of its own."""
    root, logarithms = math.sqrt, {name: getattr(math, name) for name in _LOGARITHMS}
    allowed = Verifier.allowed_builtin_ops

    def sqrt(x: Any, /) -> Any:
        return torch._sym_sqrt(x) if isinstance(x, _SYMBOLS) else root(x)

    def log(x: Any, /, *base: Any) -> Any:
        if not any(isinstance(each, _SYMBOLS) for each in (x, *base)):
            return logarithms["log"](x, *base)
        over, *under = (_logarithm("log", logarithms["log"], each) for each in (x, *base))
        return over / under[0] if under else over

    def log2(x: Any, /) -> Any:
        return _logarithm("log2", logarithms["log2"], x)

    def allowed_ops(self: Verifier) -> list:
        return [*allowed(self), *logarithms.values()]

    with (
        mock.patch.multiple(math, sqrt=sqrt, log=log, log2=log2),
        mock.patch.object(Verifier, "allowed_builtin_ops", allowed_ops),
    ):
        yield


def _logarithm(name: str, of_number: Callable[[Any], float], x: Any) -> Any:
    """A symbol to torch, whose value is that of C's function at each size; torch has none of its
    own that a traced program may call."""
    if not isinstance(x, _SYMBOLS):
        return of_number(x)
    mode = get_proxy_mode()
    assert mode is not None  # or there were no symbols
    with disable_proxy_modes_tracing():
        node = x.node
        if node.hint is None or node.hint <= 0:
            return of_number(x)
        made = SymNode(_LOGARITHMS[name](node.expr), node.shape_env, float, of_number(node.hint))
        result = torch.SymFloat(made)
        _sym_register(mode.tracer, of_number, (x,), result)
    return result
