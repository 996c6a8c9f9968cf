# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: functions whose own code is not observed, but what they call:
functools.singledispatch and checkpoints."""

import collections
import functools

import pytest
import torch
import torch.utils.checkpoint
from observing import compiled, values, whole
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


# functools.singledispatch.


def test_functions_are_found_by_class():
    @functools.singledispatch
    def scale(by, x):
        return x * 2

    @scale.register
    def _(by: int, x):
        return x * 3

    class Number(int):
        pass

    def f(x, by):
        return scale(by, x)

    fast = compiled(f)
    arguments = (2, 2, 2.0, 2.0, Number(1), Number(1), "a", 2)
    for by in arguments:
        assert torch.equal(fast(values(), by), f(values(), by))
    assert whole(fast)
    scale.register(float, lambda by, x: x * 5)
    for by in arguments:
        assert torch.equal(fast(values(), by), f(values(), by))
    scale.register(Number, lambda by, x: x * 7)
    for by in arguments:
        assert torch.equal(fast(values(), by), f(values(), by))


def test_abstract_classes_are_not_looked_up():
    @functools.singledispatch
    def scale(by, x):
        return x * 2

    scale.register(collections.abc.Sized, lambda by, x: x * 3)

    class Late:
        pass

    fast = compiled(lambda x, by: scale(by, x))
    for _ in range(3):
        assert torch.equal(fast(values(), Late()), values() * 2)
    collections.abc.Sized.register(Late)
    for _ in range(2):
        assert torch.equal(fast(values(), Late()), values() * 3)


# Checkpoints.


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(3, 3), 2.0

    def block(self, x, more=0.0):
        return self.layer(x) * self.scale + more

    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(self.block, x, use_reentrant=False)
        y = torch.utils.checkpoint.checkpoint(self.layer, y, use_reentrant=False)
        return torch.utils.checkpoint.checkpoint(
            lambda z: self.block(z, 1.0), y, use_reentrant=False
        )


def test_checkpoints_without_gradients():
    model = Checkpointed()
    fast = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(fast(values()), model(values()))
        assert whole(fast)
        model.scale = 3.0
        for _ in range(2):
            assert torch.equal(fast(values()), model(values()))


def test_checkpoints_with_gradients_run_again():
    model, twin, runs = Checkpointed(), Checkpointed(), []
    twin.load_state_dict(model.state_dict())
    for each in (model, twin):
        each.layer.register_forward_pre_hook(lambda *_: runs.append(1))
    fast = compiled(model)
    for _ in range(3):
        counts, gradients = [], []
        for call in (fast, twin):
            runs.clear()
            x = values().requires_grad_()
            call(x).sum().backward()
            counts.append(len(runs))
            gradients.append(x.grad)
        assert counts == [6, 6]  # backward has run each block again
        assert torch.equal(*gradients)
    assert "a checkpoint that records gradients" in weft.stats(fast)["breaks"][0]


def test_an_error_within_a_checkpoint():
    def block(x):
        if x.shape[0] == 3:
            raise ValueError("three")
        return x * 2

    def f(x):
        try:
            return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        except ValueError:
            return x

    fast = compiled(f)
    for count in (2, 3, 2, 3, 3):
        assert torch.equal(fast(values(count)), f(values(count)))
