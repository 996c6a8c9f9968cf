# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout by a counter-based generator, `rng="philox"`."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from agreeing import check_replayed
from torch import nn
from training_cases import tensors

import weft
from weft.frontend.philox import PhiloxDraws, kept, philox

SIZE = 1 << 18


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


def test_known_answers():
    """Source: the known answers of Random123's distribution for philox2x32 10."""
    low = torch.tensor([0, -1, 0x243F6A88], dtype=torch.int32)
    high = torch.tensor([0, -1, 0x85A308D3 - (1 << 32)], dtype=torch.int32)
    key = torch.tensor([0, -1, 0x13198A2E], dtype=torch.int32)
    assert [each & 0xFFFFFFFF for each in philox(low, high, key).tolist()] == [
        0xFF1DAE59,
        0x2C3F628B,
        0xDD7CE038,
    ]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_statistics(p):
    """Within five standard deviations: how many are kept, of neighbours, of draws, of calls."""
    keep = 1 - p
    compiled = weft.compile(lambda x: F.dropout(x, p) + 2 * F.dropout(x, p), rng="philox")
    x = torch.ones(SIZE, requires_grad=True)
    compiled(x)
    masks = []
    for _ in range(2):
        drawn = (compiled(x).detach() * keep).round().long()
        masks += [(drawn & 1).double(), (drawn >> 1).double()]
    assert weft.stats(compiled)["hits"] >= 2, weft.stats(compiled)
    bound = 5 * math.sqrt(keep * p / SIZE)
    for mask in masks:
        assert abs(mask.mean() - keep) < bound
    pairs = [(masks[0][:-1], masks[0][1:]), (masks[0][:-16], masks[0][16:])]
    pairs += [(masks[0], masks[1]), (masks[0], masks[2]), (masks[1], masks[3])]
    for first, second in pairs:
        covariance = ((first - keep) * (second - keep)).mean()
        assert abs(covariance) < 5 * keep * p / math.sqrt(SIZE)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)

    def forward(self, x):
        return self.layer(x)


CASES = {
    "strided": (lambda x: F.dropout(x.t(), 0.3), (12, 20)),
    "channels": (lambda x: F.dropout2d(x, 0.4), (3, 5, 4, 4)),
    "alpha": (lambda x: F.alpha_dropout(x, 0.4, True), (6, 7)),
    "feature alpha": (lambda x: F.feature_alpha_dropout(x, 0.4, True), (6, 7, 3)),
    "bernoulli": (lambda x: x * torch.empty_like(x).bernoulli_(0.25), (6, 7)),
    "all kept": (lambda x: F.dropout(x, 1e-12), (6, 7)),
    "all dropped": (lambda x: F.dropout(x, 1.0), (6, 7)),
}


@pytest.mark.parametrize("name", CASES)
def test_first_call_and_gradients(name):
    """PyTorch's first call is fed the masks of the programs, and its gradients are theirs."""
    function, shape = CASES[name]
    compiled = weft.compile(function, rng="philox")
    found = []
    for _ in range(3):
        torch.manual_seed(3)
        (x,) = tensors(shape)
        value = compiled(x)
        (gradient,) = torch.autograd.grad(
            value, x, torch.linspace(-1, 2, value.numel()).to(x).view(value.shape)
        )
        found.append((value, gradient))
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats
    for value, gradient in found[1:]:
        torch.testing.assert_close(value, found[0][0])
        torch.testing.assert_close(gradient, found[0][1])


def test_a_transformer_layer_saves_no_mask():
    torch.manual_seed(0)
    module = Attention().double()
    compiled = weft.compile(module, rng="philox")
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    for _ in range(3):
        compiled(x).square().sum().backward()
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats
    backward = compiled_backward(compiled)
    assert "weft.philox" in backward and "tensor<2x9x16xi1>" not in backward.split("{")[0]


def compiled_backward(compiled):
    from weft.compiled.module import callable_of

    return callable_of(compiled).face.graph("backward")


def test_threads_draw_the_same():
    compiled = weft.compile(lambda x: F.dropout(x, 0.5), rng="philox")
    x = torch.ones(300, 301, requires_grad=True)
    compiled(x)
    before, drawn = weft.get_num_threads(), []
    try:
        for threads in (1, 2):
            weft.set_num_threads(threads)
            torch.manual_seed(1)
            drawn.append(compiled(x))
    finally:
        weft.set_num_threads(before)
    assert torch.equal(*drawn)


def test_recurrent_nets():
    torch.manual_seed(0)
    compiled = weft.compile(nn.LSTM(5, 6, 3, dropout=0.5).double(), rng="philox")
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    for _ in range(3):
        compiled(x)[0].sum().backward()
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats


def test_masks_follow_the_seed():
    key = torch.tensor([5, 6], dtype=torch.int32)
    mask = kept(torch.Size([10, 10]), 0.5, key, 2)
    assert mask.shape == (10, 10) and 20 < mask.sum() < 80
    with PhiloxDraws():
        torch.manual_seed(1)
        first = F.dropout(torch.ones(50), 0.5)
        torch.manual_seed(1)
    with PhiloxDraws():
        assert torch.equal(F.dropout(torch.ones(50), 0.5), first)


def test_wrong_argument():
    with pytest.raises(weft.errors.ConfigError, match="expected rng torch or philox"):
        weft.compile(lambda x: x, rng="numpy")


def test_background():
    compiled = weft.compile(nn.Dropout(0.4), rng="philox", background=True)
    with torch.no_grad():
        for _ in range(3):
            compiled(torch.ones(30, 40))
            assert compiled.wait(60)
    check_replayed(compiled)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rng", ["torch", "philox"])
def test_autocast(rng):
    """What is rounded to bfloat16 on the way is compared as such."""
    torch.manual_seed(0)
    compiled = weft.compile(Attention(), rng=rng)
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            value = compiled(torch.randn(4, 28, 16))
        value.float().square().sum().backward()
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats
