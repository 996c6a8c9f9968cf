# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers: pairs of reals in the program, complex tensors at its border."""

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
    "made": lambda x, y: torch.cat([torch.zeros_like(x), x + torch.full((7,), 1 - 2j)]),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name, dtype):
    check(ARITHMETIC[name], numbers(5, 7, dtype=dtype), numbers(5, 7, dtype=dtype))


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
