# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions of stored bfloat16 and float16: sums in float32, rounded once."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from counting import latest
from torch import nn

import weft

HALVES = [torch.bfloat16, torch.float16]
MODULES = {
    "linear": (nn.Linear(100, 70), (3, 50, 100)),
    "vector": (nn.Linear(100, 70), (100,)),
    "few-rows": (nn.Linear(390, 33), (5, 390)),
    "activation": (nn.Sequential(nn.Linear(64, 40), nn.ReLU()), (2, 33, 64)),
    "conv": (nn.Conv2d(12, 20, 3, 2, 1), (2, 12, 19, 17)),
    "depthwise": (nn.Conv2d(21, 21, 5, 1, 2, groups=21), (2, 21, 15, 13)),
    "groups": (nn.Conv2d(16, 24, 3, groups=4), (1, 16, 15, 20)),
    "conv1d": (nn.Conv1d(8, 24, 3, 2, 1), (2, 8, 41)),
    "transposed": (nn.ConvTranspose2d(12, 20, 4, 2, 1), (1, 12, 7, 9)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", MODULES)
def test_no_worse_than_eager(name: str, dtype: torch.dtype) -> None:
    module, shape = MODULES[name]
    torch.manual_seed(0)
    module = copy.deepcopy(module).to(dtype)
    x = torch.randn(shape).to(dtype)
    compiled = weft.compile(module)
    with torch.no_grad():
        found, expected = compiled(x), module(x)
        exact = copy.deepcopy(module).double()(x.double())
        for _ in range(5):
            assert torch.equal(compiled(x), found)
    assert found.dtype == dtype
    error, theirs = ((y - exact).abs().mean() for y in (found, expected))
    assert error <= 1.01 * theirs + 1e-7


@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_activations(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 37, 40).to(dtype) for _ in range(3))

    def function(q, k, v):
        return q @ k.mT, F.scaled_dot_product_attention(q, k, v)

    with torch.no_grad():
        found, expected = weft.compile(function)(q, k, v), function(q, k, v)
    exact = function(q.double(), k.double(), v.double())
    for ours, theirs, twin in zip(found, expected, exact, strict=True):
        assert (ours - twin).abs().mean() <= 1.05 * (theirs - twin).abs().mean()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("masked", ["plain", "causal", "kept", "added"])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_is_fused(dtype: torch.dtype, masked: str) -> None:
    """On projections, whose results lie in blocks of tokens; sums and weights in float32."""
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(4)).to(dtype)
    x = torch.randn(2, 37, 48).to(dtype)
    keep = torch.rand(2, 1, 37, 37) < 0.7
    keep[..., 0] = True
    added = torch.randn(37, 37).to(dtype)

    def attend(layers, x, added):
        q, k, v = (f(x).unflatten(-1, (3, 16)).transpose(1, 2) for f in layers[:3])
        masks = {"plain": {}, "causal": {"is_causal": True}}
        masks |= {"kept": {"attn_mask": keep}, "added": {"attn_mask": added}}
        y = F.scaled_dot_product_attention(q, k, v, **masks[masked])
        return layers[3](y.transpose(1, 2).flatten(2))

    compiled = weft.compile(lambda x: attend(layers, x, added))
    with torch.no_grad():
        found, expected = compiled(x), attend(layers, x, added)
        exact = attend(copy.deepcopy(layers).double(), x.double(), added.double())
    assert not compiled.eager_reasons
    assert 'weft.kernel = "attention"' in compiled.ir("loops")
    assert (found - exact).abs().mean() <= 1.05 * (expected - exact).abs().mean()


def test_a_rounded_sum_stays_rounded() -> None:
    """Where the product itself is a result, what reads it sees its rounded elements."""
    torch.manual_seed(0)
    x, w = torch.randn(40, 64).bfloat16(), torch.randn(48, 64).bfloat16()

    def function(x, w):
        y = x @ w.mT
        return y, y.float() * 3

    y, scaled = weft.compile(function)(x, w)
    assert torch.equal(scaled, y.float() * 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_a_widened_product_was_rounded(dtype: torch.dtype, isa: str) -> None:
    """As it is where each op is a kernel; of a bias and its product only the sum is."""
    x, w, b = (torch.randn(*shape).to(dtype) for shape in [(9, 37), (37, 21), (21,)])
    image, kernel = torch.randn(1, 3, 8, 8).to(dtype), torch.randn(5, 3, 3, 3).to(dtype)
    functions = [
        lambda: (x @ w).float(),
        lambda: (x @ w).double(),
        lambda: (x @ w[:, 0]).float(),
        lambda: torch.bmm(x[None], w[None]).float(),
        lambda: F.linear(x, w.mT, b).float(),
        lambda: F.conv2d(image, kernel).float(),
        lambda: F.conv_transpose2d(image, kernel.transpose(0, 1)).float(),
        lambda: (x @ w).float() * 2,
    ]
    compiled = weft.compile(lambda x, w, b: [f() for f in functions], isa=isa)
    for _ in range(3):
        for wide in compiled(x, w, b):
            assert torch.equal(wide, wide.to(dtype).to(wide.dtype))
    product = weft.compile(lambda x, w: x @ w, isa=isa)
    readers = weft.compile(lambda x, w, b: ((x @ w).round(), (x @ w) > b), isa=isa)
    for _ in range(3):
        y, (whole, above) = product(x, w), readers(x, w, b)
        assert torch.equal(whole, y.round()) and torch.equal(above, y > b)


AFTER = {
    "float": lambda y: y.float(),
    "float, scaled": lambda y: y.float() * 3,
    "double": lambda y: y.reshape(-1).double(),
    "integers": lambda y: (y * 8).to(torch.int32),
    "comparison": lambda y: y.float() > 0.5,
    "choice": lambda y: torch.where(y.float() > 0.5, 100.0, 0.0).to(y.dtype),
    "floor": lambda y: y.floor(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", AFTER)
def test_products_are_rounded_ahead_of_what_shows_it(name: str, dtype: torch.dtype) -> None:
    """Whole numbers times a power of two: sums are exact, and rounding them is all that is."""
    torch.manual_seed(0)
    x = torch.randint(-60, 60, (37, 50)).to(dtype)
    w = torch.randint(-60, 60, (50, 33)).to(dtype) * 2.0**-12
    with torch.no_grad():
        for rows in (x, x[:5], x[:1]):
            compiled = weft.compile(lambda a, b: AFTER[name](a @ b))
            for _ in range(3):
                assert torch.equal(compiled(rows, w), AFTER[name](rows @ w))


DENORMAL = {
    "sign": lambda x: -x,
    "sum": lambda x: x + x,
    "rounded": lambda x: (x.float() * 0.375).to(x.dtype),
    "choice": lambda x: torch.where(x > 0, x, x * 2),
    "column sum": lambda x: x.reshape(2, -1).sum(0),
    "one of one": lambda x: torch.topk(x[0], 1).values,
}


@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("name", DENORMAL)
def test_denormals_are_kept(name: str, isa: str, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_ISA", isa)
    function = DENORMAL[name]
    bits = torch.tensor([1, 2, 64, 127, 128, 129, 200], dtype=torch.int16).repeat(10)
    x = torch.cat([bits.view(torch.bfloat16), -bits.view(torch.bfloat16)])
    compiled = weft.compile(lambda x, isa=isa: function(x))
    with torch.no_grad():
        expected = function(x).view(torch.int16)
        for _ in range(3):
            assert torch.equal(compiled(x).view(torch.int16), expected)
    assert weft.stats(compiled)["hits"]


def _beside_scalars(x, s):
    """Numbers, and tensors of no dims of a wider type."""
    return (
        *(x + s, x - s, s - x, x * s, s * x, x / s, s / x, x + 37.123456, x * 37.123456),
        *(x // s, torch.fmod(x, s), torch.remainder(x, s), torch.hypot(x, s), torch.atan2(x, s)),
        *(x == s, x < s, x >= 37.123456, torch.add(x, x + x, alpha=0.3), x.abs() ** 0.37123),
        *(37.123456 ** (x / 64), torch.addcmul(x, s, x), torch.sub(x, 37.123456, alpha=3)),
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scalars_are_rounded_where_eager_kernels_round_them(dtype, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = (torch.linspace(-99, 99, 64) + torch.linspace(0, 1, 64).square()).to(dtype)
    s = torch.tensor(37.123456)
    for found, value in zip(
        weft.compile(_beside_scalars)(x, s), _beside_scalars(x, s), strict=True
    ):
        assert found.dtype == value.dtype
        # Powers and angles are within an ulp; all else has the same bits.
        assert (found != value).sum() <= 3


SCALED = {
    "addmm": (torch.addmm, [(33, 17), (33, 65), (65, 17)]),
    "addmm of a row": (torch.addmm, [(17,), (33, 65), (65, 17)]),
    "baddbmm": (torch.baddbmm, [(3, 33, 17), (3, 33, 65), (3, 65, 17)]),
    "addbmm": (torch.addbmm, [(33, 17), (3, 33, 65), (3, 65, 17)]),
    "addmv": (torch.addmv, [(133,), (133, 65), (65,)]),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factors", [{"alpha": 0.7}, {"beta": 0.3}, {"alpha": 0.7, "beta": 1.3}])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SCALED)
def test_factors_of_sums_are_not_rounded(
    name: str, dtype: torch.dtype, factors: dict[str, float]
) -> None:
    """Scaled and added in float32, so that no result is further than half a unit of its own from
    the exact one; and so are gradients as near as eager's."""
    function, shapes = SCALED[name]
    torch.manual_seed(0)
    tensors = [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]
    twins = [x.detach().double().requires_grad_() for x in tensors]
    compiled = weft.compile(lambda *xs: function(*xs, **factors))
    compiled(*tensors)  # PyTorch's own result
    found, exact = compiled(*tensors), function(*twins, **factors)
    assert weft.stats(compiled)["hits"]
    half = torch.finfo(dtype).eps / 2 * exact.detach().abs() + 1e-4 * exact.detach().abs().max()
    assert ((found.double() - exact).abs() <= 1.01 * half).all()
    cotangent = torch.randn_like(found)
    ours = torch.autograd.grad(found, tensors, cotangent)
    theirs = torch.autograd.grad(function(*tensors, **factors), tensors, cotangent)
    best = torch.autograd.grad(exact, twins, cotangent.double())
    for x, y, z in zip(ours, theirs, best, strict=True):
        assert (x - z).abs().mean() <= 1.5 * (y - z).abs().mean()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kernel, stride, padding", [(4, 2, 1), (3, 2, 1), (3, 3, 0), (2, 3, 0)])
def test_the_gradient_of_a_transposed_convolutions_bias_is_rounded_once(
    dtype, kernel, stride, padding
) -> None:
    """It is a sum over all phases, each of which has a part of it."""
    torch.manual_seed(0)
    module = nn.ConvTranspose2d(8, 33, kernel, stride, padding).to(dtype)
    compiled, x = weft.compile(module), torch.randn(2, 8, 9, 7).to(dtype)
    cotangent = torch.randn_like(module(x))
    for _ in range(2):
        module.zero_grad()
        compiled(x).backward(cotangent)
    assert not compiled.stats()["breaks"]
    exact = cotangent.double().sum((0, 2, 3))
    ours = module.bias.grad.double() - exact
    assert ours.abs().max() <= 1.01 * (exact.to(dtype).double() - exact).abs().max()


def _steps(x, y):
    """Functions whose kernels round between their steps, or do not."""
    return (
        *(torch.logit(x), torch.logit(x, 1e-3), torch.logit(x, 0.1), torch.special.entr(y)),
        *(torch.xlogy(y, x), torch.xlogy(y, 1.7), torch.special.xlog1py(y, x)),
        *(torch.round(y, decimals=decimals) for decimals in (-2, 0, 1, 3, 5)),
    )


@pytest.mark.parametrize("dtype", HALVES)
def test_steps_are_rounded_where_eager_kernels_round_them(dtype):
    torch.manual_seed(0)
    x, y = torch.rand(999).to(dtype), (5 * torch.randn(999)).to(dtype)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 0.5]).to(dtype)
    x, y = torch.cat([x, special.repeat(8)]), torch.cat([y, special.repeat_interleave(8)])
    compiled = weft.compile(_steps)
    with torch.no_grad():
        for _ in range(2):
            for found, expected in zip(compiled(x, y), _steps(x, y), strict=True):
                torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert weft.stats(compiled)["hits"] and not latest(compiled).lowered.fallbacks


@pytest.mark.parametrize("dtype", HALVES)
def test_bilinear_sums_in_float32(dtype):
    torch.manual_seed(0)
    arguments = [torch.randn(*shape).to(dtype) for shape in ((9, 3), (9, 5), (6, 3, 5), (6,))]
    function = torch.nn.functional.bilinear
    compiled = weft.compile(lambda *arguments: function(*arguments))
    with torch.no_grad():
        exact = function(*(each.double() for each in arguments))
        most = (function(*arguments) - exact).abs().max()
        for _ in range(2):
            assert (compiled(*arguments) - exact).abs().max() <= most
    assert weft.stats(compiled)["hits"] and not latest(compiled).lowered.fallbacks


RENORMS = [
    lambda x: x.renorm(2, 0, 1.0),
    lambda x: x.renorm(1, 1, 7.0),
    lambda x: x.renorm(0.5, 2, 3.0),
    lambda x: x.renorm(math.inf, 2, 1.5),
    lambda x: x[:0].renorm(2, 0, 1.0),
]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
def test_factors_of_renorms_are_rounded(dtype):
    torch.manual_seed(0)
    x = torch.randn(3, 17, 13).to(dtype)
    x[0, 0, 0] = math.nan
    compiled = weft.compile(lambda x: [call(x) for call in RENORMS])
    compiled(x)
    for found, expected in zip(compiled(x), [call(x) for call in RENORMS], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0, equal_nan=True)
    assert not latest(compiled).lowered.fallbacks
