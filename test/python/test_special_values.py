# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Infinities, NaNs and sums beyond the type's range stand where eager PyTorch has them."""

import math

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check
from counting import latest

import weft

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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_linear_interpolation(dtype):
    torch.manual_seed(0)
    check(RESIZE, torch.randn(3, 5, 17, dtype=dtype), double_is_exact=False)
    check(RESIZE, specials(3, 5, 17, dtype=dtype, density=0.1), double_is_exact=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_signs_are_copied_from_anything(dtype, compiled_only):
    x, y = (specials(37, dtype=dtype, density=0.5) for _ in range(2))
    compiled = weft.compile(lambda x, y: (torch.copysign(x, y), torch.copysign(x, -0.0)))
    for _ in range(2):
        for found, sign in zip(compiled(x, y), (y, torch.tensor(-0.0).expand(37)), strict=True):
            number = ~x.isnan()
            assert torch.equal(found.signbit()[number], sign.signbit()[number])
            assert torch.equal(found.abs().nan_to_num(), x.abs().nan_to_num())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_sign_of_one_number(dtype, compiled_only):
    """LLVM 22 takes another bit for the sign of one bfloat."""
    for value in (3.0, -3.0, -0.0, -math.inf):
        x, y = torch.tensor(8.5, dtype=dtype), torch.tensor(value, dtype=dtype)
        functions = [torch.copysign, lambda x, y: (y.signbit(), y < 0, y.sign(), y.abs() + x)]
        check([*functions, lambda x, y: torch.copysign(x, y.view(1))], x, y)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_inverse_hyperbolic_functions(dtype):
    torch.manual_seed(1)
    x = torch.cat([torch.randn(70) * scale for scale in (1e-5, 0.3, 3, 1e9, 1e30)]).to(dtype)
    functions = [torch.asinh, torch.acosh, torch.atanh]
    check(functions, x, pointwise=True)
    edges = [0.0, -0.0, 1.0, -1.0, -3.0, math.inf, -math.inf, math.nan]
    compiled = check(functions, torch.tensor(edges, dtype=dtype))
    signs = [found.signbit()[1] for found in compiled(torch.tensor(edges, dtype=dtype))[::2]]
    assert all(signs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_hypot(dtype):
    x = torch.cat([torch.randn(70) * 10.0**scale for scale in (-25, 0, 30)]).to(dtype)
    x[::9] = math.inf
    x[5::9] = math.nan
    check(lambda x: torch.hypot(x, x.flip(0)), x, pointwise=True)


@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.usefixtures("compiled_only")
def test_floats_beyond_integers(isa):
    """Constants, too, of which LLVM would make anything."""
    x = torch.tensor([0.0, 2.5, -3e9, 1e10, math.nan, math.inf, -1e20])

    def function(x):
        nan, large = torch.full_like(x, math.nan), torch.full_like(x, 1e10)
        types = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64
        made = [each.to(dtype) + 1 for each in (x, nan, large) for dtype in types]
        return *made, torch.where(x > 2, nan, x).int(), x.int().long()

    compiled = weft.compile(function, isa=isa)
    for each in (torch.zeros(7), x, x.flip(0)):
        assert all(map(torch.equal, compiled(each), function(each)))


@pytest.mark.parametrize("shape", [(), (1,), (4, 1)])
def test_sums_of_negative_zeros(shape):
    functions = [torch.sum, torch.mean, torch.nansum, torch.nanmean, lambda x: x.sum(-1)]
    compiled = weft.compile(lambda x: [function(x) for function in functions])
    x = torch.full(shape, -0.0)
    for _ in range(2):
        for found, function in zip(compiled(x), functions, strict=True):
            assert torch.equal(found.signbit(), function(x).signbit())
    assert weft.stats(compiled)["hits"] and not latest(compiled).lowered.fallbacks


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_shifts(dtype):
    x = torch.arange(-130, 131).to(dtype)
    check([lambda x: x << 3, lambda x: x >> 2, lambda x: x >> 0, lambda x: 1 + (x >> 6)], x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_shifts_by_each(dtype):
    """By no bits, by all, by more than there are, and by less than none."""
    most = torch.iinfo(dtype).max
    x = torch.tensor([most, -most, 1, -1, 77]).to(dtype)[:, None]
    by = torch.cat([torch.arange(67), torch.tensor([most, -1, -most])]).to(dtype)

    def shifts(x, by):
        return x << by, x >> by, 3 << by, torch.bitwise_right_shift(77, by)

    compiled = weft.compile(shifts)
    for _ in range(2):
        for found, expected in zip(compiled(x, by), shifts(x, by), strict=True):
            assert found.dtype == expected.dtype and torch.equal(found, expected)
    assert weft.stats(compiled)["hits"]
    assert not latest(compiled).lowered.fallbacks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_medians_of_the_numbers(dtype):
    torch.manual_seed(2)
    x = torch.randn(4, 9, 13).to(dtype)
    x[torch.rand(x.shape) < 0.4] = math.nan
    x[1, :, 3] = math.nan
    check([lambda x: x.nanmedian(1)[0], lambda x: x.nanmedian(-1, keepdim=True)[0]], x)
    places = weft.compile(lambda x: x.nanmedian(1))(x)
    found = x.gather(1, places.indices[:, None])[:, 0]
    torch.testing.assert_close(found, places.values, rtol=0, atol=0, equal_nan=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_powers(dtype):
    """They wrap; of those with negative exponents only powers of 1 and -1 are whole."""
    low = 0 if dtype == torch.uint8 else -9
    base = torch.arange(low, 12).to(dtype)[:, None]
    check(lambda x, y: x**y, base, torch.arange(low, 71).to(dtype))
    check(lambda x: (2**x, 3 ** x[3:]), torch.arange(0, 71).to(dtype))


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, -2, 2, 3, 0, 1.5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_powers_of_all_halves(dtype, exponent):
    """As torch's kernels for each type have them: of float16 the roots of minus infinity and of
    minus zero are pow's, of bfloat16 the products are rounded one by one."""
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    # Denormals aside, those on the way included.
    x = x[(x * x).isnan() | (x == 0) | ((x * x).float() >= torch.finfo(dtype).tiny)]
    compiled, want = weft.compile(lambda x: x**exponent), x**exponent
    normal = want.isnan() | (want == 0) | (want.abs() >= torch.finfo(dtype).tiny)
    for _ in range(3):
        got = compiled(x)
        same = (got == want) & (got.signbit() == want.signbit()) | got.isnan() & want.isnan()
        assert same[normal].all()


def test_a_range_downwards_begins_with_a_zero_of_its_start():
    def function(x):
        return x + 0, torch.arange(0.0, -8.0, -4.0), torch.arange(0, -8.0, -4)

    _, *found = weft.compile(function)(torch.ones(1))
    for range_ in found:
        assert torch.equal(range_.signbit(), torch.tensor([False, True]))
