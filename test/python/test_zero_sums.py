# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that are zero because a mean was taken away: exactly zero, and only where they are."""

import copy

import pytest
import torch
from torch import nn

import weft


def gradients(module, program, x):
    """Of each parameter, by `program` after its first call."""
    for _ in range(2):
        module.zero_grad()
        weight = torch.linspace(-1, 2, program(x).numel(), dtype=x.dtype)
        (program(x).flatten() * weight).sum().backward()
    return {name: each.grad for name, each in module.named_parameters()}


def compared(module, x):
    twin = copy.deepcopy(module).double()
    compiled = weft.compile(module, capture="export", fullgraph=True)
    found, expected = gradients(module, compiled, x), gradients(twin, twin, x.double())
    assert compiled.stats()["hits"] > 0
    for name, each in found.items():
        torch.testing.assert_close(each.double(), expected[name], rtol=2e-4, atol=2e-4)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 7, 5)),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False)), (2, 3, 7, 5)),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4)), (2, 3, 7, 5)),
        (nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 7, 5)),
        (nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)), (2, 3, 7)),
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (9, 3)),
    ],
)
def test_what_a_norm_takes_away_has_none(module, shape):
    found = compared(module.train(), torch.randn(shape))
    assert not found["0.bias"].any()
    assert found["0.weight"].any()


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (9, 3)),
        (nn.Sequential(nn.Conv1d(3, 4, 1), nn.InstanceNorm1d(4)), (5, 3, 7)),
    ],
)
def test_numbers_that_are_none_stay_so(module, shape):
    x = torch.randn(shape)
    compiled = weft.compile(module.train(), capture="export")
    for _ in range(2):
        compiled(x).sum().backward()
    module.zero_grad()
    x[2, 1] = torch.nan
    compiled(x).sum().backward()
    assert module[0].bias.grad.isnan().all()


class Less(nn.Module):
    """What is given, and a bias, less what `mean` makes of both."""

    def __init__(self, mean, *shape):
        super().__init__()
        self.mean, self.bias = mean, nn.Parameter(torch.randn(shape))

    def forward(self, x):
        x = x + self.bias
        return (x - self.mean(x)) * 3


@pytest.mark.parametrize(
    "mean, shape, is_zero",
    [
        (lambda x: x.mean(0), (4,), True),
        (lambda x: x.mean(0, keepdim=True), (4, 4), True),
        (lambda x: x.mean((0, 1)), (1, 4), True),
        (lambda x: x.mean(), (1,), True),
        # Its elements stand elsewhere, or it is of other dims, or is no mean.
        (lambda x: x.mean(0).T, (4, 4), False),
        (lambda x: x.mean(1), (4,), True),
        (lambda x: x.mean((0, 1))[:, None], (4,), True),
        (lambda x: x.mean(2), (4,), False),
        (lambda x: x.sum(0) / 5, (4,), False),
        (lambda x: x.amax(0), (4,), False),
    ],
)
def test_only_means_of_the_same_elements(mean, shape, is_zero):
    found = compared(Less(mean, *shape), torch.randn(4, 4, 4))["bias"]
    if not is_zero:
        assert found.any()
