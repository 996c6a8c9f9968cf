# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention and the layers around it, compiled."""

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check
from torch import nn

import weft

FLOATS = [torch.float32, torch.float64, torch.bfloat16]


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length, size", [(1, 8), (5, 16), (17, 64), (33, 30), (130, 64)])
def test_attention(length, size, dtype):
    q, k, v = (torch.randn(2, 3, length, size, dtype=dtype) for _ in range(3))
    keep = torch.ones(2, 1, 1, length, dtype=torch.bool)
    keep[1, ..., length // 2 + 1 :] = False
    attend = F.scaled_dot_product_attention
    functions = [
        lambda q, k, v, keep, bias: attend(q, k, v),
        lambda q, k, v, keep, bias: attend(q, k, v, is_causal=True),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=keep),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=keep & causal(length)),
        lambda q, k, v, keep, bias: attend(q, k, v, attn_mask=bias),
        lambda q, k, v, keep, bias: attend(q, k[:, :, :1], v[:, :, :1], scale=0.2),
        lambda q, k, v, keep, bias: attend(q[:, :, :1], k, v).transpose(1, 2).flatten(2),
        lambda q, k, v, keep, bias: attend(q, k[:, :1], v[:, :1], enable_gqa=True),
        lambda q, k, v, keep, bias: attend(q, k, v[..., :5]),
        lambda q, k, v, keep, bias: attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)),
        lambda q, k, v, keep, bias: (q @ k.mT * 0.1).masked_fill(~keep, -1e9).softmax(-1) @ v,
    ]
    check(functions, q, k, v, keep, torch.randn(1, 3, length, length, dtype=dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("length", [1, 7, 64, 65])
def test_self_attention_block(length):
    layer = nn.TransformerEncoderLayer(48, 4, 65, batch_first=True, dropout=0.0)
    check(layer.train(), torch.randn(2, length, 48))
    check(layer.double(), torch.randn(1, length, 48).double())


def test_cross_attention():
    layer = nn.TransformerDecoderLayer(32, 4, 33, batch_first=True, dropout=0.0)
    check(layer.train(), torch.randn(2, 7, 32), torch.randn(2, 19, 32))


def test_attention_in_windows_of_padded_blocks():
    """Windows and heads are one dim on the way, and tokens fill no whole blocks: no index of a key
    may come to lie in the next head."""
    windows, heads, side, size = 5, 3, 14, 16

    def attend(x, weight, bias):
        qkv = (
            F.linear(x, weight).reshape(windows, side * side, 3, heads, size).permute(2, 0, 3, 1, 4)
        )
        q, k, v = qkv.reshape(3, windows * heads, side * side, size).unbind(0)
        q, k, v = (t.view(windows, heads, side * side, size) for t in (q, k, v))
        bias = bias.reshape(windows, heads, side * side, side * side)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        found = found.view(windows, heads, side, side, size).permute(0, 2, 3, 1, 4)
        return found.reshape(windows, side, side, heads * size)

    x, weight = torch.randn(windows, side, side, 48), torch.randn(3 * heads * size, 48) / 7
    check(attend, x, weight, torch.randn(windows * heads, *[side] * 4))


def test_attention_written_out():
    """A mask of -100 leaves weights that no sum shows; of a row without keys, there is none."""

    def attend(q, k, v, mask):
        return (q @ k.transpose(-1, -2) / 4 + mask).softmax(-1) @ v

    hidden = torch.rand(3, 49, 49) < 0.5
    q, k, v = torch.randn(3, 2, 3, 49, 16).unbind(0)
    check(attend, q, k, v, hidden * -100.0)
    nothing = torch.zeros(3, 49, 49).masked_fill(torch.arange(49).eq(7)[:, None], -torch.inf)
    check(attend, q, k, v, nothing)
    assert attend(q, k, v, nothing).isnan().any()


@pytest.mark.parametrize("height, width", [(20, 28), (4, 4), (4, 12)])
def test_attention_of_windows_that_are_read_where_they_lie(height, width):
    """A window's rows are no even distances apart in the image."""

    def windows(x):
        n, channels = x.shape[:2]
        x = x.reshape(n, channels, height // 4, 4, width // 4, 4)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, channels)

    def attend(x):
        w = windows(x)
        return F.scaled_dot_product_attention(w, w, w)

    def by_heads(x):
        w = windows(x).reshape(-1, 16, 2, x.shape[1] // 2).transpose(1, 2)
        return F.scaled_dot_product_attention(w, w, w).transpose(1, 2).flatten(2)

    check([attend, by_heads], torch.randn(2, 32, height, width))


def test_causal_attention_of_the_places_of_a_grid(monkeypatch):
    """Padding lies between the rows, in front of queries that count."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def attend(x):
        tokens = x.flatten(2).transpose(1, 2)
        return F.scaled_dot_product_attention(tokens, tokens, tokens, is_causal=True)

    sizes = {2: weft.Range(5, 12), 3: weft.Range(5, 12)}
    compiled = weft.compile(attend, shapes={"x": sizes})
    for height, width in ((8, 9), (12, 5), (5, 12), (7, 6)):
        x = torch.randn(1, 8, height, width)
        torch.testing.assert_close(compiled(x), attend(x))
    assert len(weft.stats(compiled)["ranges"]) == 1
