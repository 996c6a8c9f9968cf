# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Corners of single ops that PyTorch's OpInfo samples, varied, have shown."""

import math

import pytest
import torch
from compiled_cases import check, strides

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


def same_bits(function, *args):
    compiled = weft.compile(function)
    for found, expected in zip(compiled(*args), function(*args), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0))
        assert torch.equal(found.isnan(), expected.isnan())
        numbers = ~expected.isnan()
        assert torch.equal(found.signbit()[numbers], expected.signbit()[numbers])
    assert not compiled.eager_reasons, compiled.eager_reasons


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_signs_of_zeros(dtype):
    x = torch.tensor([0.0, -0.0, math.nan, 1.0] * 9, dtype=dtype)
    y = -x.flip(0)
    same_bits(lambda x, y: (torch.fmin(x, y), torch.fmax(x, y)), x, y)
    same_bits(lambda x: (x[:2].cumsum(0), x[1:2].cumsum(0)), x)
    added, left, right = torch.full((4,), -0.0, dtype=dtype), x[:0].view(3, 0), x[:0].view(0, 4)
    same_bits(lambda a, x, y: (torch.addmm(a, x, y), torch.addmm(a, x, y, beta=0.5)),
              added, left, right)  # fmt: skip


def test_what_overflows_on_the_way():
    x = torch.tensor([3e38, -3e38, 1.0])
    y = torch.tensor([2.0, 0.5])
    check(lambda a, x, y: torch.addr(a, x, y, beta=0.5, alpha=0.25), torch.zeros(()), x, y)
    same_bits(lambda x: (torch.linalg.vector_norm(x[:1]), x[:, None].norm(dim=1)), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [0, -1])
def test_cross_products_round_one_product(dtype, dim):
    """Also the signs of zeros that tiny products leave."""
    torch.manual_seed(0)
    x, y = torch.randn(3, 50, 3, dtype=dtype), torch.randn(3, 1, 3, dtype=dtype)
    x[:, ::2] *= torch.finfo(dtype).tiny
    compiled = weft.compile(lambda x, y: torch.linalg.cross(x, y, dim=dim))
    compiled(x, y)
    found, expected = compiled(x, y), torch.linalg.cross(x, y, dim=dim)
    assert torch.equal(found, expected) and torch.equal(found.signbit(), expected.signbit())
    assert weft.stats(compiled)["hits"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_whole_quotients_of_half_precision(dtype):
    """Of tensors each step is rounded, of a tensor by a number only the last."""
    torch.manual_seed(0)
    x, y = (50 * torch.randn(999)).to(dtype), (torch.rand(999) + 0.5).to(dtype)
    compiled = weft.compile(whole_quotients)
    compiled(x, y)
    for found, expected in zip(compiled(x, y), whole_quotients(x, y), strict=True):
        assert torch.equal(found, expected)
    assert weft.stats(compiled)["hits"]


def whole_quotients(x, y):
    quotients = [
        torch.div(x, z, rounding_mode=mode)
        for mode in ("trunc", "floor")
        for z in (y, -y, 1.7, y[:1], y[0])
    ]
    return [*quotients, x // y, x // 1.7, torch.remainder(x, y), torch.fmod(x, y)]


def test_variance_of_nothing():
    same_bits(lambda x: (x.var(0, correction=-1), *torch.std_mean(x, 0)), torch.ones(0, 3))


@pytest.mark.parametrize("place", [0, 2, 4])
def test_mean_of_infinities_by_steps(place):
    x = torch.randn(5, 5, 3)
    x[:, place] = -math.inf
    x[1, 4] = math.inf
    check(lambda x: torch.var_mean(x, 1)[1], x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_strides_beside_a_number(dtype):
    """Fakes forget the order of the only tensor with dims."""
    x, y = torch.arange(1, 16).view(3, 5).t().to(dtype), torch.tensor(2, dtype=dtype)
    for function in (torch.copysign, torch.floor_divide):
        found = weft.compile(function)(x, y)
        assert strides(found) == strides(function(x, y))


def test_elements_gathered_from_a_number():
    places = torch.zeros(0, dtype=torch.long)
    check(lambda x: torch.gather(x, 0, places.to(x.device)), torch.tensor(1.0))


def test_shuffle_of_no_pixels():
    function = torch.nn.functional.pixel_unshuffle
    x = torch.ones(0, 1, 6, 6)
    assert weft.compile(function)(x, 3).shape == function(x, 3).shape


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: torch.native_group_norm(x, None, None, 1, 3, 4, 1, 0.5), torch.ones(1, 4, 3).mT),
        (
            lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.0, 1e-5),
            torch.ones(0, 3),
        ),
    ],
    ids=["strides", "no-elements"],
)
def test_norms_that_pytorch_refuses(function, x):
    for call in (function, weft.compile(function)):
        with pytest.raises(RuntimeError, match="to be true, but got false|at least one element"):
            call(x)


def test_gelu_of_infinity():
    """oneDNN has none, which eager execution asks of dense float32, and of halves where a processor
    computes in them."""
    x = torch.tensor([math.inf, -math.inf, math.nan, -0.0, 0.0, 7.0, -7.0])
    shapes = (x, x.bfloat16(), x.double(), x.half(), x[:1], x.view(7, 1).expand(7, 3))

    def results(*tensors):
        kinds = ("none", "tanh")
        return [torch.nn.functional.gelu(x, approximate=kind) for x in tensors for kind in kinds]

    found, expected = weft.compile(results)(*shapes), results(*shapes)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_batch_norms_of_infinite_parameters(dtype):
    """PyTorch's kernel scales by the weight ahead of subtracting the mean."""

    def norm(x, weight, bias, mean, variance):
        return torch.native_batch_norm(x, weight, bias, mean, variance, False, -1.2, 1e-5)

    fast = weft.compile(norm)
    x = torch.tensor([[2.0, math.inf, -math.inf, 3.0]], dtype=dtype).repeat(2, 1)
    for weight, mean in ((math.inf, 0.4), (-math.inf, -0.4), (2.0, math.inf), (2.0, 0.4)):
        for bias in (None, torch.ones(4, dtype=dtype)):
            parameters = [torch.full((4,), each, dtype=dtype) for each in (weight, mean, 0.5)]
            found, *saved = fast(x, parameters[0], bias, *parameters[1:])
            expected, *_ = norm(x, parameters[0], bias, *parameters[1:])
            torch.testing.assert_close(found, expected, equal_nan=True)
            assert [each.shape for each in saved] == [(0,), (0,)]


def test_what_unique_is_not_asked_for():
    def results(x):
        return (
            *torch.unique_consecutive(x, True),  # which gives counts, without elements
            *torch.unique_consecutive(x, False, True),
            *torch.unique_consecutive(x, return_inverse=True),
            *torch.ops.aten.unique_consecutive(x, True),
            *torch.ops.aten._unique2(x, True, False, True),
        )

    x = torch.tensor([1, 1, 2, 2, 5])
    compiled = weft.compile(results)
    for _ in range(2):
        for mine, theirs in zip(compiled(x), results(x), strict=True):
            assert mine.shape == theirs.shape and torch.equal(mine, theirs)
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("dim", [None, 1])
def test_norm_of_order_zero_has_no_gradient(dim):
    x = torch.randn(3, 4, requires_grad=True)
    compiled = weft.compile(lambda x: torch.linalg.vector_norm(x * 2, 0, dim=dim))
    with torch.enable_grad():
        for _ in range(2):
            compiled(x).sum().backward()
            assert x.grad is None


def test_strides_of_membership():
    """Fakes give its answers the strides of transposed elements, of integers, too."""
    x, among = torch.arange(12).view(3, 4).t(), torch.tensor([1, 2, 7])
    found, expected = (f(x, among) for f in (weft.compile(torch.isin), torch.isin))
    assert torch.equal(found, expected) and strides(found) == strides(expected)


def test_trigamma_of_large_negative_numbers():
    x = torch.tensor([-math.inf, math.inf, math.nan, 0.0, 3e38, -3e38, -1.5])
    for each in (x, x.bfloat16(), x.double()):
        found, expected = (
            f(each) for f in (weft.compile(lambda x: x.polygamma(1)), lambda x: x.polygamma(1))
        )
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_slope_of_hardswish_below_its_bound():
    """A zero, whatever the cotangent's sign is."""
    x, cotangent = torch.tensor([-4.0, -3.0, 1.0, 4.0]), torch.tensor([-1.0, -math.inf, -1.0, 2.0])
    slopes = []
    for function in (weft.compile(torch.nn.functional.hardswish), torch.nn.functional.hardswish):
        y = x.clone().requires_grad_()
        with torch.enable_grad():
            slopes += torch.autograd.grad(function(y), y, cotangent)
    assert torch.equal(*slopes) and torch.equal(*(slope.signbit() for slope in slopes))


def test_zeros_of_softshrink_in_vectors():
    x = torch.tensor([-0.3, 0.3, -0.0, 0.0, math.nan, 2.0, -2.0, -0.5] * 16)
    same_bits(lambda *tensors: tuple(map(torch.nn.functional.softshrink, tensors)),
              x, x.double(), x.bfloat16())  # fmt: skip
