# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that depend on an input by a mask alone: whether they are functions of it to autograd,
with a derivative of zeros, is as in eager execution, op by op."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import weft

CASES = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x: F.threshold(x, 0.1, 0.2),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.2])),
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "max_pool": lambda x: F.max_pool1d(x, 2),
    "max_pool2d": lambda x: F.max_pool2d(x[None], 2),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool1d(x, 2),
    "adaptive_to_one": lambda x: F.adaptive_max_pool2d(x[None], 1),
    "adaptive_uneven": lambda x: F.adaptive_max_pool1d(x, 4),
    # Whose gradients are none to autograd.
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "max": lambda x: x.max(1).values,
    "amax": lambda x: x.amax(1),
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "abs": torch.abs,
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "two ways": lambda x: torch.cat([x, x.relu()]),
    "linear": lambda x: 3 * x + 1,
}


def derivatives(function):
    """Of three calls: whether gradients require gradients, and these, None where there are none."""
    found = []
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        x, w = torch.randn(2, 4, 6, generator=generator)
        x.requires_grad_()
        (slope,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        found.append(slope.requires_grad)
        if slope.requires_grad:
            found += torch.autograd.grad((slope * w).sum(), x, allow_unused=True)
        y = function(x)
        along = torch.randn(y.shape, generator=generator).requires_grad_()
        (slope,) = torch.autograd.grad(y, x, along, create_graph=True)
        found += torch.autograd.grad((slope * w).sum(), (x, along), allow_unused=True)
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("verify", ["off", "first"])
@pytest.mark.parametrize("name", CASES)
def test_whether_gradients_are_functions_of_the_input(monkeypatch, name, verify):
    monkeypatch.setattr(weft.config, "verify", verify)
    function = CASES[name]
    compiled = weft.compile(function)
    for own, eager in zip(derivatives(compiled), derivatives(function), strict=True):
        assert type(own) is type(eager), (own, eager)
        if isinstance(eager, torch.Tensor):
            torch.testing.assert_close(own, eager)
        else:
            assert own == eager
    stats = weft.stats(compiled)
    assert stats["hits"] >= 6 and not stats["breaks"], stats


def test_a_penalty_on_slopes_of_a_network_that_is_frozen():
    """Its gradients are of no parameter; eager execution has zeros."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    network.requires_grad_(False)
    compiled = weft.compile(network)
    for _ in range(4):
        x = torch.randn(5, 4, requires_grad=True)
        (slope,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
        (slope.norm(dim=1) - 1).square().mean().backward()
        assert torch.equal(x.grad, torch.zeros(5, 4))
    assert weft.stats(compiled)["hits"] >= 3
