# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the records of a log are, as Python sees them (capture/Plan.h)."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from weft.capture import remembered_calls
from weft.errors import CaptureError

NUMBERS = (int, float)  # the classes of numbers that programs take
# Python's functions that stand for operators of tensors in a log.
_OPERATORS = (abs, bool, complex, divmod, float, getattr, int, max, min, pow, round, sum, tuple)
_ARITHMETIC = ("_operator", "math")  # modules of functions that compute with numbers


def computes_numbers(function: Any) -> bool:
    """Whether the function computes numbers of numbers, and does nothing else."""
    return function in _OPERATORS or getattr(function, "__module__", "") in _ARITHMETIC


def is_torchs(function: Any) -> bool:
    """Whether the function is torch's, or does what an operator of tensors does."""
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return issubclass(function.__objclass__, torch._C.TensorBase)
    module = getattr(function, "__module__", None) or ""
    own = module.startswith("torch") or module == "_operator"
    return function in _OPERATORS or (own and isinstance(function, types.BuiltinFunctionType))


def has_effect(record: tuple) -> bool:
    """Whether the record changes something other than tensors, or makes an object that such an
    effect changes."""
    function, *_, changes, tells = record
    return function is None or changes or tells


def is_plain(outcome: tuple) -> bool:
    """Raises: CaptureError for a sequence that holds tensors and other values than None."""
    if outcome[0] != "sequence":
        return outcome[0] == "plain"
    plain = [is_plain(part) for part in outcome[2]]
    if all(plain):
        return True
    if any(is_so and part != ("plain", None) for is_so, part in zip(plain, outcome[2])):
        raise CaptureError("an operation gives tensors and other values")
    return False


def _asks_cache(record: tuple) -> bool:
    """Whether the record asks a cache of calls, or counts that."""
    return record[0] is remembered_calls.answer or isinstance(record[0], remembered_calls.KIND)


def leaves(forms: tuple) -> Iterator[tuple]:
    for form in forms:
        if form[0] in ("constant", "register", "result"):
            yield form
        else:
            yield from leaves(form[-1])


def tensors_from_outside(forms: tuple, registers: list[Any]) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of an operation that are not results of another operation."""
    for kind, *rest in leaves(forms):
        value = registers[rest[0]] if kind == "register" and registers else rest[0]
        if kind in ("constant", "register") and isinstance(value, torch.Tensor):
            yield value


def may_write(record: tuple) -> bool:
    """Whether the operation may write to memory that existed before."""
    function, _, names, outcome, *_ = record
    name = getattr(function, "__name__", "").strip("_")
    return (
        (outcome[0] == "same" and not _asks_cache(record))
        or (outcome[0] == "sequence" and any(part[0] == "same" for part in outcome[2]))
        or "out" in (names or ())
        or name in ("setitem", "batch_norm", "instance_norm")
    )
