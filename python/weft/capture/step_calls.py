# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls of torch functions that a traced program makes, as what can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor

from weft.frontend.walk import CHECKPOINTED

_PLAIN = (str, bytes, bool, type(None), torch.dtype, torch.device, torch.layout, type(Ellipsis))


class Unknown(Exception):
    """An argument or a result that is neither a tensor nor plain."""


@dataclass
class Call:
    """A traced call. form: what of it is no tensor and no whole number. leaves: the others. passed:
    for each output which leaf it is, as dropout in evaluation gives its argument; mostly None."""

    function: Callable[..., Any]
    form: list[Any]
    leaves: list[Any]
    outputs: list[FakeTensor]
    passed: list[int | None]
    container: type | None  # of the outputs
    before: torch.fx.Node
    after: torch.fx.Node


def flat(value: Any, form: list[Any], leaves: list[Any]) -> None:
    """Raises: Unknown."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        if not isinstance(value, FakeTensor):
            raise Unknown
        form.append(FakeTensor)
        leaves.append(value)
    elif kind is int:
        form.append(int)
        leaves.append(value)
    elif kind is float:
        form.append(value.hex())
    elif kind in (tuple, list, torch.Size):
        form.append((kind, len(value)))
        for each in value:
            flat(each, form, leaves)
    elif kind is slice:
        form.append(slice)
        for each in (value.start, value.stop, value.step):
            flat(each, form, leaves)
    elif kind is dict:
        form.append((dict, tuple(value)))
        for each in value.values():
            flat(each, form, leaves)
    elif kind in _PLAIN:
        form.append((kind, value))
    else:
        raise Unknown


def outputs_of(result: Any) -> tuple[list[FakeTensor], type | None]:
    """Raises: Unknown."""
    kind = type(result)
    outputs = [result] if isinstance(result, torch.Tensor) else result
    if kind not in (tuple, list) and outputs is result:
        raise Unknown
    if not all(isinstance(each, FakeTensor) for each in outputs):
        raise Unknown
    return list(outputs), (kind if outputs is result else None)


def own_outputs(call: Call) -> list[tuple[int, FakeTensor]]:
    """The outputs that the call itself has made, with their numbers."""
    return [
        (at, each)
        for at, (each, leaf) in enumerate(zip(call.outputs, call.passed, strict=True))
        if leaf is None
    ]


def looks_of(tensor: FakeTensor) -> tuple:
    shape, strides = (tuple(map(_size, each)) for each in (tensor.shape, tensor.stride()))
    return (tensor.dtype, shape, strides, tensor.requires_grad)


def _size(size: int | torch.SymInt) -> Any:
    """Equal for equal sizes, and hashable: a symbol's as an expression."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def known_size(size: int | torch.SymInt) -> int | None:
    """None for one that may still differ: a symbol that the program has counted to is a number."""
    known = _size(size)
    return int(known) if isinstance(known, int) or known.is_number else None


def is_plain_call() -> bool:
    """Whether neither a transform nor a checkpoint is around the call."""
    try:
        settings()
    except Unknown:
        return False
    return True


def reaches_all(function: Callable) -> bool:
    """Whether what it does may depend on more than the tensors that it is given."""
    return isinstance(function, HigherOrderOperator) or function is torch._C._set_grad_enabled


def settings() -> tuple:
    """What else a call may depend on."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise Unknown
    if CHECKPOINTED in torch.fx.traceback.current_meta.get("custom", ()):
        raise Unknown
    return (
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.get_default_dtype(),
        torch.is_inference_mode_enabled(),
    )


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, slice):
        yield from tensors_in((value.start, value.stop, value.step))
