# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that a program writes out is one kernel, and means what it meant."""

import math

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check
from torch import nn

import weft

INF = float("inf")
LOWEST = -3e38  # of float32 and of bfloat16


def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def flattened(q, k, v, mask):
    """As fairseq has it: batch and heads are one dim for the products alone."""
    batch, heads, queries, _ = q.shape
    q, k, v = (x.reshape(batch * heads, -1, x.shape[-1]) for x in (q, k, v))
    weights = torch.bmm(q, k.transpose(1, 2)).view(batch, heads, queries, -1) + mask
    return torch.bmm(weights.softmax(-1).view(batch * heads, queries, -1), v)


def contracted(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    weights = torch.einsum("bqhd,bkhd->bhqk", q, 0.3 * k).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v)


FORMED = {
    "plain": lambda q, k, v, m: F.softmax(q @ k.mT, -1) @ v,
    "scaled query": lambda q, k, v, m: ((q * 0.3) @ k.mT).softmax(-1) @ v,
    "both scaled": lambda q, k, v, m: ((q * 0.5) @ (k * 0.5).mT * -1.5).softmax(-1) @ v,
    "added": lambda q, k, v, m: (scores(q, k) + m).softmax(-1) @ v,
    "added twice": lambda q, k, v, m: (m[:1] + (scores(q, k) + m * 2)).softmax(-1) @ v,
    "filled": lambda q, k, v, m: scores(q, k).masked_fill(m > 0.5, -INF).softmax(-1) @ v,
    "filled low": lambda q, k, v, m: scores(q, k).masked_fill(m > 0.5, LOWEST).softmax(-1) @ v,
    "nothing seen": lambda q, k, v, m: scores(q, k).masked_fill(m > -99, -INF).softmax(-1) @ v,
    "an average": lambda q, k, v, m: scores(q, k).masked_fill(m > -99, LOWEST).softmax(-1) @ v,
    "where": lambda q, k, v, m: torch.where(m > -0.5, scores(q, k), -INF).softmax(-1) @ v,
    "filled finitely": lambda q, k, v, m: scores(q, k).masked_fill(m > 0, -2.0).softmax(-1) @ v,
    "filled twice": lambda q, k, v, m: (
        scores(q, k).masked_fill(m > 1, -1e9).masked_fill(m < -1, -1e9).softmax(-1) @ v
    ),
    "flattened": flattened,
    "contracted": lambda q, k, v, m: contracted(q, k, v),
    "two products": lambda q, k, v, m: (scores(q, k) + q @ k.flip(-1).mT).softmax(-1) @ v,
}

LEFT = {
    "weights": lambda q, k, v, m: [w := scores(q, k).softmax(-1), w @ v],
    "scores": lambda q, k, v, m: [s := scores(q, k), s.softmax(-1) @ v],
    "scaled mask": lambda q, k, v, m: ((q @ k.mT + m) * 0.2).softmax(-1) @ v,
    "filled and added": lambda q, k, v, m: (
        (scores(q, k).masked_fill(m > 0.5, -INF) + m).softmax(-1) @ v
    ),
    "filled upwards": lambda q, k, v, m: scores(q, k).masked_fill(m > 0.5, 2.0).softmax(-1) @ v,
    "queries": lambda q, k, v, m: scores(q, k).softmax(-2) @ v,
}


def operands(queries, keys, size, dtype=torch.float32):
    q = torch.randn(2, 3, queries, size, dtype=dtype)
    k, v = (torch.randn(2, 3, keys, size, dtype=dtype) for _ in range(2))
    return q, k, v, torch.randn(2, 3, queries, keys, dtype=dtype)


def apart(functions):
    """The same with queries of their own: who shares scores needs them in memory."""
    return [
        lambda q, k, v, m, function=function, shift=shift: function(q + shift / 8, k, v, m)
        for shift, function in enumerate(functions)
    ]


def attentions(compiled):
    return compiled.ir("optimized").count("weft.attention ")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "queries, keys, size", [(3, 5, 8), (17, 40, 16), (49, 49, 32), (70, 300, 24)]
)
def test_formed(queries, keys, size, dtype):
    # The largest of 10,000 errors is up to three times eager's, whose kernels differ by machine;
    # the mean is as eager's.
    compiled = check(apart(FORMED.values()), *operands(queries, keys, size, dtype), slack=12)
    formed = len(FORMED) if dtype != torch.bfloat16 and queries > 8 else 0
    assert attentions(compiled) == formed


def test_left():
    compiled = check(apart(LEFT.values()), *operands(17, 40, 16))
    assert attentions(compiled) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMED)
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_nan_and_infinities(name, isa, no_grad, compiled_only):
    """Come out where they do in eager execution, a row without keys among them."""
    q, k, v, mask = operands(20, 130, 8)
    q[0, 0, 3, 1], q[0, 1, 4, 2], mask[1, 1, 5] = torch.nan, torch.inf, 1
    mask[1, 0, 6] = -torch.inf
    k[1, 2, 7, 3], mask[1, 2, :, 7] = torch.nan, torch.tensor([1.0, -2.0]).repeat(10)
    expected = FORMED[name](q, k, v, mask)
    found = weft.compile(FORMED[name], isa=isa)(q, k, v, mask)
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_scores_that_overflow(no_grad, compiled_only):
    """A row of -inf is NaN though nothing hides it."""
    q, k, v, _ = operands(20, 40, 8)
    q, k = -1e20 * q.abs(), 1e20 * k.abs()
    assert weft.compile(FORMED["plain"])(q, k, v, None).isnan().all()


def test_bf16_rounds_the_operands(no_grad, compiled_only):
    """Precision is that of matmuls, which attention's kernel does not lower."""
    compiled = weft.compile(FORMED["plain"], precision="bf16")
    compiled(*operands(20, 40, 8))
    assert attentions(compiled) == 0


CAUSAL = {
    "complement of a triangle": lambda s: s.masked_fill(~torch.ones_like(s).bool().tril(), -INF),
    "zeros of a triangle": lambda s: s.masked_fill(torch.tril(torch.ones(50, 50)) == 0, -INF),
    "a triangle of infinities": lambda s: s + torch.triu(torch.full((50, 50), -INF), diagonal=1),
    "positions": lambda s: torch.where(
        torch.arange(50)[:, None] >= torch.arange(50), s, torch.tensor(-INF)
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CAUSAL)
def test_causal(name):
    """Keys behind the query are not computed, however that is written."""
    q, k, v, _ = operands(50, 50, 16)
    compiled = check(lambda q, k, v: CAUSAL[name](scores(q, k)).softmax(-1) @ v, q, k, v)
    assert "causal true" in compiled.ir("optimized")


class Windows(nn.Module):
    """Windows of an image with a bias of their places, as Swin's."""

    def __init__(self):
        super().__init__()
        self.qkv, self.project = nn.Linear(48, 144), nn.Linear(48, 48)
        self.bias = nn.Parameter(torch.randn(3, 49, 49))

    def forward(self, x, hidden):
        count, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(count, tokens, 3, 3, width // 3).permute(2, 0, 3, 1, 4)
        weights = q * (width // 3) ** -0.5 @ k.transpose(-2, -1) + self.bias
        weights = weights.view(count // 4, 4, 3, tokens, tokens) + hidden[None, :, None]
        y = weights.view(count, 3, tokens, tokens).softmax(-1) @ v
        return self.project(y.transpose(1, 2).reshape(count, tokens, width))


def test_windows():
    hidden = torch.where(torch.rand(4, 49, 49) < 0.2, -100.0, 0.0)
    compiled = check(Windows().eval(), torch.randn(8, 49, 48), hidden)
    assert attentions(compiled) == 1
