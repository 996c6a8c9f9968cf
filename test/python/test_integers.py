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
            assert torch.equal(got, want), (got, want)
    assert not compiled.eager_reasons, compiled.eager_reasons


@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("dtype", TYPES)
def test_places_of_extremes(dtype, isa):
    """Of equal ones the first stands for them, and float32 would take neighbours for equal."""
    for size in (1, 7, 33, 130):
        x = near_ends(dtype, 5, size)
        x[:, 0] = torch.iinfo(dtype).max - 1
        check(lambda x: (x.argmax(1), x.argmin(1), x.argmax(), x.argmin(0)), x, isa=isa)
        check(lambda x: (*x.max(1), *x.min(0)), x, isa=isa)
