# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elementary functions of vector code, against float64, over a sweep of all floats."""

import pytest
import torch
from ulps import FUNCTIONS, bit_patterns, worst_error

import weft

STRIDE = 1021  # a prime: every exponent is met with mantissas of all kinds
CHUNK = 2**20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name, no_grad, compiled_only):
    function, bound = FUNCTIONS[name]
    compiled = weft.compile(function)
    worst, where = max(worst_error(name, x, compiled(x)) for x in bit_patterns(STRIDE, CHUNK))
    assert worst <= bound, f"{name}({where!r})"


def test_one_plus_erf(no_grad, compiled_only):
    """Made at once, and no further from the truth than erf of two ULP and a rounded sum would be;
    with its limits, and falling nowhere."""
    compiled = weft.compile(lambda x: 1 + torch.erf(x))
    x = torch.cat([*bit_patterns(STRIDE, CHUNK)])
    y, exact = compiled(x), 1 + torch.erf(x.double())
    assert torch.equal(y.isnan(), x.isnan())
    assert (y - exact).nan_to_num().abs().max() <= 1.2 * 2**-23
    limits = torch.tensor([-torch.inf, -10.0, -0.0, 0.0, 10.0, torch.inf])
    assert compiled(limits).tolist() == [0, 0, 1, 1, 2, 2]
    assert compiled(torch.linspace(-12, 12, 100_001)).diff().min() >= -(2**-23)
