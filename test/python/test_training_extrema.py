# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of extrema go to the elements that the forward took, though a backward computes the
elements again, in kernels that may round otherwise."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import weft


class Stem(nn.Module):
    """As most networks for images begin."""

    def __init__(self, extremum):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.extremum = extremum

    def forward(self, x):
        return self.extremum(self.norm(self.convolution(x)).relu())


EXTREMA = {
    "windows": lambda y: F.max_pool2d(y, 2),
    "windows_and_more": lambda y: F.conv2d(F.max_pool2d(y, 2), torch.ones(2, 4, 3, 3)),
}


@pytest.mark.parametrize("extremum", EXTREMA.values(), ids=EXTREMA)
def test_elements_are_computed_again(extremum, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    stem = Stem(extremum)
    compiled = weft.compile(stem)
    for _ in range(3):
        x = torch.randn(2, 3, 32, 32)
        given = [x.requires_grad_(), *stem.parameters()]
        expected, actual = stem(x), compiled(x)
        along = torch.randn_like(expected)
        wanted = torch.autograd.grad(expected, given, along)
        for one, other in zip(torch.autograd.grad(actual, given, along), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_elements_that_two_loops_compute(monkeypatch):
    """The forward's own extremum, found among rows that lie otherwise than those it saves, whose
    sums are made in another order, is none of them."""
    monkeypatch.setattr(weft.config, "verify", "off")
    linear = nn.Linear(32, 64)

    def function(x):
        return F.softmax(linear(x) * 3, -1).amax(-1)

    compiled = weft.compile(function)
    for _ in range(2):
        x = torch.randn(4, 32, 32, requires_grad=True)
        given = [x, *linear.parameters()]
        wanted = torch.autograd.grad(function(x).sum(), given)
        found = torch.autograd.grad(compiled(x).sum(), given)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
