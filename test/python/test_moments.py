# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Means and variances of elements that lie far from zero, as close together or as far apart as a
type allows: at least as exact as eager PyTorch's."""

import math

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

ISAS = ["native", "avx2"]


def run(function, *args, isa="native") -> list[torch.Tensor]:
    """The results of a compiled call, which are those of every call."""
    compiled = weft.compile(function, isa=isa)
    first, *others = [compiled(*args) for _ in range(3)]
    for other in others:
        for x, y in zip(first, other, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-3, equal_nan=True)
    assert not compiled.eager_reasons, compiled.eager_reasons
    return list(others[-1])


def no_worse(function, x: torch.Tensor, isa: str) -> None:
    kind = torch.finfo(x.dtype)
    exact = function(x.double())
    for got, want, true in zip(run(function, x, isa=isa), function(x), exact, strict=True):
        assert got.dtype == want.dtype
        error, eager = ((each.double() - true).abs().max() for each in (got, want))
        assert error <= 1.5 * eager + 2 * kind.eps * true.abs().max()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("mean", [0.0, 1e3, -1e6])
@pytest.mark.parametrize("size", [2, 7, 127, 1000])
def test_variance_around_a_large_mean(size, mean, isa):
    x = torch.randn(5, size) + mean
    no_worse(lambda x: (x.var(1), x.std(0), *torch.var_mean(x, 1, correction=0), x.std()), x, isa)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_deviation_whose_square_is_no_number(dtype):
    largest = torch.finfo(dtype).max if dtype != torch.float64 else 1e150
    x = torch.tensor([[1.0, 2, 3, 4], [1, -1, 1, -1]], dtype=dtype) * (largest / 16)
    for got, want in zip(run(lambda x: (x.std(1), x.std()), x), (x.std(1), x.std()), strict=True):
        assert want.isfinite().all()
        torch.testing.assert_close(got, want)


def test_squares_whose_sum_is_no_number():
    x = torch.tensor([[1.0, 2.5, 3, 4.1], [1, -1, 1.5, -1]], dtype=torch.float64) * 1e300
    for got, want in zip(run(lambda x: (x.var(1), x.std(1)), x), (x.var(1), x.std(1)), strict=True):
        assert torch.equal(got, want)


def test_moments_of_infinities():
    """Welford's steps leave no mean behind an infinite element."""
    x = torch.randn(3, 33)
    x[0, 4], x[1, 7], x[1, 9] = math.inf, -math.inf, math.nan
    for got, want in zip(run(lambda x: torch.var_mean(x, 1), x), torch.var_mean(x, 1), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [7, 100, 1001])
def test_rows_of_equal_elements_normalize_to_zero(size, dtype, isa):
    values = torch.tensor([77777.77, 1e10, -3.3, 3e-20], dtype=dtype)
    rows = values[:, None].expand(-1, size).contiguous()
    (found,) = run(lambda x: (F.layer_norm(x, (size,)),), rows, isa=isa)
    assert not found.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_groups_of_equal_elements_normalize_to_zero(memory_format, dtype):
    x = torch.full((2, 8, 5, 7), 77777.77, dtype=dtype).contiguous(memory_format=memory_format)
    for found in run(lambda x: (F.group_norm(x, 2), F.instance_norm(x)), x):
        assert not found.any()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("mean", [0.0, 1e2, 1e5])
def test_norms_of_large_means(mean, isa):
    no_worse(lambda x: (F.layer_norm(x, (127,)),), torch.randn(4, 127) + mean, isa)
    image = torch.randn(2, 8, 5, 7) + mean
    no_worse(lambda x: (F.group_norm(x, 2),), image, isa)
    no_worse(lambda x: (F.group_norm(x, 2),), image.to(memory_format=torch.channels_last), isa)
