# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Infinities, NaNs and sums beyond the type's range stand where eager PyTorch has them."""

import math

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check

SPECIAL = [math.inf, -math.inf, math.nan, -0.0, 1e-40]

RESIZE = [
    lambda x: F.interpolate(x, size=30, mode="linear"),
    lambda x: F.interpolate(x, scale_factor=0.7, mode="linear"),
    lambda x: F.interpolate(x[None], size=(9, 30), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x[None], size=(3, 8), mode="bilinear"),
    lambda x: F.interpolate(x[None], size=(1, 40), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x[None, None], size=(2, 9, 20), mode="trilinear"),
]


def specials(*shape: int, dtype: torch.dtype, density: float) -> torch.Tensor:
    """Random numbers, some of which are special."""
    values = torch.tensor(SPECIAL)[torch.randint(len(SPECIAL), shape)]
    return torch.where(torch.rand(shape) < density, values, torch.randn(shape)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_linear_interpolation(dtype):
    torch.manual_seed(0)
    check(RESIZE, torch.randn(3, 5, 17, dtype=dtype), double_is_exact=False)
    check(RESIZE, specials(3, 5, 17, dtype=dtype, density=0.1), double_is_exact=False)


def test_product_that_does_not_count():
    x = specials(7, 7, dtype=torch.float32, density=0.2)
    added = torch.randn(7, 7)
    functions = [
        lambda a, x: torch.addmm(a, x, x, alpha=0),
        lambda a, x: torch.addmm(x, a, a, beta=0, alpha=2),
        lambda a, x: torch.addmm(x, x, x, beta=0, alpha=0),
        lambda a, x: torch.addmv(a[0], x, x[0], beta=2, alpha=0),
    ]
    check(functions, added, x)


@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums_and_products_beyond_float32(dim):
    """PyTorch keeps them in float64."""
    x = torch.tensor([[3e38, 3e38, -3e38, 1.0, -3e38], [1e30, 1e30, 1e-30, 1e-30, 2.0]])
    x = x if dim else x.T.contiguous()
    check([lambda x: x.cumsum(dim), lambda x: x.cumprod(dim)], x)


def test_sign_of_zero():
    x = torch.tensor([-200.0, -0.3, 0.0, 1e-3, 0.3, 200.0])
    (found,) = check(F.logsigmoid, x)(x)
    assert torch.equal(found.signbit(), F.logsigmoid(x).signbit())
