# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of many terms: their error must not grow with the number of terms."""

import pytest
import torch
import torch.nn.functional as F

import weft

CASES = {
    "columns": (lambda x: x.sum(0), (150_001, 20)),
    "one row": (lambda x: x.sum(1), (3, 1_000_003)),
    "between": (lambda x: x.sum(1), (3, 30_001, 17)),
    "two dims": (lambda x: x.sum((0, 2)), (300, 3, 1_001)),
    "variance": (lambda x: (x + 3).var(0), (100_003, 16)),
    "quotients": (lambda x: x / x.sum(0, keepdim=True), (50_000, 5)),
    "pooled": (
        lambda x: F.adaptive_avg_pool2d(F.relu(x.to(memory_format=torch.channels_last)), 1),
        (1, 64, 90, 90),
    ),
}


@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("name", CASES)
def test_error(name, isa, no_grad, compiled_only):
    function, shape = CASES[name]
    torch.manual_seed(0)
    x = torch.rand(shape)
    exact = function(x.double())
    found = weft.compile(function, isa=isa)(x)
    assert (found - exact).abs().max() <= 1e-6 * exact.abs().max()


@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize(
    "dims, shape", [(0, (500, 1000)), (1, (8, 128, 768)), ((1, 2), (8, 7, 7, 512))]
)
def test_short_sums_are_as_exact_as_eager(dims, shape, isa, no_grad, compiled_only):
    torch.manual_seed(0)
    x = torch.randn(shape)
    exact = x.double().mean(dims)
    found = weft.compile(lambda x: x.mean(dims), isa=isa)(x)
    assert (found - exact).norm() <= 1.25 * (x.mean(dims) - exact).norm()


@pytest.mark.parametrize("queries", [1, 8, 256])
def test_keys(queries, no_grad, compiled_only):
    """Each query's powers are summed over all keys."""
    torch.manual_seed(0)
    q, k = torch.randn(1, 2, queries, 32), torch.randn(1, 2, 6_001, 32)
    v = torch.rand(1, 2, 6_001, 32)
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    found = weft.compile(F.scaled_dot_product_attention)(q, k, v)
    assert (found - exact).abs().max() <= 1e-6 * exact.abs().max()
