# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of optimizers, of the domain ai.onnx.preview.training.

Inputs: the rate, the number of steps made, then all tensors, all gradients, all states.
"""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.table import Node, op

_DOMAIN = "ai.onnx.preview.training"


def _groups(tensors: tuple[Tensor, ...], count: int) -> list[tuple[Tensor, ...]]:
    """For each optimized tensor, itself with its gradient and states."""
    each = len(tensors) // count
    return list(zip(*(tensors[i * each : (i + 1) * each] for i in range(count)), strict=True))


def _flat(results: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(value for column in zip(*results, strict=True) for value in column)


@op("Adagrad", "decay_factor epsilon norm_coefficient", domain=_DOMAIN)
def adagrad(node: Node, rate: Tensor, steps: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    rate = rate / (1 + steps * node.get("decay_factor", 0.0))
    results = []
    for x, gradient, squares in _groups(tensors, 3):
        gradient = gradient + node.get("norm_coefficient", 0.0) * x
        squares = squares + gradient * gradient
        results.append(
            (x - rate * gradient / (squares.sqrt() + node.get("epsilon", 1e-6)), squares)
        )
    return _flat(results)


@op("Adam", "alpha beta epsilon norm_coefficient norm_coefficient_post", domain=_DOMAIN)
def adam(node: Node, rate: Tensor, steps: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    alpha, beta = node.get("alpha", 0.9), node.get("beta", 0.999)
    corrected = rate * torch.sqrt(1 - beta**steps) / (1 - alpha**steps)
    rate = torch.where(steps > 0, corrected, rate)
    results = []
    for x, gradient, first, second in _groups(tensors, 4):
        gradient = gradient + node.get("norm_coefficient", 0.0) * x
        first = alpha * first + (1 - alpha) * gradient
        second = beta * second + (1 - beta) * gradient * gradient
        moved = x - rate * first / (second.sqrt() + node.get("epsilon", 1e-6))
        moved = (1 - node.get("norm_coefficient_post", 0.0)) * moved
        results.append((moved, first, second))
    return _flat(results)


@op("Momentum", "alpha beta mode norm_coefficient", domain=_DOMAIN)
def momentum(node: Node, rate: Tensor, steps: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    alpha, beta = node.get("alpha"), node.get("beta")
    beta = torch.where(steps > 0, beta, 1.0)
    results = []
    for x, gradient, velocity in _groups(tensors, 3):
        gradient = gradient + node.get("norm_coefficient") * x
        velocity = alpha * velocity + beta * gradient
        nesterov = node.get("mode") == "nesterov"
        direction = gradient + alpha * velocity if nesterov else velocity
        results.append((x - rate * direction, velocity))
    return _flat(results)
