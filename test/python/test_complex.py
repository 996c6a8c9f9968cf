# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers: pairs of reals in the program, complex tensors at its border."""

import copy
import math

import pytest
import torch
from counting import latest
from torch.utils import _pytree as pytree

import weft
import weft.frontend.ops  # noqa: F401 (fills the table)
from weft.frontend import pairs
from weft.frontend.table import TABLE

pytestmark = pytest.mark.usefixtures("no_grad", "verified")

TYPES = [torch.complex64, torch.complex128]


def check(function, *args, native=True):
    """Three calls, the last ones by the program; compared with eager execution."""
    compiled = weft.compile(function)
    for _ in range(3):
        found = compiled(*args)
        expected = function(*args)
        torch.testing.assert_close(found, expected)
        for mine, theirs in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected)):
            assert mine.stride() == theirs.stride()
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats  # what is remembered hits at once
    assert bool(latest(compiled).lowered.fallbacks) is not native


def numbers(*shape, dtype=torch.complex64):
    return torch.randn(*shape, dtype=dtype)


def test_rules_for_both_parts_exist():
    assert set(pairs._EACH_PART) <= {name.removeprefix("aten.") for name in TABLE}


ARITHMETIC = {
    "sum of products": lambda x, y: x * y + x - y * 2,
    "with a real": lambda x, y: x * y.real + 0.5,
    "with a number": lambda x, y: (x + (1 + 2j)) * (0.5 - 1j),
    "conjugated": lambda x, y: x * y.conj(),
    "parts": lambda x, y: torch.complex(x.imag, y.real) + x,
    "exponential": lambda x, y: torch.exp(x * 1j) + y,
    "moved": lambda x, y: torch.cat([x.T, y.T], 1)[1:, ::2].reshape(-1),
    "reduced": lambda x, y: (x.sum(0), y.mean(1), x.cumsum(1)),
    "product of matrices": lambda x, y: x @ y.T,
    "chosen": lambda x, y: torch.where(x.real > 0, x, y),
    "seen as reals": lambda x, y: torch.view_as_real(x + y) * 2,
    "angle": lambda x, y: torch.angle(x) + y.real,
    "negated": lambda x, y: -x,
    "quotient": lambda x, y: (x / y, 2 / x, x / 3, x / (1 - 2j), x.real / y),
    "reciprocal": lambda x, y: x.reciprocal() + y,
    "direction": lambda x, y: torch.sgn(x * (y.real > 0)),
    "square": lambda x, y: x**2 + y.square(),
    "less": lambda x, y: (1 - x, torch.rsub(x, y), torch.sub(x, y, alpha=2)),
    "questions": lambda x, y: (x == y, x != x.real, x == 1j, (x * math.nan).isnan()),
    "infinities": lambda x, y: ((x * math.inf).isinf(), (x * math.inf).isfinite()),
    "filled": lambda x, y: (x.masked_fill(y.real > 0, 2 - 1j), x.masked_fill(y.real > 0, 0)),
    "padded": lambda x, y: torch.nn.functional.pad(x, (1, 2, 0, 1)),
    "norms": lambda x, y: (torch.linalg.vector_norm(x, dim=1), y.norm(), x.abs().amax()),
    "layer": lambda x, y: (
        torch.nn.functional.linear(x, y, y[:, 0]) + torch.outer(x[:, 1], y[0, :5])
    ),
    "normalized": lambda x, y: torch.nn.functional.normalize(x.sum(1, True) * 0 + y, dim=1),
    "unchanged": lambda x, y: (x - 0, y.squeeze(0), x[0, 0].sum(-1), y[:1].expand(5, 7) * 1),
    "added product": lambda x, y: torch.addmm(x[:5, :5], x, y.T),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "copied": lambda x, y: torch.zeros_like(x).copy_(y.real) + torch.empty_like(y).fill_(2j),
    "put": lambda x, y: torch.zeros_like(x).index_add(0, torch.tensor([4, 0, 0, 1, 2]), y),
    "made": lambda x, y: torch.cat([torch.zeros_like(x), x + torch.full((7,), 1 - 2j)]),
}

# By hypot, which PyTorch computes in float64.
OF_MAGNITUDES = ("direction", "norms", "normalized")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name, dtype):
    native = dtype == torch.complex64 or name not in OF_MAGNITUDES
    check(ARITHMETIC[name], *(numbers(5, 7, dtype=dtype) for _ in range(2)), native=native)


WRITTEN = {
    "slices": lambda x, y: _written(x, lambda z: z[1:3, ::2].copy_(y[:2, :4])),
    "rows": lambda x, y: _written(x, lambda z: z[2].mul_(y[0])),
    "places": lambda x, y: _written(x, lambda z: z.__setitem__(torch.tensor([0, 3]), y[:2])),
    "diagonal": lambda x, y: _written(x, lambda z: z.diagonal().fill_(1j)),
}


def _written(x, write):
    z = torch.zeros_like(x) + x
    write(z)
    return z * 2


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_to_parts(name):
    check(WRITTEN[name], numbers(5, 7), numbers(5, 7))


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_layouts_of_arguments(layout):
    x = {
        "transposed": lambda: numbers(7, 5).T,
        "strided": lambda: numbers(5, 14)[:, ::2],
        "expanded": lambda: numbers(7).expand(5, 7),
    }[layout]()
    check(lambda x: x * x + 1, x)


def test_rotary_embedding():
    """Llama's, with the rotations in a complex buffer."""

    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            angles = torch.outer(torch.arange(6.0), torch.rand(4))
            self.register_buffer("rotations", torch.polar(torch.ones_like(angles), angles))

        def forward(self, x):
            turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.rotations
            return torch.view_as_real(turned).flatten(-2)

    model = Rotary()
    x = torch.randn(2, 6, 8)
    check(model, x)
    compiled = weft.compile(model)
    compiled(x)
    model.rotations.mul_(1j)
    torch.testing.assert_close(compiled(x), model(x))
    model.rotations = model.rotations.conj().resolve_conj()
    for _ in range(3):
        torch.testing.assert_close(compiled(x), model(x))


TRANSFORMS = {
    "spectrum": lambda x: torch.fft.rfft(x).abs(),
    "filter": lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5, n=x.shape[-1]) + x,
    "two dims": lambda x: torch.fft.fft2(x).real.contiguous() + torch.fft.fft2(x).imag,
    "returned": lambda x: torch.fft.fft(x, dim=0),
    "short time": lambda x: torch.stft(x, 8, window=torch.ones(8), return_complex=True).abs(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms(name):
    """PyTorch's, inside the program."""
    check(TRANSFORMS[name], torch.randn(4, 16), native=False)


def test_conjugated_views_are_left_to_pytorch():
    compiled = weft.compile(lambda x: x + 1, capture="export")
    x = numbers(3)
    for _ in range(3):
        assert torch.equal(compiled(x), x + 1)
        assert torch.equal(compiled(x.conj()), x.conj() + 1)
    (reason,) = weft.stats(compiled)["breaks"]
    assert "conjugated" in reason


def test_reals_and_pairs_are_other_arguments():
    """A tensor whose last dim is two is none of complex numbers."""
    compiled = weft.compile(lambda x: x * x)
    for x in (numbers(3), torch.randn(3, 2), numbers(3)):
        for _ in range(2):
            torch.testing.assert_close(compiled(x), x * x)
    assert weft.stats(compiled)["graphs"] == 2


def test_writes_in_place_are_left_to_pytorch():
    compiled = weft.compile(lambda x: x.mul_(2), capture="export")
    x = numbers(3)
    expected = x.clone()
    for _ in range(3):
        expected *= 2
        torch.testing.assert_close(compiled(x), expected)
    assert any("complex" in reason for reason in weft.stats(compiled)["breaks"])


class Spectral(torch.nn.Module):
    """A layer of a Fourier neural operator, Li et al. 2021: complex weights on the low modes."""

    def __init__(self, channels=3, modes=4):
        super().__init__()
        weight = torch.randn(channels, channels, modes, modes, dtype=torch.complex128)
        self.weight = torch.nn.Parameter(weight)
        self.modes = modes

    def forward(self, x):
        m, spectrum = self.modes, torch.fft.rfft2(x)
        low = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.weight)
        kept = torch.zeros_like(spectrum)
        kept[:, :, :m, :m] = low
        return torch.nn.functional.gelu(torch.fft.irfft2(kept, s=x.shape[-2:])) + x


class Kernel(torch.nn.Module):
    """A diagonal state space's kernel, Gu et al. 2022, from complex parameters."""

    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.randn(3, 5, dtype=torch.complex128))
        self.gain = torch.nn.Parameter(torch.randn(3, 5, dtype=torch.complex128))

    def forward(self, x):
        rate = -self.rate.real.exp() + 1j * self.rate.imag
        steps = torch.exp(rate.unsqueeze(-1) * torch.arange(x.shape[-1]))
        kernel = torch.einsum("hn,hnl->hl", self.gain * (rate.exp() - 1) / rate, steps).real
        return x * kernel


class Phases(torch.nn.Module):
    """Complex in, complex out."""

    def __init__(self):
        super().__init__()
        self.turn = torch.nn.Parameter(torch.randn(7, dtype=torch.complex128))

    def forward(self, x):
        y = x * self.turn.conj() + torch.view_as_complex(torch.view_as_real(x) * 2)
        return y / (y.real.square() + 1), torch.cat([y, x]).sum(0)


LAYERS = {
    "spectral": (Spectral, lambda: torch.randn(2, 3, 12, 10, dtype=torch.float64)),
    "kernel": (Kernel, lambda: torch.randn(2, 3, 9, dtype=torch.float64)),
    "phases": (Phases, lambda: numbers(5, 7, dtype=torch.complex128)),
}


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_complex_numbers(name, train, verified):
    """Of complex parameters, arguments and results, for real and complex cotangents."""
    make, example = LAYERS[name]
    model = make().train(train)
    compiled, x = weft.compile(model), example()
    for _ in range(3):
        found = _gradients(compiled, x, model)
        expected = _gradients(model, x, model)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
    stats = weft.stats(compiled)
    assert stats["hits"] and not stats["breaks"], stats


def _gradients(call, x, model):
    x = x.clone().requires_grad_()
    with torch.enable_grad():
        results = pytree.tree_leaves(call(x))
    torch.manual_seed(3)
    cotangents = [torch.randn_like(each) for each in results]
    return torch.autograd.grad(results, [x, *model.parameters()], cotangents)


def test_steps_with_complex_parameters():
    models = [Kernel().train()]
    models.append(copy.deepcopy(models[0]))
    x = torch.randn(2, 3, 9, dtype=torch.float64)
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in models]
    with torch.enable_grad():
        step = weft.compile_step(models[0], lambda y: y.square().sum(), optimizers[0])
        for _ in range(4):
            step(x)
        for _ in range(4):
            optimizers[1].zero_grad()
            models[1](x).square().sum().backward()
            optimizers[1].step()
    for mine, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_gradients_of_negative_sizes(monkeypatch):
    """Along the size polar's is the sign of the result, which has turned around."""
    monkeypatch.setattr(weft.config, "verify", "off")
    size = torch.tensor([1.5, -1.5, 0.0, math.inf], requires_grad=True)
    angle = torch.tensor([0.3, 0.3, 2.0, 1.0], requires_grad=True)
    cotangent = torch.randn(4, dtype=torch.complex64)
    with torch.enable_grad():
        results = [function(size, angle) for function in (weft.compile(torch.polar), torch.polar)]
        slopes = [torch.autograd.grad(each, [size, angle], cotangent) for each in results]
    torch.testing.assert_close(*slopes, equal_nan=True)


def test_quotients_by_extremes(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    numbers = (0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan, 3e38)
    x = torch.tensor([complex(a, b) for a in numbers for b in numbers])
    y, real = x.roll(5), x.real.contiguous()

    def quotients(x, y, real):
        return x / y, (1 - 2j) / y, x.reciprocal(), x / real, real / y, x / 0.0, x / math.inf

    found = weft.compile(quotients)(x, y, real)
    for mine, theirs in zip(found, quotients(x, y, real), strict=True):
        assert_parts_equal(mine, theirs)


def assert_parts_equal(found, expected):
    torch.testing.assert_close(found, expected, equal_nan=True)
    parts = [torch.view_as_real(each) for each in (found, expected)]
    signs = [torch.where(part.isnan(), False, part.signbit()) for part in parts]
    assert torch.equal(*signs)


def test_gradients_of_quotients(verified):
    """By a real divisor, too, whose imaginary part is zero."""
    x = numbers(4, dtype=torch.complex128)
    y = torch.tensor([2.0, -3.0, 1j, 1 + 2j], dtype=torch.complex128)
    with torch.enable_grad():
        x, y = x.requires_grad_(), y.requires_grad_()
        slopes = []
        for function in (weft.compile(torch.div), torch.div):
            first = torch.autograd.grad(function(x, y), (x, y), x.detach(), create_graph=True)
            slopes.append([*first, *torch.autograd.grad(first, (x, y), (x.detach(), y.detach()))])
    for mine, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_lazily_conjugated_results():
    """What eager execution gives with the bit that says conjugated has it, as have its views."""

    def results(x):
        y = torch.fft.ifft(x.real)
        return x.conj(), x[1:].mH, (x * 2).mH, y, y.conj(), y[0], torch.fft.ihfft(x.real) * 2

    x = numbers(4, 4)
    compiled = weft.compile(results)
    for _ in range(3):
        expected = results(x)
        for mine, theirs in zip(compiled(x), expected, strict=True):
            assert mine.is_conj() == theirs.is_conj() and mine.stride() == theirs.stride()
            torch.testing.assert_close(mine, theirs)
    assert not weft.stats(compiled)["breaks"]
    compiled(x)[0].zero_()
    assert not x.any()
    negated = weft.compile(lambda x: x.conj().imag)
    for _ in range(2):
        assert negated(expected[2]).is_neg() != expected[2].is_conj()


@pytest.mark.parametrize("dtype", TYPES)
def test_copies_are_made_of_the_parts(dtype):
    check(
        lambda x: (x.clone() * 2, x.mT.contiguous(), (x + 1).clone().real),
        numbers(3, 4, dtype=dtype),
    )


def test_reasons_name_the_transform():
    compiled = weft.compile(torch.fft.hfft)
    compiled(torch.randn(3, 8))
    (fallback,) = latest(compiled).lowered.fallbacks
    assert "complex numbers" in fallback.reason
