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


def test_gradients_are_pytorchs():
    torch.manual_seed(0)
    x = torch.randn(3, 17, requires_grad=True)
    compiled = weft.compile(CALLS[0])
    for _ in range(2):
        found, expected = (
            torch.autograd.grad(call(x).square().sum(), x)[0] for call in (compiled, CALLS[0])
        )
    torch.testing.assert_close(found, expected)


def test_a_long_row_is_left_to_pytorch():
    compiled = check(lambda x: x.logcumsumexp(0), torch.randn(4000), native=False)
    (fallback,) = latest(compiled).lowered.fallbacks
    assert "one row of 4000 elements" in fallback.reason
