# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is padded: values stored between borders, by whichever kernel computes them."""

import pytest
import torch
import torch.nn.functional as F
from counting import programs

import weft


class Padded(torch.nn.Module):
    """A convolution whose result is wanted between borders, and as it is."""

    def __init__(self, channels: int, stride: int, border: tuple[int, ...], value: float) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(5, channels, 3, stride, padding=1)
        self.second = torch.nn.Conv2d(channels, 7, 3)
        self.border, self.value = border, value

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.first(x))
        return self.second(F.pad(y, self.border, value=self.value)), y.sum(0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize(
    "channels, stride, border, value",
    [
        (16, 1, (1, 1, 1, 1), 0.0),
        (40, 2, (1, 2, 0, 3), 0.5),
        (33, 1, (0, 0, 2, 0), -2.0),
        (64, 1, (3, 0, 0, 1, 1, 0), 1.0),
    ],
)
def test_convolution_between_borders(
    channels: int, stride: int, border: tuple[int, ...], value: float, isa: str
) -> None:
    torch.manual_seed(channels)
    module = Padded(channels, stride, border, value).eval()
    if len(border) > 4:
        module.second = torch.nn.Conv2d(channels + sum(border[4:]), 7, 3)
    x = torch.randn(2, 5, 23, 19)
    with torch.no_grad():
        compiled = [weft.compile(module, threads=n, isa=isa) for n in (1, 2)]
        (ours, sums), again = (each(x) for each in compiled)
        eager, eager_sums = module(x)
        twin, _ = module.double()(x.double())
    assert programs(compiled[0]) == 1
    assert torch.equal(ours, again[0]) and torch.equal(sums, again[1])
    assert (ours - twin).abs().max() <= 2 * (eager - twin).abs().max() + 1e-6
    torch.testing.assert_close(sums, eager_sums)


def test_pooling_of_a_convolution() -> None:
    """The border of a largest value is minus infinity."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 7, 2, 3), torch.nn.MaxPool2d(3, 2, 1), torch.nn.Conv2d(24, 8, 1)
    ).eval()
    x = torch.randn(1, 3, 41, 37) - 3
    with torch.no_grad():
        compiled = weft.compile(module)
        torch.testing.assert_close(compiled(x), module(x))
    assert programs(compiled) == 1


@pytest.mark.parametrize("rows, depth", [(3, 5), (20, 300), (130, 64)])
def test_product_between_borders(rows: int, depth: int) -> None:
    torch.manual_seed(rows)
    a, b = torch.randn(rows, depth), torch.randn(depth, 37)

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.pad(torch.relu(a @ b), (1, 3, 2, 0), value=7.0)

    torch.testing.assert_close(weft.compile(function)(a, b), function(a, b))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int8, torch.bool]
)
@pytest.mark.parametrize("border", [(1, 3), (0, 5, 2, 0), (17, 1, 0, 0, 1, 2), (4, 4, 40, 1)])
def test_border_of_an_input(border: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (3, 31, 21)).to(dtype)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.pad(x, border, value=1)
        return y, F.pad(x, border)

    compiled = weft.compile(function)
    for ours, theirs in zip(compiled(x), function(x), strict=True):
        assert torch.equal(ours, theirs)
    assert programs(compiled) == 1
