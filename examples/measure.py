# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of calls that take turns, and errors against the same program in float64."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

# PyTorch's OpenMP workers spin for some milliseconds after a call; they shall not take the
# processor away from whoever is timed next.
_PAUSE = 0.02


def timed_calls(call: Callable[[], object], seconds: float) -> list[float]:
    """Seconds of each of the calls that fill `seconds`, at least one, after one not counted."""
    call()
    times: list[float] = []
    while not times or sum(times) < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def interleaved(
    calls: dict[str, Callable[[], object]], rounds: int, seconds: float = 0.1
) -> dict[str, float]:
    """The median seconds of each call; in each round all have their turn of `seconds`."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(_PAUSE)
            times[name] += timed_calls(call, seconds)
    return {name: statistics.median(each) for name, each in times.items()}


def float_leaves(result: object) -> list[torch.Tensor]:
    """The floating-point tensors of a pytree."""
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return [tensor.detach() for tensor in tensors if tensor.is_floating_point()]


def in_float64(module: nn.Module, args: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """What a copy of the module in float64 returns."""
    twin = copy.deepcopy(module).double()
    wide = [arg.double() if arg.is_floating_point() else arg for arg in args]
    return float_leaves(twin(*wide))


def largest_error(result: object, reference: list[torch.Tensor]) -> float:
    """The largest absolute difference from the reference, over all elements."""
    pairs = zip(float_leaves(result), reference, strict=True)
    return max(float((value.double() - exact).abs().max()) for value, exact in pairs)
