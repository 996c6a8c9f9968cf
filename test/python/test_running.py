# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums of exponentials, by their logarithms."""

import math

import pytest
import torch
from compiled_cases import check
from counting import latest

import weft

CALLS = [
    lambda x: x.logcumsumexp(1),
    lambda x: x.logcumsumexp(-1),
    lambda x: x[0, 0].logcumsumexp(0),
    lambda x: x[0, 0, 0].logcumsumexp(0),
    lambda x: x[:, :0].logcumsumexp(1),
    lambda x: x[:, :0].logcumsumexp(0),
    lambda x: x.transpose(0, 2).logcumsumexp(0),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_logarithms_of_running_sums(dtype):
    torch.manual_seed(0)
    check(CALLS, (torch.randn(3, 17, 13) * 20).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_infinities_and_nans(dtype):
    torch.manual_seed(0)
    x = torch.randn(3, 17, 13)
    x[0, 0, :3] = torch.tensor([math.inf, -math.inf, math.nan])
    x[1, :, 2] = -math.inf
    x[2, 3:, 1] = math.inf
    x[2, :3] = -1e9
    x = x.to(dtype)
    for call in CALLS:
        compiled = weft.compile(call)
        compiled(x)
        torch.testing.assert_close(compiled(x), call(x), equal_nan=True, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_pytorchs(dtype, monkeypatch):
    """And as near to those of float64, first and second ones."""
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    for call in CALLS[:4]:
        compiled = weft.compile(call)
        for scale in (1, 20):
            x = (torch.randn(3, 17, 13, dtype=dtype) * scale).requires_grad_()
            exact = x.detach().double().requires_grad_()
            firsts, seconds = zip(*(_derivatives(*e) for e in ((compiled, x), (call, exact))))
            close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {}
            for found, expected in (firsts, seconds):
                torch.testing.assert_close(found.double(), expected, **close)
        assert not weft.stats(compiled)["breaks"]
        assert "PyTorch runs" not in str(compiled.explain(x))


def _derivatives(function, x):
    result = function(x)
    (first,) = torch.autograd.grad(result.square().sum() / 20, x, create_graph=True)
    return first.detach(), torch.autograd.grad(first.square().sum() / 20, x)[0]


INF, NAN = math.inf, math.nan
ROWS = [[-INF, 1, 2, -INF, 3], [-INF, -INF, 2, 0, 3], [1, INF, 2, INF, 3], [1, NAN, 2, -INF, 3]]


def test_gradients_at_infinities_are_pytorchs(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(CALLS[1])
    weights = torch.tensor([1.0, -2.0, 3.0, 0.5, -1.5])
    for _ in range(2):
        x = torch.tensor(ROWS).requires_grad_()
        found, expected = (
            torch.autograd.grad(call(x), x, weights.expand_as(x)) for call in (compiled, CALLS[1])
        )
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_a_long_row_is_left_to_pytorch():
    compiled = check(lambda x: x.logcumsumexp(0), torch.randn(4000), native=False)
    (fallback,) = latest(compiled).lowered.fallbacks
    assert "one row of 4000 elements" in fallback.reason
