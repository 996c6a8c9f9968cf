# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows along a dim, uneven pools, running extremes, distances; what scatter undoes."""

import math

import frontend_cases
import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check
from counting import latest

import weft

WINDOWS = [
    lambda x: x.unfold(3, 5, 2),
    lambda x: x.unfold(-1, 5, 1).sum(-1),
    lambda x: x.unfold(2, 4, 4).unfold(3, 3, 3) * 2,
    lambda x: x.unfold(1, 1, 2),
    lambda x: x.unfold(0, 2, 5),
    lambda x: x[0, 0, 0, 0].unfold(0, 1, 1),
    lambda x: F.unfold(x, 3, padding=1, stride=2),
    lambda x: F.fold(F.unfold(x, 3, padding=1), (10, 13), 3, padding=1),
    lambda x: F.fold(F.unfold(x, 2, stride=2), (10, 12), 2, stride=2),
    lambda x: F.fold(F.unfold(x, 3, padding=1, stride=2), (10, 13), 3, padding=1, stride=2),
    lambda x: F.fold(F.unfold(x, (3, 2), 2, (2, 1)), (10, 13), (3, 2), 2, (2, 1)),
    lambda x: F.fold(F.unfold(x, (5, 3), 1, 2, (3, 1)), (10, 13), (5, 3), 1, 2, (3, 1)),
    lambda x: F.unfold(x[0], (3, 2), 2, (2, 1), (1, 3)),
    lambda x: F.fold(x.reshape(1, -1, 1)[:, :50], (1, 1), 5, padding=2),
    lambda x: F.fold(x.flatten()[:196].view(1, 49, 4), (2, 2), 7, padding=3),
    lambda x: F.fold(F.unfold(x[0], 2, stride=3), (10, 13), 2, stride=3),
    lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(10, 13)),
]
POOLS = [
    lambda x: F.adaptive_max_pool2d(x, (3, 7)),
    lambda x: F.adaptive_max_pool2d(x, (5, 4)),
    lambda x: F.adaptive_max_pool2d(x[0], (13, 17)),
    lambda x: F.adaptive_max_pool1d(x[0], 5),
    lambda x: F.adaptive_max_pool3d(x, (2, 3, 4)),
    lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)),
    lambda x: F.adaptive_avg_pool3d(x, (5, 10, 17)),
    lambda x: F.adaptive_avg_pool2d(x, (3, 7)),
    lambda x: F.adaptive_avg_pool1d(x[0], 5),
    lambda x: x[0, 0] + torch.tril_indices(4, 5, -1, device=x.device).sum(),
    lambda x: x[0, 0] + torch.triu_indices(5, 4, 1, device=x.device).sum(1)[0],
]
RUNNING = [
    lambda x: x.cummax(3),
    lambda x: x.cummin(1),
    lambda x: x.cummax(0).values,
    lambda x: x[0, 0, 0, 0].cummin(0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("functions", [WINDOWS, POOLS, RUNNING])
def test_compiled(functions, dtype):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 10, 13, dtype=dtype)
    check(functions, x, same_strides=False)
    for function in functions:
        frontend_cases.check(function, x)


WINDOW_FUNCTIONS = ["bartlett", "blackman", "hamming", "hann", "kaiser"]


@pytest.mark.parametrize("name", WINDOW_FUNCTIONS)
def test_windows_are_constants(name, no_grad):
    make = getattr(torch, f"{name}_window")

    def taper(x):
        n, of = x.shape[-1], {"dtype": x.dtype}
        return x * make(n, **of), x * make(n, periodic=False, **of)

    compiled = weft.compile(taper)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for size in (1, 2, 33, 400):
            x = torch.randn(2, size).to(dtype)
            for found, expected in zip(compiled(x), taper(x)):
                assert torch.equal(found, expected)
    assert "PyTorch" not in str(compiled.explain(x))
    if name in ("hamming", "kaiser"):
        other = weft.compile(lambda x: x * make(33, False, 0.6))
        x = torch.randn(33)
        assert torch.equal(other(x), x * make(33, False, 0.6))


def test_ties_and_nan_in_running_extremes():
    x = torch.randint(-3, 4, (4, 50)).float()
    x[1, 20] = x[1, 30] = x[2, 0] = math.nan
    check([lambda x: x.cummax(1), lambda x: x.cummin(1), lambda x: x.long().cummax(0)], x)


@pytest.mark.parametrize("rows", [(4, 7), (40, 7), (30, 33)])
def test_distances(rows):
    torch.manual_seed(1)
    x, y = torch.randn(2, rows[0], 9), torch.randn(2, rows[1], 9)
    check([lambda x, y, p=p: torch.cdist(x, y, p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)], x, y)
    check(
        [
            lambda x, y: torch.cdist(x[0], y),
            lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
            lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
        ],
        *(x, y),
    )


def test_counts_of_differences_with_nan():
    """torch.cdist with p = 0: a difference that is NaN counts as NaN."""
    x = torch.tensor([[1.0, math.nan, 3.0], [math.inf, 2.0, 3.0], [1.0, 2.5, 3.0]])
    check([lambda x: torch.cdist(x, x, 0.0)], x)


def test_a_window_longer_than_its_operand_needs_no_memory(no_grad):
    """A pooler whose kernel is the number of channels, as EfficientNet has."""
    compiled = weft.compile(torch.nn.AvgPool2d(1280, ceil_mode=True))
    x = torch.randn(1, 3, 7, 7)
    assert torch.allclose(compiled(x), x.mean((2, 3), keepdim=True), atol=1e-6)
    assert latest(compiled).manifest["entries"]["main"]["arena_bytes"] < 2**16
    assert latest(compiled).manifest["entries"]["main"]["arena_bytes"] < 2**16


WINDOWS = [
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 2), "ceil_mode": True},
    {"kernel_size": 3, "dilation": 2, "padding": 1},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8])
def test_places_of_the_largest(dtype, memory_format):
    """The first of equal elements, the last NaN, and never the padding."""
    x = torch.randn(2, 3, 9, 12).mul(3).round()
    if dtype.is_floating_point:
        x[:, 1] = -torch.inf
        for number in (torch.nan, torch.inf, -torch.inf):
            x[torch.rand(x.shape) < 0.1] = number
    x = x.to(dtype).contiguous(memory_format=memory_format)
    functions = [
        *(lambda x, way=way: F.max_pool2d(x, return_indices=True, **way) for way in WINDOWS),
        lambda x: F.max_pool3d(x.contiguous(), 2, 1, return_indices=True),
    ]
    if dtype.is_floating_point:
        functions.append(lambda x: F.adaptive_max_pool2d(x, (3, 4), return_indices=True))
    compiled = weft.compile(lambda x: [f(x) for f in functions])
    for _ in range(3):
        for found, f in zip(compiled(x), functions, strict=True):
            for got, want in zip(found, f(x), strict=True):
                torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    assert not compiled.eager_reasons
    assert not latest(compiled).lowered.fallbacks


def test_unpooled_lies_as_its_argument():
    def function(x):
        return F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)

    x = torch.randn(2, 3, 8, 6)
    check([function, lambda x: function(x[0])], x)
    check(function, x.to(memory_format=torch.channels_last))
