# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A switch for each pass of the compiler that a program can do without."""

import pytest
import torch
from published_cells import INPUTS, LSTM
from torch import nn
from weft._compiler import optional_passes

import weft


class Both(nn.Module):
    """A loop over time, and layers that each pass has something to do for."""

    def __init__(self):
        super().__init__()
        self.loop = LSTM()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)
        self.convolve, self.norm = nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6)

    def forward(self, xs):
        hidden = self.loop(xs)
        query, key = self.one(hidden), self.other(hidden)
        read = nn.functional.scaled_dot_product_attention(query, key, hidden)
        return self.norm(self.convolve(read.permute(1, 2, 0)))


def check(without, training):
    torch.manual_seed(0)
    net = Both().double().eval()
    xs = torch.randn(18, 3, INPUTS, dtype=torch.float64)
    compiled = weft.compile(net, without=without)
    with torch.set_grad_enabled(training):
        compiled(xs)
        found, expected = compiled(xs), net(xs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    if training:
        given = torch.randn_like(expected)
        own, theirs = (torch.autograd.grad(y, net.parameters(), given) for y in (found, expected))
        for a, b in zip(own, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]
    return compiled


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", optional_passes())
def test_one_pass(name):
    check([name], False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("training", [False, True])
def test_all_passes(training):
    text = check(optional_passes(), training).ir("kernels")
    others = [name for name in optional_passes() if name != "weft-fuse-kernels"]
    fused = check(others, training).ir("kernels")
    assert "weft.loop @" not in text and "weft.loop @" not in fused
    assert text.count("call @") > fused.count("call @") + 18


def test_what_they_do(no_grad):
    texts = {}
    for without in ((), ("weft-roll-loops",), ("weft-fuse-kernels",), ("weft-batch-steps",)):
        net, xs = LSTM(), torch.randn(18, 3, INPUTS)
        compiled = weft.compile(net, without=without)
        compiled(xs)
        texts[without] = compiled.ir("kernels")
    loops = {without: text.count("weft.loop @") for without, text in texts.items()}
    calls = {without: text.count("call @") for without, text in texts.items()}
    assert loops.pop(("weft-roll-loops",)) == 0 and set(loops.values()) == {1}
    assert calls["weft-fuse-kernels",] > calls[()] + 4


def test_other_names_are_refused():
    with pytest.raises(weft.errors.ConfigError, match="weft-roll-loops.*found 'weft-rol-loops'"):
        weft.compile(nn.Linear(2, 2), without=["weft-rol-loops"])
