# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of float32, against PyTorch's of float64, and their gradients."""

import math

import mpmath
import pytest
import torch
from counting import latest

import weft

FUNCTIONS = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
    "polygamma 0": lambda x: torch.polygamma(0, x),
    "polygamma 2": lambda x: torch.polygamma(2, x),
    "polygamma 5": lambda x: torch.polygamma(5, x),
    "mvlgamma": lambda x: torch.mvlgamma(x.abs() + 2, 3),
    "i0": torch.i0,
    "i0e": torch.special.i0e,
    "i1": torch.special.i1,
    "i1e": torch.special.i1e,
    "log_ndtr": torch.special.log_ndtr,
}
OF_PROBABILITIES = {"erfinv": lambda x: torch.erfinv(2 * x - 1), "ndtri": torch.special.ndtri}


def arguments() -> torch.Tensor:
    torch.manual_seed(0)
    wide = torch.randn(500) * 30
    near = torch.rand(500) * 4 - 1
    large = 10 ** (torch.rand(40) * 50 - 25)
    roots = torch.tensor([1.0, 2.0, 1 + 2**-23, 2 - 2**-23, 1.4616321, -2.4570247, -0.504083])
    return torch.cat([wide, near, large, -large[:20], roots])


def ulps(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest distance, in places of float32, where that holds the exact value."""
    kept = exact.abs() < torch.finfo(torch.float32).max
    exact = exact[kept]
    size = exact.abs().clamp(min=torch.finfo(torch.float32).tiny)
    place = 2.0 ** (size.log2().floor() - 23)
    return ((found.double()[kept] - exact).abs() / place).max().item()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_PROBABILITIES])
def test_values_are_within_two_places(name):
    function = (FUNCTIONS | OF_PROBABILITIES)[name]
    x = torch.rand(1500) if name in OF_PROBABILITIES else arguments()
    if name == "erfinv":
        x = x.double().float()
        exact = torch.erfinv((2 * x - 1).double())
    elif name == "trigamma":  # PyTorch's of float64 is wrong near negative whole numbers
        x = x[x.abs() < 100]
        exact = torch.tensor(
            [float(mpmath.psi(1, mpmath.mpf(each))) for each in x.tolist()], dtype=torch.float64
        )
    elif name == "log_ndtr":
        x = x.clamp(-1e3, 1e3)
        exact = function(x.double())
        # Behind erfc of float64 nothing is left of it.
        x, exact = x[x < 8], exact[x < 8]
    else:
        exact = function(x.double())
    compiled = weft.compile(function)
    compiled(x)
    # A sum of several, which cancel.
    assert ulps(compiled(x), exact) < (40 if name == "mvlgamma" else 3.5)
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_at_the_ends_are_pytorchs(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor([0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan, 1e-42, 3e38, -1.5, 0.5])
    if name == "trigamma":  # PyTorch's is no number there
        x = x[x != -math.inf]
    compiled = weft.compile(FUNCTIONS[name])
    compiled(x)
    found, eager = compiled(x), FUNCTIONS[name](x)
    torch.testing.assert_close(found, eager, equal_nan=True)
    is_zero = eager == 0
    assert torch.equal(found[is_zero].signbit(), eager[is_zero].signbit())


def test_poles_are_pytorchs(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor([-1.0, -2.0, -40.0, -1e10])
    for function in (torch.lgamma, torch.digamma):
        compiled = weft.compile(function)
        compiled(x)
        torch.testing.assert_close(compiled(x), function(x), equal_nan=True)
    ends = torch.tensor([-1.0, 1.0, 1.5, -2.0, math.nan, 0.0])
    for function in (torch.erfinv, torch.special.ndtri):
        compiled = weft.compile(function)
        compiled(ends)
        torch.testing.assert_close(compiled(ends), function(ends), equal_nan=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_PROBABILITIES])
def test_first_and_second_derivatives(name):
    function = (FUNCTIONS | OF_PROBABILITIES)[name]
    if name in OF_PROBABILITIES:
        points = [0.01, 0.2, 0.5, 0.7, 0.999]
    else:
        points = [0.0, 0.3, 1.0, 1.7, 2.5, 7.5, 12.0, -0.4, -2.3, -6.5]
    if name.startswith(("lgamma", "digamma", "trigamma", "polygamma")):
        points = points[1:]

    def run(call, dtype):
        x = torch.tensor(points, dtype=dtype, requires_grad=True)
        (gradient,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        return gradient.detach(), torch.autograd.grad(gradient.sum(), x)[0]

    compiled = weft.compile(function)
    for _ in range(3):
        found = run(compiled, torch.float32)
    for mine, theirs in zip(found, run(function, torch.float64), strict=True):
        kept = theirs.isfinite()
        torch.testing.assert_close(mine[kept], theirs[kept].float(), rtol=3e-5, atol=3e-6)


def scaled(order):
    return lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(order, x)


IN_FLOAT64 = {
    "digamma": mpmath.digamma,
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": scaled(0),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": scaled(1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", IN_FLOAT64)
def test_float64_has_the_digits_of_pytorchs(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    x = torch.cat([torch.randn(60).double() * 10, torch.rand(40).double() * 3 - 1])
    compiled = weft.compile(FUNCTIONS[name])
    compiled(x)
    with mpmath.workdps(40):
        exact = [IN_FLOAT64[name](mpmath.mpf(each)) for each in x.tolist()]
        found, eager = (
            [abs(mpmath.mpf(a) - b) for a, b in zip(result.tolist(), exact, strict=True)]
            for result in (compiled(x), FUNCTIONS[name](x))
        )
    for mine, theirs, value in zip(found, eager, exact, strict=True):
        assert mine <= 1.5 * theirs + 2 * abs(value) * torch.finfo(x.dtype).eps
    assert not latest(compiled).lowered.fallbacks


@pytest.mark.parametrize("name", [*IN_FLOAT64, "trigamma"])
def test_float64_ends_are_pytorchs(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = [0.0, -0.0, 1.0, 10.0, math.inf, -math.inf, math.nan, 5e-324, 1e200, -1.5, -2.0, 720.0]
    x = torch.tensor(x, dtype=torch.float64)
    compiled = weft.compile(FUNCTIONS[name])
    compiled(x)
    found, eager = compiled(x), FUNCTIONS[name](x)
    torch.testing.assert_close(found, eager, equal_nan=True, rtol=1e-13, atol=0)
    is_zero = eager == 0
    assert torch.equal(found[is_zero].signbit(), eager[is_zero].signbit())


def test_a_scaled_operand_is_added_with_one_rounding():
    torch.manual_seed(0)
    x, y = torch.randn(2, 1003)
    for function in (
        lambda x, y: torch.add(x, y, alpha=0.3),
        lambda x, y: torch.sub(x, y, alpha=1.7),
        lambda x, y: torch.rsub(x, y, alpha=-0.1),
    ):
        compiled = weft.compile(function)
        compiled(x, y)
        assert torch.equal(compiled(x, y), function(x, y))
