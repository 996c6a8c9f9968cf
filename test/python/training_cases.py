# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions and modules whose gradients the compiled backward gives, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from agreeing import check_replayed

import weft


def tensors(*shapes: tuple[int, ...], dtype=torch.float64, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64)
        .to(dtype)
        .requires_grad_(dtype.is_floating_point)
        for shape in shapes
    ]


def gradients(function: Callable, inputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """The gradients of the outputs, for cotangents whose elements all differ."""
    outputs = function(*inputs)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    outputs = [each for each in outputs if each.requires_grad]
    cotangents = [
        torch.linspace(-1, 2, each.numel()).to(each).reshape(each.shape) for each in outputs
    ]
    wanted = [each for each in inputs if each.requires_grad]
    return list(torch.autograd.grad(outputs, wanted, cotangents, allow_unused=True))


def compiled_gradients(function: Callable, inputs: list[torch.Tensor]) -> tuple[Any, list]:
    """The results of the compiled function and its gradients, which its own programs compute."""
    compiled = weft.compile(function)
    gradients(compiled, inputs)
    found = gradients(compiled, inputs)
    check_replayed(compiled)
    return compiled, found


def assert_same(found: list, expected: list, tolerance: float) -> None:
    for own, eager in zip(found, expected, strict=True):
        if eager is None:
            assert own is None
            continue
        torch.testing.assert_close(own, eager, rtol=tolerance, atol=tolerance)
