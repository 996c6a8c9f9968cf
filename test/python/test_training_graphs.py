# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What differentiated graphs are made of."""

import re

import torch
from torch import nn

import weft


def constants(text, value):
    """The names of all tensors whose elements are all `value`."""
    return set(re.findall(rf"(%\w+) = weft.constant dense<{re.escape(value)}> : tensor<\d", text))


def test_nothing_is_added_to_zeros_or_multiplied_by_ones():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    compiled = weft.compile(layer)
    compiled(torch.randn(2, 5, 16)).sum().backward()
    for half in ("forward", "backward"):
        text = compiled.ir("optimized", half)
        zeros, ones = constants(text, "0.000000e+00"), constants(text, "1.000000e+00")
        for op, operands in re.findall(r"weft\.(\w+) ((?:%[\w#]+(?:, )?)+)", text):
            names = operands.split(", ")
            assert not (op == "add" and zeros.intersection(names)), operands
            assert not (op == "mul" and ones.intersection(names)), operands
            assert not (op == "div" and names[1] in ones), operands
        assert "_like" not in text


class Spread(nn.Module):
    """Parameters that are spread over the rows, ahead of a norm."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.randn(32)) for _ in range(2))
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        return torch.tanh(x * self.scale + self.shift) * torch.sigmoid(self.norm(x))


def test_sums_over_what_was_spread_are_one_kernel():
    compiled = weft.compile(Spread())
    compiled(torch.randn(16, 32)).sum().backward()
    text = compiled.ir("kernels", "backward")
    assert len(re.findall(r" call @", text)) == 1
    assert len(re.findall(r"weft.reduce <sum>", text)) == 4


class Unrolled(nn.Module):
    """Too few steps for a loop."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.enter, self.recall = nn.Linear(96, 128), nn.Linear(128, 128, bias=False)

    def forward(self, xs, state):
        for step in range(self.steps):
            state = torch.tanh(self.enter(xs[step]) + self.recall(state)) * (1 + step)
        return state


def test_steps_that_are_not_rolled_share_their_products(verified):
    """The product of all inputs is one, and so is the gradient of each weight."""
    steps = 3
    net = Unrolled(steps).double()
    compiled = weft.compile(net)
    xs, state = torch.randn(steps, 2, 96).double(), torch.randn(2, 128).double()
    for _ in range(2):
        cotangent = torch.randn(2, 128).double()
        expected = torch.autograd.grad(net(xs, state), net.parameters(), cotangent)
        found = torch.autograd.grad(compiled(xs, state), net.parameters(), cotangent)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]
    counts = {half: compiled.ir("optimized", half).count("dot") for half in ("forward", "backward")}
    assert counts == {"forward": 1 + steps, "backward": 2 + (steps - 1)}


def test_what_requires_no_gradients_is_a_program_though_they_are_recorded():
    """As in a metric of logits. What is only rounded has a history, which leads to zeros."""

    def metric(logits, target, history):
        history["signs"] = logits.sign()
        return (logits.argmax(-1) == target).float().mean(), logits.detach().exp()

    target = torch.tensor([0, 2])
    compiled = weft.compile(lambda x: metric(x, target, {}))
    for seed in range(3):
        logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        for found, expected in zip(compiled(logits), metric(logits, target, {}), strict=True):
            torch.testing.assert_close(found, expected)
            assert not found.requires_grad
    assert "PyTorch runs" not in str(compiled.explain(logits))
