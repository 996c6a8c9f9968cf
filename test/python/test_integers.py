# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that no float holds, and those that a type only just does."""

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

TYPES = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def near_ends(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Both ends of the type, their neighbours and small numbers, in some order."""
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    few = torch.tensor([low, low + 1, high, high - 1, 0, 1, 2], dtype=dtype)
    return few[torch.randint(len(few), shape)]


def check(function, *args, isa="native") -> None:
    compiled = weft.compile(function, isa=isa)
    expected = function(*args)
    for _ in range(3):
        for got, want in zip(compiled(*args), expected, strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    assert not compiled.eager_reasons, compiled.eager_reasons


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("dtype", TYPES)
def test_places_of_extremes(dtype, isa):
    """Of equal ones the first stands for them, and float32 would take neighbours for equal."""
    for size in (1, 7, 33, 130):
        x = near_ends(dtype, 5, size)
        x[:, 0] = torch.iinfo(dtype).max - 1
        check(lambda x: (x.argmax(1), x.argmin(1), x.argmax(), x.argmin(0)), x, isa=isa)
        check(lambda x: (*x.max(1), *x.min(0)), x, isa=isa)


@pytest.mark.parametrize("dtype", TYPES)
def test_signs(dtype):
    check(lambda x: (x.sign(), x.sgn(), x.abs()), near_ends(dtype, 67))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES)
def test_powers(dtype):
    """By a number they are products, which wrap; by a tensor PyTorch's own."""
    x = near_ends(dtype, 67)
    check(lambda x: (x**0, x**1, x**2, x**3, x**4, x**7, x**10), x)
    exponents = torch.arange(67).remainder(9).to(dtype)
    check(lambda x, y: (x**y, 2**y, 3**y), x, exponents)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_integers_beside_half_precision(dtype):
    """Are rounded to it before anything is computed; 2^53 + 1 is infinite in float16."""
    x = torch.tensor([1.0, 2048.0, torch.inf, 0.5]).to(dtype)
    n = torch.tensor([2049, 2049, 2**53 + 1, 257])
    check(lambda x, n: (x * n, x + n, x == n, x < n, torch.maximum(x, n), n / x), x, n)


def test_running_sums_wrap():
    x = torch.randint(0, 256, (3, 70), dtype=torch.uint8)
    check(lambda x: (x.cumsum(1, dtype=torch.uint8), x.cumprod(0, dtype=torch.uint8)), x)
