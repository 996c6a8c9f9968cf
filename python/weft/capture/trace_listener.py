# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the user's code asks about tensors and sizes as Python objects, while fake tensors and
symbols stand for them.

`type(x)` and `x.__class__` are what they are in an ordinary call, and a size is an int. Whether two
tensors or containers are one, or what the identity of one is, no guard of a traced program watches:
it is told, as is whatever would tell code that it is traced.

It listens for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import dis
import functools
import os
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.overrides
import torch.utils._python_dispatch
from torch._guards import TracingContext
from torch._subclasses import FakeTensor, fake_tensor

from weft import _capture
from weft.capture.library_paths import is_of_stdlib

_TORCH = os.path.dirname(torch.__file__) + os.sep
_WEFT = os.path.dirname(os.path.dirname(__file__)) + os.sep
# What torch makes of graphs.
_MADE = ("<frozen ", "<eval_with_key>")

_TENSOR = torch.Tensor()
_PARAMETER = torch.nn.Parameter(torch.Tensor())


def _is_users(code: types.CodeType) -> bool:
    """Whether it is code of the user's, or of a library that is not torch's or Python's."""
    file = code.co_filename
    if is_of_stdlib(file):
        return False
    if file.startswith(_TORCH):
        return file.startswith(os.path.join(_TORCH, "testing", ""))
    return not file.startswith((_WEFT, *_MADE))


_NUMBERS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


def _override_function(*arguments: Any) -> bool:
    """Whether one of them is no tensor and answers functions of torch itself. Modes, of which torch
    says the same, are the trace's: a call within the user's is not traced."""
    given = (
        each
        for argument in arguments
        for each in (argument if isinstance(argument, (tuple, list)) else (argument,))
    )
    return any(
        hasattr(type(each), "__torch_function__") and not isinstance(each, torch.Tensor)
        for each in given
    )


def _length(items: Any, /) -> Any:
    """`len`, which would make a number of a size that is a symbol."""
    if isinstance(items, torch.Tensor) and items.dim():
        if isinstance(items.shape[0], torch.SymInt):
            return items.shape[0]
    return len(items)


_INSTEAD = {
    torch._C._has_torch_function: _override_function,
    torch._C._has_torch_function_unary: _override_function,
    torch._C._has_torch_function_variadic: _override_function,
    len: _length,
}


def _stand_in(tensor: Any) -> Any:
    kind = type(tensor)
    if kind in _NUMBERS:
        return _NUMBERS[kind]()
    if kind is torch.Tensor or not kind.__module__.startswith(("torch._subclasses", "torch.fx")):
        return tensor
    return _PARAMETER if isinstance(tensor, torch.nn.Parameter) else _TENSOR


def _class_of(*arguments: Any) -> type:
    """As `type` has it."""
    return type(_stand_in(arguments[0])) if len(arguments) == 1 else type(*arguments)


def _value_of(symbol: Any) -> Any:
    """A program for a range of sizes is one for this size then."""
    return _NUMBERS[type(symbol)](symbol)


# Whoever calls one of these, and is answered as the trace has it, knows that it is traced.
_TELLING = {
    torch._guards: ("detect_fake_mode", "active_fake_mode"),
    TracingContext: ("get", "try_get"),
    torch._guards.CompileContext: ("get", "try_get"),
    fake_tensor: ("is_fake", "maybe_get_fake_mode"),
    torch.overrides: ("_get_current_function_mode", "_get_current_function_mode_stack"),
    torch.utils._python_dispatch: (
        *("_get_current_dispatch_mode", "_get_current_dispatch_mode_stack"),
        *("_detect_infra_mode", "is_in_torch_dispatch_mode", "any_torch_dispatch_mode_on_stack"),
        "is_in_any_mode_without_ignore_compile_internals",
    ),
    torch._C: (
        *("_get_dispatch_mode", "_get_dispatch_stack_at", "_len_torch_dispatch_stack"),
        *("_get_function_stack_at", "_len_torch_function_stack", "_is_torch_function_mode_enabled"),
        *("_dispatch_tls_local_include_set", "_dispatch_tls_is_dispatch_key_included"),
        *("_dispatch_keys",),
    ),
}


def _telling() -> Iterator[Any]:
    for owner, names in _TELLING.items():
        yield from (getattr(owner, name) for name in names if hasattr(owner, name))


# `fake_mode` is set on each of them.
_OF_FAKES = frozenset({"fake_mode", *dir(FakeTensor)} - {*dir(torch.nn.Parameter)})


def is_of_torch(error: type) -> bool:
    """Whether tracing may raise such an error where an ordinary call goes on, as where a value is
    asked for."""
    if error.__module__.startswith("torch."):
        return True
    return issubclass(error, RuntimeError) and not issubclass(
        error, (NotImplementedError, RecursionError)
    )


_arguments: set[int] = set()


def take_arguments(leaves: Iterable[Any]) -> None:
    """leaves: of the call's arguments, but those that the target holds. Which of these are one,
    calls of the program have in common."""
    _arguments.update(id(each) for each in leaves if isinstance(each, torch.Tensor))


# They know no tensors, and say the same in an ordinary call.
_OF_DEVICES = tuple(
    os.path.join(_TORCH, name, "")
    for name in ("accelerator", "backends", "cuda", "distributed", "mps", "mtia", "xpu")
)


def _is_eagers(traceback: types.TracebackType | None) -> bool:
    """Whether an ordinary call meets the error too: the user's code raises it, or what asks for a
    device."""
    while traceback is not None:
        code, at = traceback.tb_frame.f_code, traceback.tb_lasti
        if code.co_filename.startswith(_OF_DEVICES):
            return True
        if traceback.tb_next is None:
            return _is_users(code) and code.co_code[at] == dis.opmap["RAISE_VARARGS"]
        traceback = traceback.tb_next
    return False


def listen(
    note: Callable[[str, types.FrameType], bool], raised: Callable[[type, types.FrameType], None]
) -> None:
    """note: told what the call asks, and in which frame. raised: told of errors of the trace that
    come to the user's code, which may handle them."""

    def told(what: str, frame: types.FrameType, *tensors: torch.Tensor) -> None:
        if not tensors or not all(id(each) in _arguments for each in tensors):
            note(what, frame)

    def came(error: type, frame: types.FrameType, traceback: types.TracebackType | None) -> None:
        if not _is_eagers(traceback):
            raised(error, frame)

    arguments = (_is_users, torch.Tensor, tuple(_NUMBERS), _INSTEAD, _stand_in, _value_of)
    callers = (map, filter, sorted, functools.partial)
    telling = frozenset(_telling())
    _capture.listen_to_trace(
        *arguments, told, came, callers, _class_of, telling, _OF_FAKES, warnings
    )
