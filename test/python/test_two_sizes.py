# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for ranges of two sizes at once, at sizes that hypothesis chooses, against PyTorch.

Nothing but these comparisons stands between a wrong program and the user: programs are not
verified.
"""

from __future__ import annotations

import hypothesis
import pytest
import torch
import torch.nn.functional as F
from hypothesis import strategies
from test_size_ranges import agree, agree_or_raise

import weft

MOST = 24


def reduced(x):
    return x.sum(0), x.mean(1), x.softmax(1), x.softmax(0), x.amax((0, 1)), x.cumsum(1)


def moved(x):
    return x.transpose(0, 1) * 2, x[1:, :-1] + 1, x.flip(1), x.reshape(-1) - 1, x[-1, :, 0] * 2


def joined(x):
    return torch.cat([x, x * 2]), torch.cat([x, x], 1), F.pad(x, (0, 0, 1, 2)), torch.stack([x, x])


def contracted(x):
    products = x @ x.transpose(1, 2)
    return products, products.softmax(-1) @ x, torch.einsum("abd,cbd->acb", x, x)


def attended(x):
    q = x[:, :, None].transpose(1, 2)
    hidden = torch.arange(x.shape[1])[None] <= torch.arange(x.shape[1])[:, None]
    return (
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
        F.scaled_dot_product_attention(q, q * 2, q, attn_mask=hidden),
    )


def normed(x):
    return F.layer_norm(x, (8,)), F.gelu(x), F.normalize(x, dim=-1), (x > 0).any(1)


def averaged(x):
    return x.mean(), x.mean((0, 1)), (x - 1).abs().mean(), x.flatten(0, 1).mean(0)


GRU = torch.nn.GRU(8, 5, bidirectional=True, batch_first=True)


def repeated(x):
    return GRU(x)


FAMILIES = [reduced, moved, joined, contracted, attended, normed, averaged, repeated]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_two_sizes_at_once(family, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    sizes = weft.Range(2, MOST)
    compiled = weft.compile(family, shapes={"x": {0: sizes, 1: sizes}})
    chosen = strategies.integers(3, MOST)  # of 2 the slices that follow are of 1

    @hypothesis.settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @hypothesis.given(chosen, chosen)
    @hypothesis.example(5, 7)
    @hypothesis.example(MOST, 3)
    @hypothesis.example(3, MOST)
    @hypothesis.example(4, 4)
    def is_right(n, m):
        torch.manual_seed(100 * n + m)
        x = torch.randn(n, m, 8)
        agree(compiled(x), family(x))

    with torch.no_grad():
        is_right()
        stats = compiled.stats()
        assert stats["specialized"] == [] and stats["breaks"] == []
        assert sum(stats["ranges"].values()) >= 30
        # Beyond the range there is another program, and the same values.
        for shape in ((MOST + 1, 5, 8), (5, MOST + 9, 8), (1, 5, 8), (5, 0, 8)):
            agree_or_raise(compiled, family, torch.randn(shape))


def multiplied(x, y):
    return (x @ y).relu(), x.sum(0)


def test_a_relation_that_does_not_hold_raises_pytorchs_error(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    sizes = weft.Range(2, MOST)
    compiled = weft.compile(multiplied, shapes={"x": {0: sizes, 1: sizes}, "y": {0: sizes}})
    with torch.no_grad():
        for n, m in ((5, 7), (9, 3), (4, 4)):
            x, y = torch.randn(n, m), torch.randn(m, 6)
            agree(compiled(x, y), multiplied(x, y))
        assert sum(compiled.stats()["ranges"].values()) == 3
        for m, k in ((5, 6), (6, 5), (MOST, MOST - 1)):
            x, y = torch.randn(4, m), torch.randn(k, 6)
            with pytest.raises(RuntimeError) as expected:
                multiplied(x, y)
            with pytest.raises(RuntimeError) as raised:
                compiled(x, y)
            assert str(raised.value) == str(expected.value)
