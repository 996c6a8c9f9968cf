# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samples of images at points, with points beyond the image and such that are no numbers."""

import math

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def sampler(mode, padding, align_corners):
    return lambda x, grid: F.grid_sample(
        x, grid, mode=mode, padding_mode=padding, align_corners=align_corners
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_modes(mode, padding, align_corners, dtype):
    x, grid = torch.randn(2, 5, 9, 7), torch.rand(2, 6, 4, 2) * 3 - 1.5
    x[0, 0, 0, 0], x[1, 1, 4, 4] = math.inf, math.nan
    edges = [math.nan, math.inf, -math.inf, 1e30, -1.0, 1.0, 3e6, -0.0]
    grid[0, :2].view(-1, 2)[:, 0] = torch.tensor(edges)
    function = sampler(mode, padding, align_corners)
    compiled, grid = weft.compile(function), grid.to(dtype)
    rtol, atol = (1e-5, 5e-6) if dtype == torch.float32 else (1e-13, 1e-14)
    for images in (x, x.to(memory_format=torch.channels_last), x[:, :, :1]):
        images = images.to(dtype)
        found, expected = compiled(images, grid), function(images, grid)
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def test_other_types_and_dims():
    grid = torch.rand(1, 3, 4, 2, dtype=torch.float64) - 0.5
    function = sampler("bilinear", "zeros", False)
    x = torch.randn(1, 2, 5, 5, dtype=torch.float64)
    torch.testing.assert_close(weft.compile(function)(x, grid), function(x, grid))
    x, grid = torch.randn(1, 2, 3, 4, 5), torch.rand(1, 2, 3, 4, 3) - 0.5
    torch.testing.assert_close(weft.compile(function)(x, grid), function(x, grid))


def test_no_images():
    compiled = weft.compile(sampler("bilinear", "zeros", False))
    assert compiled(torch.randn(0, 2, 5, 5), torch.randn(0, 3, 4, 2)).shape == (0, 2, 3, 4)


def test_points_are_placed_once():
    """Not for each channel."""
    compiled = weft.compile(sampler("bilinear", "zeros", False))
    compiled(torch.randn(1, 8, 16, 16), torch.rand(1, 9, 9, 2))
    floors = [line for line in compiled.ir("graph").splitlines() if "weft.floor" in line]
    assert floors and all("tensor<1x81xf32>" in line for line in floors)
