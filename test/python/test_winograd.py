# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""3x3 convolutions by Winograd's F(2x2, 3x3): their numbers, and what is not finite."""

import math

import pytest
import torch
import torch.nn.functional as F
from counting import programs

import weft


class Block(torch.nn.Module):
    """Two convolutions around a norm and an activation, and what goes past them."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(channels, inner, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(inner)
        self.second = torch.nn.Conv2d(inner, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(F.silu(self.norm(self.first(x)))) + x)


SHAPES = [
    # batch, channels, inner, height, width: odd groups of tiles, one of them, several images,
    # tiles that overlap
    (1, 64, 64, 24, 10),
    (2, 32, 96, 14, 14),
    (3, 160, 32, 8, 18),
    (1, 48, 64, 52, 46),
    (1, 256, 128, 30, 28),
    (1, 64, 64, 35, 17),
    (2, 32, 96, 13, 24),
    (9, 64, 32, 4, 9),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("batch, channels, inner, height, width", SHAPES)
def test_block(batch: int, channels: int, inner: int, height: int, width: int, isa: str) -> None:
    torch.manual_seed(height)
    module = Block(channels, inner).eval()
    module.norm.running_mean.normal_()
    module.norm.running_var.uniform_(0.5, 2)
    x = torch.randn(batch, channels, height, width)
    with torch.no_grad():
        compiled = [weft.compile(module, threads=n, isa=isa) for n in (1, 2)]
        ours, again = (each(x) for each in compiled)
        assert all(torch.equal(compiled[1](x), again) for _ in range(10))
        eager, twin = module(x), module.double()(x.double())
    assert torch.equal(ours, again)
    assert programs(compiled[0]) == 1
    assert (ours - twin).norm() <= 1.5 * (eager - twin).norm()
    assert (ours - twin).abs().max() <= 2 * (eager - twin).abs().max()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("channels", [64, 128, 256, 512])
def test_error(channels: int) -> None:
    """At most 1.5 times as far from float64 as PyTorch, on average over seeds."""
    ratios = []
    for seed in range(4):
        torch.manual_seed(seed)
        conv = torch.nn.Conv2d(channels, 64, 3, padding=1).eval()
        x = torch.randn(1, channels, 16, 16)
        with torch.no_grad():
            ours, eager = weft.compile(conv)(x), conv(x)
            twin = conv.double()(x.double())
        ratios.append(((ours - twin).norm() / (eager - twin).norm()).item())
    assert math.fsum(ratios) / len(ratios) <= 1.5


@pytest.mark.parametrize("height, width", [(16, 18), (17, 19)])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 3e38])
def test_what_is_not_finite_stays_where_it_is(value: float, height: int, width: int) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.Hardtanh(-1e30, 1e30)
    ).eval()
    x = torch.randn(1, 32, height, width)
    x[0, 3, 5, 7] = x[0, 9, 0, -1] = x[0, 0, 12, 4] = value
    with torch.no_grad():
        ours, eager = weft.compile(module)(x), module(x)
    torch.testing.assert_close(ours, eager, equal_nan=True)


def test_weight_of_infinities() -> None:
    torch.manual_seed(1)
    conv = torch.nn.Conv2d(32, 32, 3, padding=1).eval()
    x = torch.randn(1, 32, 16, 16).abs() + 0.1
    with torch.no_grad():
        conv.weight[4, 7, 0, 2] = math.inf
        torch.testing.assert_close(weft.compile(conv)(x), conv(x), equal_nan=True)


def test_weight_is_transformed_anew_when_it_changes() -> None:
    torch.manual_seed(2)
    conv = torch.nn.Conv2d(64, 64, 3).eval()
    x = torch.randn(1, 64, 18, 18)
    with torch.no_grad():
        compiled = weft.compile(conv)
        torch.testing.assert_close(compiled(x), conv(x), atol=1e-5, rtol=1e-5)
        conv.weight.mul_(-3).add_(0.1)
        torch.testing.assert_close(compiled(x), conv(x), atol=1e-5, rtol=1e-5)
        assert programs(compiled) == 1


def test_weight_that_is_an_input() -> None:
    torch.manual_seed(3)
    x, w = torch.randn(1, 32, 16, 16), torch.randn(32, 32, 3, 3)
    compiled = weft.compile(lambda x, w: F.conv2d(x, w, padding=1))
    torch.testing.assert_close(compiled(x, w), F.conv2d(x, w, padding=1), atol=1e-4, rtol=1e-5)
