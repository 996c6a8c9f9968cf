# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of calls that take turns, and errors against the same program in float64."""

from __future__ import annotations

import copy
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

# PyTorch's OpenMP workers spin for some milliseconds after a call, others' too; they shall not
# take the processor away from whoever is timed next.
PAUSE = 0.03


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
            time.sleep(PAUSE)
            times[name] += timed_calls(call, seconds)
    return {name: statistics.median(each) for name, each in times.items()}


def float_leaves(result: object) -> list[torch.Tensor]:
    """The floating-point tensors of a pytree."""
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return [tensor.detach() for tensor in tensors if tensor.is_floating_point()]


def in_float64(module: nn.Module, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """What a copy of the module in float64 returns."""
    return float_leaves(copy.deepcopy(module).double()(*tree_map(_widened, args)))


def exported_in_float64(
    program: torch.export.ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[torch.Tensor]:
    """What an exported program returns with everything that is floating-point in float64.

    Raises: whatever PyTorch raises where an op of the graph does not take float64.
    """
    module = copy.deepcopy(program.module(check_guards=False)).double()
    graph = module.graph
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.erase_node(node)  # it asks for the dtypes of the export
            continue
        node.args = tree_map(_wide_dtype, node.args)
        node.kwargs = tree_map(_wide_dtype, node.kwargs)
        if node.op == "get_attr" and isinstance(
            value := _attribute(module, node.target), torch.Tensor
        ):
            value.data = _widened(value.data)
    module.recompile()
    return float_leaves(module(*tree_map(_widened, args), **tree_map(_widened, kwargs)))


def _attribute(module: nn.Module, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), module)


def _widened(value: Any) -> Any:
    wide = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if wide else value


def _wide_dtype(value: Any) -> Any:
    wide = isinstance(value, torch.dtype) and value.is_floating_point
    return torch.float64 if wide else value


def largest_error(result: object, reference: list[torch.Tensor]) -> float:
    """The largest absolute difference from the reference, over all elements."""
    pairs = zip(float_leaves(result), reference, strict=True)
    return max(float((value.double() - exact).abs().max()) for value, exact in pairs)
