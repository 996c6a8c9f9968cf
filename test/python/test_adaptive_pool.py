# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adaptive pooling with windows of different sizes: the places of the largest elements."""

import math

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check

import weft

POOLS = [
    lambda x: F.adaptive_max_pool2d(x, (5, 4), return_indices=True),
    lambda x: F.adaptive_max_pool2d(x, (20, 13), return_indices=True),
    lambda x: F.adaptive_max_pool2d(x, (1, 4), return_indices=True),
    lambda x: F.adaptive_max_pool1d(x[0], 5, return_indices=True),
    lambda x: F.adaptive_max_pool3d(x, (2, 5, 13), return_indices=True),
    lambda x: F.adaptive_max_pool3d(x, (None, 5, 4), return_indices=True),
    lambda x: F.adaptive_max_pool2d(x, (0, 4), return_indices=True),
    lambda x: F.adaptive_max_pool2d(x, (0, 4)),
    lambda x: F.adaptive_max_pool2d(x[:0], (5, 4), return_indices=True),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_places_of_the_largest(dtype):
    torch.manual_seed(0)
    check(POOLS, torch.randn(2, 3, 17, 13, dtype=dtype))


@pytest.mark.parametrize("value", [0.0, math.nan, -math.inf])
def test_places_of_ties(value):
    """Of equal elements the first in memory, of NaNs the last."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 17, 13).round().clamp(max=1)
    x[torch.rand(x.shape) < 0.3] = value
    for each in (x, torch.full_like(x, value)):
        for pool in POOLS[:6]:
            compiled = weft.compile(pool)
            for found, expected in zip(compiled(each), pool(each), strict=True):
                torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_an_element_of_several_windows_has_their_gradients():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 17, 13).round().requires_grad_()
    weights = torch.randn(2, 3, 5, 4)
    compiled = weft.compile(POOLS[0])
    found, expected = (
        torch.autograd.grad(call(x)[0], x, weights)[0] for call in (compiled, POOLS[0])
    )
    torch.testing.assert_close(found, expected)
    assert not compiled.eager_reasons
