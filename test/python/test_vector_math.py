# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elementary functions of vector code, against float64, over a sweep of all floats."""

import mpmath
import pytest
import torch
import torch.nn.functional as F
from ulps import FUNCTIONS, bit_patterns, errors, worst_error

import weft

STRIDE = 1021  # a prime: every exponent is met with mantissas of all kinds
CHUNK = 2**20


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name, no_grad, compiled_only):
    function, bound = FUNCTIONS[name]
    compiled = weft.compile(function)
    worst, where = max(worst_error(name, x, compiled(x)) for x in bit_patterns(STRIDE, CHUNK))
    assert worst <= bound, f"{name}({where!r})"


@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 7, 64, 131])
def test_whole_powers_and_logarithms(dtype, size, isa, no_grad):
    """Are exact, in vectors and behind them: their floor is not that of a number below."""
    lowest, highest = (-149, 127) if dtype == torch.float32 else (-1022, 1023)
    whole = torch.linspace(lowest, highest, size).round().to(dtype)
    twos = torch.tensor([2.0 ** int(n) for n in whole], dtype=dtype)
    of_ten = torch.arange(size) % (11 if dtype == torch.float32 else 23)
    tens = torch.tensor([float(10 ** int(n)) for n in of_ten], dtype=dtype)
    compiled = weft.compile(
        lambda n, two, ten: (torch.exp2(n), torch.log2(two), torch.log10(ten)), isa=isa
    )
    for _ in range(3):
        found = compiled(whole, twos, tens)
        for got, exact in zip(found, (twos, whole, of_ten.to(dtype)), strict=True):
            assert torch.equal(got, exact)
    assert not compiled.eager_reasons


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_other_bases_in_double_precision(isa, no_grad):
    """At the precision of float64, not at that of a factor in float32."""
    compiled = weft.compile(lambda x: (torch.exp2(x), torch.log2(x), torch.log10(x)), isa=isa)
    x = torch.rand(1031, dtype=torch.float64) * 100
    with mpmath.workprec(100):
        numbers = [mpmath.mpf(n) for n in x.tolist()]
        exact = [
            [f(n) for n in numbers]
            for f in (lambda n: 2**n, lambda n: mpmath.log(n, 2), mpmath.log10)
        ]
        for _ in range(3):
            for got, want in zip(compiled(x), exact, strict=True):
                errors_of = [abs(mpmath.mpf(g) / w - 1) for g, w in zip(got.tolist(), want)]
                assert max(errors_of) <= 2**-51
    assert not compiled.eager_reasons


@pytest.mark.parametrize("bound", [1e-3, 0.1, 0.6])
def test_what_tanh_leaves_in_double_precision(bound, no_grad):
    """Shows the last bits of tanh, which are no worse than eager's."""
    compiled = weft.compile(lambda x: (F.tanhshrink(x), torch.tanh(x)))
    x = torch.linspace(-bound, bound, 127, dtype=torch.float64)
    for _ in range(3):
        shrunk, tanh = compiled(x)
    assert not compiled.eager_reasons
    with mpmath.workprec(200):
        numbers = [mpmath.mpf(n) for n in x.tolist()]
        exact = [mpmath.tanh(n) for n in numbers]

        def error(found: torch.Tensor, wanted: list) -> float:
            return float(max(abs(mpmath.mpf(y) - w) for y, w in zip(found.tolist(), wanted)))

        left = [n - t for n, t in zip(numbers, exact)]
        assert error(shrunk, left) <= 1.5 * error(F.tanhshrink(x), left)
        assert error(tanh, exact) <= 2**-53 * bound
    ends = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 5e-324], dtype=torch.float64)
    found = compiled(ends)[1]
    torch.testing.assert_close(found, torch.tanh(ends), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(found.signbit()[:2], ends.signbit()[:2])


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_one_plus_erf(isa, no_grad, compiled_only):
    """Made at once, and no further from the truth than erf of two ULP and a rounded sum would be;
    with its limits, and falling nowhere."""
    compiled = weft.compile(lambda x: 1 + torch.erf(x), isa=isa)
    x = torch.cat([*bit_patterns(STRIDE, CHUNK)])
    y, exact = compiled(x), 1 + torch.erf(x.double())
    assert torch.equal(y.isnan(), x.isnan())
    assert (y - exact).nan_to_num().abs().max() <= 1.2 * 2**-23
    limits = torch.tensor([-torch.inf, -10.0, -0.0, 0.0, 10.0, torch.inf])
    assert compiled(limits).tolist() == [0, 0, 1, 1, 2, 2]
    assert compiled(torch.linspace(-12, 12, 100_001)).diff().min() >= -(2**-23)


GELUS = {
    "op": F.gelu,
    "quotient": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    "halved last": lambda x: 0.5 * (x * (torch.erf(0.5**0.5 * x) + 1)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GELUS)
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_gelu(name, isa, no_grad, compiled_only):
    """The product is made at once, too: three ULP of what is not small, zeros and infinities as in
    eager execution, and the sign of the argument."""
    compiled = weft.compile(GELUS[name], isa=isa)
    x = torch.cat([*bit_patterns(STRIDE, CHUNK), torch.linspace(-6, 6, 100_001)])
    y, exact = compiled(x), F.gelu(x.double())
    usual = (x > -2) & (x < 1e30) & (x.abs() > 1e-30)
    assert errors(exact, y)[usual & (x > 0)].max() <= 3
    assert errors(exact, y)[usual].max() <= 32
    assert (y - exact)[x.abs() < 6].abs().max() <= 4 * 2**-23
    assert torch.equal(y.signbit()[~y.isnan()], x.signbit()[~y.isnan()])
    limits = torch.tensor([-10.0, -0.0, 0.0, 10.0, torch.inf])
    expected = GELUS[name](limits)  # oneDNN's NaN of infinity for the op
    torch.testing.assert_close(compiled(limits), expected, rtol=0, atol=1e-20, equal_nan=True)
    assert compiled(torch.tensor([-torch.inf, torch.nan])).isnan().all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_other_products_of_erf(isa, no_grad, compiled_only):
    """Signs that differ, other factors, and numbers of their own."""
    functions = [
        lambda x, y: -x * (1 + torch.erf(x)),
        lambda x, y: x * (1 + torch.erf(-2 * x)),
        lambda x, y: x * (1 + torch.erf(y)),
        lambda x, y: 3 * x * (1 + torch.erf(x / 0.3)),
        lambda x, y: (1 + torch.erf(x)) * (1 + torch.erf(y)),
        lambda x, y: x * (1 + torch.erf(x * 1e38)),
        lambda x, y: x * 1e-38 * (1 + torch.erf(x)),
    ]
    x, y = torch.randn(2, 10_007) * 2
    x[0] = 0
    for function in functions:
        found = weft.compile(function, isa=isa)(x, y)
        assert (found - function(x.double(), y.double())).abs().max() <= 2e-6


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_one_plus_tanh(isa, no_grad, compiled_only):
    """Made at once: as far from the truth as a power and a quotient, where it is a normal number;
    with its limits, and falling nowhere by more than that."""
    compiled = weft.compile(lambda x: 1 + torch.tanh(x), isa=isa)
    x = torch.cat([*bit_patterns(STRIDE, CHUNK)])
    y, exact = compiled(x), 2 * torch.sigmoid(2 * x.double())
    assert torch.equal(y.isnan(), x.isnan())
    usual = x.abs() < 8
    assert errors(exact, y)[usual].max() <= 6
    assert (y - exact).nan_to_num().abs().max() <= 1.5 * 2**-23
    limits = torch.tensor([-torch.inf, -50.0, -0.0, 0.0, 10.0, torch.inf])
    assert compiled(limits).tolist() == [0, 0, 1, 1, 2, 2]
    assert compiled(torch.linspace(-60, 60, 100_001)).diff().min() >= -(2**-22)


def test_tanh_that_is_needed_besides(no_grad, compiled_only):
    """Is exact around zero, as 1 + tanh(x) less one is not."""
    compiled = weft.compile(lambda x: (torch.tanh(x), 1 + torch.tanh(x)))
    x = torch.randn(10_007) * 1e-3
    assert errors(torch.tanh(x.double()), compiled(x)[0]).max() <= 2


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_powers_of_an_attention(isa, no_grad, compiled_only):
    """Weights of keys against that of the largest: two roundings and a power's ULP each, beside
    what a rounded exponent costs; nothing below the normal numbers, and NaN of NaN."""
    keys = 1024
    values = torch.eye(keys)[None, None]
    query = torch.ones(1, 1, 64, 1)

    def weights(scores: torch.Tensor) -> torch.Tensor:
        key = scores[None, None, :, None]
        return F.scaled_dot_product_attention(query, key, values, scale=1.0)[0, 0]

    compiled = weft.compile(weights, isa=isa)
    for lowest in (-0.5, -8.0, -87.0):
        scores = torch.linspace(lowest, 0, keys)
        powers = compiled(scores)
        assert torch.equal(powers, powers[:1].expand_as(powers))
        found, exact = powers[0] / powers[0, -1], scores.double().exp()
        assert ((found / exact - 1).abs() <= (3 - 2 * scores.double()) * 2**-23).all()
    scores = torch.zeros(keys)
    scores[1:5] = torch.tensor([-torch.inf, -1e30, -200.0, -88.0])
    assert compiled(scores)[:, 1:5].count_nonzero() == 0
    scores[7] = torch.nan
    assert compiled(scores).isnan().all()


def pairs_of_all() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of random bits, and each special value with each."""
    numbers = torch.cat([*bit_patterns(STRIDE * 64, CHUNK)])
    few = [
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        2.5,
        100.0,
        1e-45,
        1e-38,
        3e38,
        2.0**24,
        2.0**24 - 1,
        2.0**22 - 0.5,
    ]
    few = torch.tensor([*few, 1 - 2**-24, 1 + 2**-23, torch.inf, torch.nan])
    few = torch.cat([few, -few])
    return [
        (numbers, numbers[torch.randperm(len(numbers))]),
        (few[:, None].repeat(1, len(few)).flatten(), few.repeat(len(few))),
    ]


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_power(isa, no_grad, compiled_only):
    compiled = weft.compile(torch.pow, isa=isa)
    small, large = torch.randn(100_003), 1e4 * torch.randn(100_003)
    pairs = [
        *pairs_of_all(),
        (10 * small.abs(), 20 * torch.randn(100_003)),
        (torch.exp(1e-3 * small), large),
        (3 * small, torch.randint(-30, 30, (100_003,)).float()),
    ]
    for x, y in pairs:
        assert errors(torch.pow(x.double(), y.double()), compiled(x, y)).max() <= 0.51


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exponent", [2.5, -1.5, 0.3125, 10, 11.0])
def test_power_of_a_constant(exponent, no_grad, compiled_only):
    for function in (lambda x: x**exponent, lambda x: abs(exponent) ** x):
        compiled, (x, _) = weft.compile(function), pairs_of_all()[0]
        assert errors(function(x.double()), compiled(x)).max() <= 1


@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_angle_of_a_point(isa, no_grad, compiled_only):
    compiled = weft.compile(torch.atan2, isa=isa)
    up, right = torch.randn(2, 100_003)
    for y, x in [*pairs_of_all(), (up, right), (up, 1e-3 * right)]:
        assert errors(torch.atan2(y.double(), x.double()), compiled(y, x)).max() <= 2


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
