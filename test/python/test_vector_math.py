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


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_remainder(isa, no_grad, compiled_only):
    """Exact, with the sign of the dividend on zeros: short quotients in vectors, others not."""
    torch.manual_seed(0)
    compiled = weft.compile(torch.fmod, isa=isa)
    numbers = torch.cat([*bit_patterns(STRIDE * 64, CHUNK)])
    few = torch.tensor([0.0, -0.0, 1.0, -3.0, 6.0, 1e-45, 2.0**22, 2.0**23, torch.inf, torch.nan])
    pairs = [
        (numbers, numbers[torch.randperm(len(numbers))]),
        (torch.randn(100_003) * 1e3, torch.randn(100_003)),
        (torch.randint(-99, 99, (10_007,)).float(), torch.randint(1, 9, (10_007,)).float()),
        (few[:, None].repeat(1, len(few)).flatten(), few.repeat(len(few))),
    ]
    for x, y in pairs:
        found, exact = compiled(x, y), torch.fmod(x.double(), y.double()).float()
        same = (found == exact) & (found.signbit() == exact.signbit())
        assert (same | found.isnan() & exact.isnan()).all()


def test_quotients_that_are_zero_have_a_sign(no_grad, compiled_only):
    x, y = torch.tensor([-1.0, -0.0, 0.0, 0.5, -0.5]), torch.tensor([-2.0, 1.0, -1.0, 7.0, -7.0])
    found = weft.compile(torch.floor_divide)(x, y)
    assert torch.equal(found.signbit(), torch.floor_divide(x, y).signbit())
