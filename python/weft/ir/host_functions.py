# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions outside the program, which ops can be mapped to: C functions and Python callables."""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft import errors
from weft.ir import emission
from weft.ir.values import Operation

_NAMESPACE = "weft_host"
_library = torch.library.Library(_NAMESPACE, "DEF")
# By the name of the registered op: programs that call it find the newest.
_functions: dict[str, Callable[..., Any]] = {}


class HostFunction:
    """What `host` and `external` make. name: of the op that the program calls."""

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self.call = call
        self.name = name

    def emit(self, op: Operation) -> Any:
        """A call of it where ops are being made, with the operands of `op`, for its results."""
        target = self._registered(len(op.operands), [value.type for value in op.results])
        arguments = json.dumps([{"tensor": number} for number in range(len(op.operands))])
        operands = [[value._ref for value in op.operands]]
        attributes = [("target", target), ("arguments", arguments)]
        types = [str(value.type) for value in op.results]
        return emission.create("weft.torch_fallback", operands, attributes, types)

    def _registered(self, operands: int, types: Sequence[Any]) -> str:
        text = f"{operands} {' '.join(map(str, types))}"
        name = f"{self.name}_{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
        known = name in _functions
        _functions[name] = lambda *tensors: self._results(tensors, types)
        if not known:
            params = ", ".join(f"Tensor a{number}" for number in range(operands))
            results = "Tensor" if len(types) == 1 else f"({', '.join(['Tensor'] * len(types))})"
            _library.define(f"{name}({params}) -> {results}")
            _library.impl(name, lambda *tensors: _functions[name](*tensors), "CPU")
        return f"{_NAMESPACE}.{name}.default"

    def _results(self, tensors: Sequence[torch.Tensor], types: Sequence[Any]) -> Any:
        made = self.call(*tensors)
        made = made if isinstance(made, (tuple, list)) else (made,)
        for result, type_ in zip(made, types, strict=True):
            if tuple(result.shape) != type_.shape or result.dtype != type_.torch_dtype:
                raise errors.IRError(
                    f"{self.name}: expected a result of type {type_}, found {list(result.shape)} "
                    f"of {result.dtype}"
                )
        return made[0] if len(made) == 1 else tuple(made)

    def __repr__(self) -> str:
        return f"<weft.ir.HostFunction {self.name}>"


class _External(HostFunction):
    def _results(self, tensors: Sequence[torch.Tensor], types: Sequence[Any]) -> Any:
        given = [tensor.contiguous() for tensor in tensors]  # alive until the call returns
        made = tuple(torch.empty(type_.shape, dtype=type_.torch_dtype) for type_ in types)
        self.call(*(ctypes.c_void_p(each.data_ptr()) for each in (*given, *made)))
        return made[0] if len(made) == 1 else made


def host(function: Callable[..., Any], *, name: str | None = None) -> HostFunction:
    """A Python callable for `weft.ir.lower_ops`: takes an op's operands as tensors, which it must
    not write, and returns tensors of its results' types. name: by default the callable's."""
    return HostFunction(function, _identifier(name or getattr(function, "__name__", "function")))


def external(function: Any, *, name: str | None = None) -> HostFunction:
    """A C function for `weft.ir.lower_ops`, as ctypes gives it: `void f(const T *operand, …,
    T *result, …)`, row-major, with results that hold nothing yet."""
    return _External(function, _identifier(name or getattr(function, "__name__", "function")))


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


__all__ = ["HostFunction", "external", "host"]
