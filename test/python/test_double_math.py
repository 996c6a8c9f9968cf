# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elementary functions of float64 vectors, against mpmath."""

import math

import mpmath
import pytest
import torch
from double_ulps import FUNCTIONS, SPECIAL, error, samples, worst_error

import weft

ISAS = pytest.mark.parametrize("isa", ["native", "avx2"])
FEW = [*SPECIAL, 3.0, 2.5, 100.0, 2.0**51 - 0.5, 2.0**53 - 1, 2.0**900, 1e-200]


@pytest.mark.sampled(3)
@ISAS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name, isa, no_grad, compiled_only):
    function = FUNCTIONS[name]
    found = weft.compile(function.torch, isa=isa)(samples(name)[0])
    worst, where = worst_error(name, found)
    assert worst <= function.bound, f"{name}({where!r})"


@pytest.mark.sampled(2)
@ISAS
@pytest.mark.parametrize(
    "name", sorted({*FUNCTIONS} - {"cosh", "acos", "acosh", "erfc", "sigmoid"})
)
def test_zeros_keep_their_sign(name, isa, no_grad, compiled_only):
    found = weft.compile(FUNCTIONS[name].torch, isa=isa)(torch.tensor([0.0, -0.0]).double())
    expected = FUNCTIONS[name].torch(torch.tensor([0.0, -0.0]).double())
    assert torch.equal(found, expected)
    assert torch.equal(found.signbit(), expected.signbit())


@pytest.mark.sampled(6)
@ISAS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_do_not_depend_on_the_position(name, isa, no_grad, compiled_only):
    """In vectors, behind the last of them and alone."""
    compiled, arguments = weft.compile(FUNCTIONS[name].torch, isa=isa), samples(name)[0][500:533]
    whole = compiled(arguments)
    for size in (3, 13):
        found = torch.cat([compiled(part) for part in arguments.split(size)])
        torch.testing.assert_close(found, whole, rtol=0, atol=0, equal_nan=True)
    alone = compiled(arguments[5].clone())
    torch.testing.assert_close(alone, whole[5], rtol=0, atol=0, equal_nan=True)


def pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of random bits and of usual sizes, and each special value with each."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**63), 2**63 - 1, (2, 2000), generator=generator)
    x, y = torch.randn(2, 2000, generator=generator, dtype=torch.float64)
    few = torch.tensor([*FEW, 1 - 2**-53, 1 + 2**-52], dtype=torch.float64)
    few = torch.cat([few, -few])
    return [
        tuple(bits.view(torch.float64)),
        (x, y),
        (10 * x.abs(), 20 * y),
        (torch.exp(1e-3 * x), 1e4 * y),
        ((3 * x).round(), (30 * y).round()),
        (few[:, None].repeat(1, len(few)).flatten(), few.repeat(len(few))),
    ]


def worst_of_pairs(function, compiled, exact) -> float:
    """The largest error in ULP. Zeros and infinities among arguments and results, and NaN, are
    as in eager execution, to a rounding."""
    worst = 0.0
    for x, y in pairs():
        found, eager = compiled(x, y), function(x, y)
        usual = eager.isfinite() & (eager != 0) & (x != 0) & x.isfinite() & (y != 0) & y.isfinite()
        others, wanted = found[~usual], eager[~usual]
        torch.testing.assert_close(others, wanted, rtol=2**-52, atol=0, equal_nan=True)
        assert torch.equal(others.signbit()[~others.isnan()], wanted.signbit()[~wanted.isnan()])
        with mpmath.workprec(200):
            numbers = zip(x[usual].tolist(), y[usual].tolist(), found[usual].tolist())
            errors = [error(exact(mpmath.mpf(a), mpmath.mpf(b)), got) for a, b, got in numbers]
        worst = max(worst, *errors)
    return worst


@ISAS
def test_power(isa, no_grad, compiled_only):
    compiled = weft.compile(torch.pow, isa=isa)
    assert worst_of_pairs(torch.pow, compiled, lambda x, y: x**y) <= 0.8


@ISAS
def test_angle_of_a_point(isa, no_grad, compiled_only):
    assert worst_of_pairs(torch.atan2, weft.compile(torch.atan2, isa=isa), mpmath.atan2) <= 1


@ISAS
def test_remainder(isa, no_grad, compiled_only):
    """Exact: short quotients in vectors, others, of which eager execution makes NaN, not."""
    compiled = weft.compile(torch.fmod, isa=isa)
    for x, y in pairs():
        isnumber = x.isfinite() & (y != 0) & ~y.isnan()
        found = compiled(x, y)
        assert found[~isnumber].isnan().all()
        numbers = zip(x[isnumber].tolist(), y[isnumber].tolist())
        exact = torch.tensor([math.fmod(a, b) for a, b in numbers], dtype=torch.float64)
        assert torch.equal(found[isnumber], exact)
        assert torch.equal(found[isnumber].signbit(), exact.signbit())
