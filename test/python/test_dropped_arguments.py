# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch's that lose an argument where a mode hears of their calls keep it."""

import inspect

import pytest
import torch
from torch.nn.functional import l1_loss
from torch.overrides import TorchFunctionMode

import weft
from weft.capture.dropped_arguments import _DROPPED, no_arguments_dropped


class _Hearing(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def unverified(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")


def test_weights_of_a_loss_count(compiled_only):
    x, y, weight = (torch.rand(3, 4, requires_grad=True) for _ in range(3))
    found = weft.compile(l1_loss)(x, y, weight=weight)
    gradients = torch.autograd.grad(found, (x, y, weight))
    expected = l1_loss(x, y, weight=weight)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, (x, y, weight)))


def test_a_chain_of_products_is_written_to_its_out():
    def function(x, y, out):
        return torch.chain_matmul(x, y, out=out) + 1

    x, y, found, expected = torch.rand(3, 4), torch.rand(4, 5), torch.zeros(3, 5), torch.zeros(3, 5)
    compiled = weft.compile(function)
    for _ in range(2):
        torch.testing.assert_close(compiled(x, y, found), function(x, y, expected))
        torch.testing.assert_close(found, expected)


def test_they_still_lose_it():
    """Otherwise it is time to forget them; what they lose has a default."""
    for function, name in _DROPPED.items():
        assert inspect.signature(function).parameters[name].default in (None, False)
    x, weight = torch.rand(3), torch.tensor([0.0, 1, 2])
    with _Hearing():
        lost = l1_loss(x, -x, weight=weight, reduction="sum")
        with no_arguments_dropped():
            kept = l1_loss(x, -x, weight=weight, reduction="sum")
    torch.testing.assert_close(lost, (2 * x).sum())
    torch.testing.assert_close(kept, (2 * x * weight).sum())
