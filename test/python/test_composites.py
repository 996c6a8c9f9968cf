# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Composite operations that ask for values where PyTorch runs them are compiled all the same."""

import pytest
import torch
from counting import latest

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")

FUNCTIONS = {
    "cov": torch.cov,
    "cov as a method": lambda x: x.cov(correction=0) + 1,
    "corrcoef": torch.corrcoef,
}
ARGUMENTS = {
    "rows": torch.randn(5, 40),
    "one row": torch.randn(40),
    "float64": torch.randn(5, 40, dtype=torch.float64),
    "integers": torch.arange(24).reshape(3, 8) ** 2 % 7,
    "bfloat16": torch.randn(4, 9).bfloat16(),
}


@pytest.mark.parametrize("x", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_covariance(function, x):
    compiled = weft.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), function(x))
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"]
    assert not latest(compiled).lowered.fallbacks


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_questions_that_remain():
    weights = torch.ones(40, dtype=torch.int64)
    for function in (lambda x: torch.cov(x, fweights=weights), lambda x: torch.cov(x[:, :1])):
        compiled, x = weft.compile(function, capture="export"), torch.randn(5, 40)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), function(x), equal_nan=True)
        (reason,) = weft.stats(compiled)["breaks"]
        assert "covariance" in reason


def test_torchs_own_is_left_alone():
    weft.compile(torch.cov)(torch.randn(3, 8))
    assert torch.cov(torch.randn(3, 8), fweights=torch.ones(8, dtype=torch.int64)).shape == (3, 3)
