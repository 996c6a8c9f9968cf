# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks that a call sets for its backward, on gradients and on what is saved, run as in eager
execution: no program has them, and those that look at a gradient alone change no number."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.seen: list = []

    def forward(self, x):
        y = self.first(x)
        if y.requires_grad:
            self.mark(y)
        return self.second(y) * y

    def mark(self, y):
        y.register_hook(self.see)

    def see(self, gradient):
        self.seen.append(gradient.sum())


class Doubles(Net):
    def see(self, gradient):
        return gradient * 2


class OfSeveral(Net):
    def mark(self, y):
        torch.autograd.graph.register_multi_grad_hook((y,), lambda each: self.see(each[0]))


class OfTheNode(Net):
    def mark(self, y):
        node = torch.autograd.graph.get_gradient_edge(y).node
        node.register_prehook(lambda each: self.see(each[0]))


class OfAParameter(Net):
    def mark(self, y):
        self.second.weight.register_hook(self.see)


class OnceAccumulated(Net):
    def mark(self, y):
        self.second.weight.register_post_accumulate_grad_hook(lambda weight: self.see(weight.grad))


class SetByAHook(Net):
    def __init__(self) -> None:
        super().__init__()
        self.first.register_forward_hook(self.after)

    def after(self, module, args, out):
        out.register_hook(self.see)

    def mark(self, y):
        """Has one already."""


class Rounds(Net):
    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda each: each.round(), lambda each: each):
            return super().forward(x)

    def mark(self, y):
        """What is saved of it is another."""


KINDS = [Net, Doubles, OfSeveral, OfTheNode, OfAParameter, OnceAccumulated, SetByAHook, Rounds]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("verify", ["first", "off"])
@pytest.mark.parametrize("kind", KINDS)
def test_hooks_run(kind, verify, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", verify)
    model, twin = kind(), kind()
    twin.load_state_dict(model.state_dict())
    fast = weft.compile(model)
    for _ in range(3):
        x = torch.randn(3, 4)
        for each, call in ((model, fast), (twin, twin)):
            each.zero_grad()
            call(x).sum().backward()
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
        torch.testing.assert_close(model.seen, twin.seen)
    assert any("sets a hook" in each for each in fast.stats()["breaks"])


def test_what_pytorch_saves_elsewhere_is_a_program(verified):
    class Elsewhere(Net):
        def forward(self, x):
            with torch.autograd.graph.save_on_cpu():
                return self.second(self.first(x))

    fast = weft.compile(Elsewhere())
    for _ in range(3):
        fast(torch.randn(3, 4)).sum().backward()
    assert fast.stats()["breaks"] == []
