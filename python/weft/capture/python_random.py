# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers that a call draws outside of tensor operations, and seeds that it sets.

A program draws from torch's generator as eager execution does. What comes from Python's or NumPy's
generators is a number like any other for it, and a seed is nothing that it does.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import _disable_current_modes

from weft.capture.compile_probes import called_by_torch

KINDS = (
    *(random.Random, torch.Generator),
    *(numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator),
)
GLOBAL = (random.random.__self__, numpy.random.random.__self__, torch.default_generator)
_STATES = {"getstate", "get_state", "initial_seed", "bit_generator", "seed_seq"}
_SEED = 0x9E3779B97F4A7C15  # that no call sets itself, or we would not see that it does


class Draws:
    """found: whether a call drew such numbers, or set a seed."""

    def __init__(self) -> None:
        self.found = False

    @contextlib.contextmanager
    def watched(self, generators: list[Any]) -> Iterator[None]:
        """Within it, the call is traced, in a process of its own.

        generators: those that the program reaches, besides the global ones.
        """
        with _untraced():
            torch.default_generator.manual_seed(_SEED)
            states = [(each, state_of(each)) for each in (*GLOBAL, *generators)]
        names = vars(torch.random)
        names["default_generator"] = _Seeded(self)
        try:
            yield
        finally:
            names["default_generator"] = torch.default_generator
            with _untraced():
                for generator, state in states:
                    if not same_states(state_of(generator), state):
                        self.found = True


class _Seeded:
    """torch's generator for the functions of torch.random: a seed that is set and taken back leaves
    no trace in it."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def __getattr__(self, name: str) -> Any:
        if not called_by_torch():
            self._draws.found = True
        return getattr(torch.default_generator, name)


@contextlib.contextmanager
def _untraced() -> Iterator[None]:
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def tells_state(generator: Any, names: set[str]) -> bool:
    """Whether code that names such attributes may look at the state without drawing."""
    bits = isinstance(generator, numpy.random.BitGenerator)
    return not names.isdisjoint({"state"} if bits else _STATES)


def state_of(generator: Any) -> Any:
    match generator:
        case random.Random():
            return generator.getstate()
        case torch.Generator():
            return generator.get_state()
        case numpy.random.RandomState():
            return generator.get_state(legacy=False)
        case numpy.random.Generator():
            return generator.bit_generator.state
    return generator.state


def same_states(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(same_states(x[key], y[key]) for key in x)
    if isinstance(x, numpy.ndarray):
        return numpy.array_equal(x, y)
    return torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
