# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention against eager PyTorch and a float64 twin: lengths that leave tails of blocks of
queries and of keys, masks of every kind, short and long sequences, both instruction sets."""

from functools import partial

import pytest
import torch
from processor import ISAS
from torch.nn import functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

# Lengths of queries and keys, widths of keys and values.
SIZES = [
    (1, 77, 64, 64),
    (5, 7, 16, 5),
    (17, 17, 30, 64),
    (70, 130, 64, 64),
    (130, 70, 24, 40),
    (530, 530, 32, 16),
]


def attend(**options):
    return lambda q, k, v, *masks: F.scaled_dot_product_attention(q, k, v, **options)


def attend_behind(number):
    return lambda q, k, v, *masks: F.scaled_dot_product_attention(q, k, v, masks[number])


def attend_to_past(q, k, v, *masks, padding=None, lowest=None):
    """Causality as programs write it: positions compared, and what else hides keys."""
    keep = torch.arange(k.shape[-2]) <= torch.arange(q.shape[-2])[:, None]
    if padding is not None:
        keep = keep & masks[padding]
    if lowest is not None:
        keep = torch.where(keep, 0.0, lowest)
    return F.scaled_dot_product_attention(q, k, v, keep)


class Together(torch.nn.Module):
    """Several functions of the same queries, keys, values and masks, as one program."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, q, k, v, *masks):
        return [function(q, k, v, *masks) for function in self.functions]


class Projected(Together):
    """The same on linear layers, whose results lie in blocks of tokens."""

    def __init__(self, functions, heads=3, size=16):
        super().__init__(functions)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(24, heads * size) for _ in range(3))
        self.heads = heads

    def forward(self, q, k, v, *masks):
        split = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, x in zip(self.layers, (q, k, v), strict=True)
        )
        return [y.transpose(1, 2).flatten(2) for y in super().forward(*split, *masks)]


def spread(error):
    return error.nan_to_num(0.0).double().square().mean().sqrt().item()


def check(module, *args, isa=ISAS[-1]):
    """The results, the same with one thread and with two, against eager and float64."""
    module = module if isinstance(module, torch.nn.Module) else Together(module)
    one, two = (weft.compile(module, isa=isa, threads=threads)(*args) for threads in (1, 2))
    expected = module(*args)
    exact = module.double()(*[x.double() if x.is_floating_point() else x for x in args])
    for found, again, eager, twin in zip(one, two, expected, exact, strict=True):
        assert torch.equal(found.nan_to_num(7.0), again.nan_to_num(7.0))
        assert torch.equal(found.isnan(), eager.isnan())
        ours, eagers = spread(found - twin), spread(eager - twin)
        slack = 2 * torch.finfo(found.dtype).eps * spread(twin)
        assert ours <= 1.5 * eagers + slack, (ours, eagers, slack)
    return one


def masks(queries, keys):
    generator = torch.Generator().manual_seed(queries)
    some = torch.rand(2, 3, queries, keys, generator=generator)
    return [
        some[:, :1, :1] < 0.7,  # of padding
        some[:1, :1, :, :1] < 0.7,  # of queries
        some < 0.5,
        some[0, 0] * 4,
        torch.where(some < 0.8, some, -torch.inf),
        torch.where(some[:, :1] < 0.1, torch.finfo(torch.float32).min, 0.0),
    ]


OPTIONS = [attend(), attend(is_causal=True), attend(scale=-0.3)]
PAST = [
    attend_to_past,
    partial(attend_to_past, padding=0),
    partial(attend_to_past, padding=1, lowest=-torch.inf),
    partial(attend_to_past, lowest=torch.finfo(torch.float32).min),
]
MASKED = [attend_behind(number) for number in range(6)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("queries, keys, size, width", SIZES)
def test_rows(queries, keys, size, width, isa):
    q, k = torch.randn(2, 3, queries, size), torch.randn(2, 3, keys, size)
    v = torch.randn(2, 3, keys, width)
    check(OPTIONS + MASKED, q, k, v, *masks(queries, keys), isa=isa)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("queries, keys", [(40, 96), (200, 100), (328, 328)])
def test_blocks_of_tokens(queries, keys, isa):
    q, k = torch.randn(2, queries, 24), torch.randn(2, keys, 24)
    check(Projected(OPTIONS + MASKED).eval(), q, k, k + 1, *masks(queries, keys), isa=isa)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("queries, keys", [(70, 70), (33, 90), (330, 330)])
def test_causality_as_a_mask(queries, keys):
    q, k = torch.randn(2, 3, queries, 16), torch.randn(2, 3, keys, 16)
    check(PAST, q, k, k + 1, *masks(queries, keys))


@pytest.mark.parametrize("queries, keys", [(20, 50), (100, 400)])
def test_hidden_rows_are_zero(queries, keys):
    q, k = torch.randn(1, 2, queries, 16), torch.randn(1, 2, keys, 16)
    mask = torch.rand(queries, keys) < 0.5
    mask[3] = mask[-1] = False
    # Whole blocks of keys that a query does not see, ahead of the one that it does.
    mask[5] = torch.arange(keys) == keys - 1
    added = torch.zeros(queries, keys).masked_fill(~mask, -torch.inf)
    for y in check([attend_behind(0), attend_behind(1)], q, k, k, mask, added):
        assert not y[..., 3, :].any() and not y[..., -1, :].any()
        assert torch.allclose(y[..., 5, :], k[..., -1, :])


@pytest.mark.parametrize("keys", [100, 600])
def test_large_scores(keys):
    q, k = torch.randn(1, 2, 40, 16), torch.randn(1, 2, keys, 16)
    check(OPTIONS, q * 300, k, k)
    # The maximum is in the last block of keys, far above the others.
    k[..., -1, :] *= 40
    check(OPTIONS, q * 10, k, k)


@pytest.mark.parametrize("keys", [100, 600])
def test_not_a_number_and_infinity(keys):
    q, k, v = (torch.randn(1, 2, length, 16) for length in (40, keys, keys))
    q[0, 0, 3, 2] = torch.nan
    check(OPTIONS, q, k, v)
    k[0, 1, 70, 1] = torch.nan
    check([attend()], q, k, v)
    v[0, 1, 5, 1] = torch.inf
    check([attend()], q, torch.randn_like(k), v)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("queries, keys", [(17, 33), (130, 300)])
def test_float64(queries, keys, isa):
    q, k = (torch.randn(1, 2, length, 24, dtype=torch.float64) for length in (queries, keys))
    module = Together(OPTIONS)
    for y, eager in zip(weft.compile(module, isa=isa)(q, k, k), module(q, k, k), strict=True):
        assert torch.allclose(y, eager, rtol=1e-12, atol=1e-13)
