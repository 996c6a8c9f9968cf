# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interpolation finds eager PyTorch's elements, and weighs them no less exactly."""

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

SHAPES = [(2, 3, 17), (2, 3, 7, 10), (2, 2, 4, 5, 6)]
FORMATS = {  # by rank
    3: [torch.contiguous_format],
    4: [torch.contiguous_format, torch.channels_last],
    5: [torch.contiguous_format, torch.channels_last_3d],
}
FLOATS = [
    (torch.float32, "native"),
    (torch.float32, "avx2"),
    (torch.float64, "native"),
    (torch.bfloat16, "native"),
    (torch.float16, "avx2"),
]
SCALES = [0.7, 3.0, (1.3, 1.05, 2.0)]
SIZES = [(15, 1, 9), (2, 17, 7)]


def ways(shape: tuple[int, ...]) -> list[dict]:
    """To resize images of `shape`, by factors and to sizes, some of which stay."""
    n = len(shape) - 2
    scales = [each if isinstance(each, float) else each[:n] for each in SCALES]
    sizes = [{"size": size[:n]} for size in (*SIZES, shape[2:])]
    recomputed = {"scale_factor": 1.7, "recompute_scale_factor": True}
    return [*({"scale_factor": each} for each in scales), *sizes, recomputed]


def run(functions, x: torch.Tensor, isa: str = "native") -> tuple[list, list]:
    compiled = weft.compile(lambda x: [f(x) for f in functions], isa=isa)
    for _ in range(3):
        found = compiled(x)
    assert not compiled.eager_reasons, compiled.eager_reasons
    return found, [f(x) for f in functions]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nearest(shape, dtype, mode):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    functions = [lambda x, way=way: F.interpolate(x, mode=mode, **way) for way in ways(shape)]
    for memory_format in FORMATS[len(shape)]:
        found, expected = run(functions, x.contiguous(memory_format=memory_format))
        for got, want in zip(found, expected, strict=True):
            assert torch.equal(got, want)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("dtype", "isa"), FLOATS)
@pytest.mark.parametrize("mode", ["linear", "bilinear", "trilinear", "bicubic"])
def test_weighed(mode, dtype, isa, align_corners):
    shape = SHAPES[{"linear": 0, "trilinear": 2}.get(mode, 1)]
    x = torch.randn(shape).to(dtype)
    functions = [
        lambda x, way=way: F.interpolate(x, mode=mode, align_corners=align_corners, **way)
        for way in ways(shape)
    ]
    # Eager's own errors in half precision are those of weights rounded to it.
    units = 16 if dtype in (torch.float32, torch.float64) else 4
    bound = units * torch.finfo(dtype).eps
    for got, want in zip(*run(functions, x, isa), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=bound, atol=bound * x.abs().max().item())


def test_a_dim_that_stays_is_not_scaled():
    """Whatever its factor; but infinities are multiplied by a weight of zero."""
    x = torch.arange(12.0).reshape(1, 1, 3, 4)
    x[0, 0, 1, 2] = torch.inf
    functions = [
        lambda x: F.interpolate(x, scale_factor=(1.3, 1.5), mode="bilinear"),
        lambda x: F.interpolate(x, scale_factor=1.2, mode="bilinear"),
        lambda x: F.interpolate(x, scale_factor=1.2, mode="bicubic"),
        lambda x: F.interpolate(x[0], scale_factor=1.3, mode="nearest"),
    ]
    for got, want in zip(*run(functions, x), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes(mode):
    """Are weighed in integers, by PyTorch's own kernel."""
    x = torch.randint(0, 256, (1, 3, 8, 11), dtype=torch.uint8)
    functions = [lambda x, s=s: F.interpolate(x, size=s, mode=mode) for s in ((5, 7), (19, 23))]
    for got, want in zip(*run(functions, x), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (4, 4)], ids=str)
def test_gradients_by_the_sizes_where_the_kernel_goes_by_the_scale(monkeypatch, sizes):
    """PyTorch's in three dims: of 3 elements 2.2 times become 6, it takes each twice."""
    monkeypatch.setattr(weft.config, "verify", "off")
    x, found, expected = torch.randn(1, 2, *sizes), [], []
    for mode in ("nearest", "nearest-exact"):
        for scale in (1.3, 2.2):

            def function(x, mode=mode, scale=scale):
                return F.interpolate(x, scale_factor=scale, mode=mode)

            for call, gradients in ((function, expected), (weft.compile(function), found)):
                with torch.enable_grad():
                    leaf = x.clone().requires_grad_()
                    y = call(leaf)
                    y.backward(torch.arange(float(y.numel())).reshape(y.shape))
                gradients.append(leaf.grad)
    assert list(map(torch.equal, found, expected)) == [True] * 4
