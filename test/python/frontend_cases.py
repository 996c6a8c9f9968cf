# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what the frontend makes from a function with eager PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from graph_interpreter import run_module
from torch.utils import _pytree as pytree

from weft.frontend import Lowered

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}


class Function(torch.nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def check(
    function: Callable | torch.nn.Module, *args: Any, native: bool = True, **kwargs
) -> Lowered:
    """Checks outputs, dtypes, mutations and view structure; with `native`, also that there is no
    fallback."""
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    eager_module, eager_args = copy.deepcopy(module), copy.deepcopy((args, kwargs))
    with torch.no_grad():
        state = torch.get_rng_state()
        expected = eager_module(*eager_args[0], **eager_args[1])
        torch.set_rng_state(state)
        found, lowered = run_module(module, args, kwargs)
    leaves = pytree.tree_leaves(expected)
    assert len(found) == len(leaves)
    compare(found, leaves)
    compare(pytree.tree_leaves((args, kwargs)), pytree.tree_leaves(eager_args))
    compare(list(module.state_dict().values()), list(eager_module.state_dict().values()))
    if native:
        assert not lowered.fallbacks, lowered.fallbacks
    else:
        assert lowered.fallbacks
    return lowered


def compare(found: list, expected: list) -> None:
    for got, want in zip(found, expected, strict=True):
        if not isinstance(want, torch.Tensor):
            assert got == want
            continue
        tolerance = TOLERANCE.get(want.dtype, 0)
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
