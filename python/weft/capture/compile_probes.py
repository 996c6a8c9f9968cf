# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the user's code hears when it asks whether it is being compiled.

Programs ask `torch.compiler.is_compiling()`, `torch.fx._symbolic_trace.is_fx_tracing()`, or whether
a tensor is a `FakeTensor`, and take another way where it holds: they make a mask that eager
execution leaves out, or call what a compiler knows. We compile what eager execution does, so they
hear what they would hear there.
torch itself goes on to know.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch

# Modules that pass the question on.
RELAYS = frozenset(
    {"torch._utils", "torch._dynamo.external_utils", "torch.compiler", "torch.random", "contextlib"}
)


class Hearing:
    """untrue: whether anyone heard something else than the truth."""

    untrue = False


_hearings: list[Hearing] = []


@contextlib.contextmanager
def answers_as_in_eager() -> Iterator[Hearing]:
    """Within it, `is_compiling`, `is_exporting` and `is_fx_tracing` are true only for torch, and
    `torch._subclasses.FakeTensor` is a type without instances for all others."""
    hearing = Hearing()
    _hearings.append(hearing)
    # Programs may have imported the functions by name, so it is not the names that change.
    functions = (
        torch.compiler.is_compiling,
        torch.compiler.is_exporting,
        torch.fx._symbolic_trace.is_fx_tracing,
    )
    truths = [function.__code__ for function in functions]
    names = vars(torch._subclasses)
    fake_tensor = names.pop("FakeTensor")
    names["__getattr__"] = _attribute
    try:
        for function, answer in zip(
            functions, (_is_compiling, _is_exporting, _is_fx_tracing), strict=True
        ):
            function.__code__ = answer.__code__
        yield hearing
    finally:
        for function, truth in zip(functions, truths, strict=True):
            function.__code__ = truth
        del names["__getattr__"]
        names["FakeTensor"] = fake_tensor
        _hearings.remove(hearing)


class _NoTensor:
    """A type that no tensor has."""


def _attribute(name: str) -> Any:
    if name != "FakeTensor":
        raise AttributeError(f"module 'torch._subclasses' has no attribute {name!r}")
    return torch._subclasses.fake_tensor.FakeTensor if torch_asks() else _NoTensor


def torch_asks() -> bool:
    """`called_by_torch`, of the function that calls this one; it hears of answers to others."""
    if called_by_torch(3):
        return True
    for hearing in _hearings:
        hearing.untrue = True
    return False


def called_by_torch(depth: int = 2) -> bool:
    """Whether who called the function that calls this one belongs to torch."""
    frame = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__") in RELAYS:
        frame = frame.f_back
    name = "" if frame is None else str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] == "torch" and not name.startswith("torch.testing.")


# These run among the globals of torch.compiler, the last among torch.fx._symbolic_trace's.


def _is_compiling() -> bool:
    from weft.capture.compile_probes import torch_asks

    return _is_compiling_flag and torch_asks()  # noqa: F821


def _is_exporting() -> bool:
    from weft.capture.compile_probes import torch_asks

    return _is_exporting_flag and torch_asks()  # noqa: F821


def _is_fx_tracing() -> bool:
    from weft.capture.compile_probes import torch_asks

    return _is_fx_tracing_flag and torch_asks()  # noqa: F821
