# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of awkward sizes: every tail of the register tile and of the summation."""

import pytest
import torch
from counting import latest, programs

import weft

ROWS = [1, 2, 3, 15, 16, 17, 64, 65, 130]
# 268 and 388 have no divisor that is whole steps of the unrolled loop near 256.
DEPTHS = [1, 7, 64, 100, 268, 388, 1100, 1793, 3072]
WIDTHS = [1, 10, 33]


class Linears(torch.nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(depth, width) for width in WIDTHS)

    def forward(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [layer(x) for x in inputs for layer in self.layers]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("depth", DEPTHS)
def test_linear(depth: int) -> None:
    torch.manual_seed(depth)
    module = Linears(depth).eval()
    inputs = [torch.randn(rows, depth) for rows in ROWS]
    compiled = weft.compile(module)
    with torch.no_grad():
        results = compiled(inputs)
        # Threads that shared a tile would disagree sooner or later.
        for _ in range(20):
            again = compiled(inputs)
            assert all(torch.equal(a, b) for a, b in zip(again, results, strict=True))
        eager = module(inputs)
        exact = module.double()([x.double() for x in inputs])
    assert programs(compiled) == 1
    for ours, theirs, twin in zip(results, eager, exact, strict=True):
        error = (ours - twin).abs().max()
        assert error <= 2 * (theirs - twin).abs().max() + 1e-6


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.parametrize(
    "tokens, depth, width",
    [
        (10, 768, 515), (17, 768, 515), (33, 1040, 515), (50, 3072, 515), (7, 5000, 515),
        (130, 800, 515), (10, 768, 1403), (17, 768, 1403), (33, 1040, 1403), (21, 3072, 515),
    ],
)  # fmt: skip
def test_one_layer_of_few_tokens(tokens: int, depth: int, width: int, isa: str) -> None:
    torch.manual_seed(tokens)
    module = torch.nn.Sequential(torch.nn.Linear(depth, width), torch.nn.GELU()).eval()
    x = torch.randn(2, tokens, depth)
    with torch.no_grad():
        results = [weft.compile(module, threads=n, isa=isa)(x) for n in (1, 2)]
        eager, twin = module(x), module.double()(x.double())
    assert torch.equal(*results)
    assert (results[0] - twin).abs().max() <= 2 * (eager - twin).abs().max()


@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.parametrize("rows, depth", [(5, 21), (9, 21), (16, 50), (23, 7), (37, 130)])
def test_rows_and_columns_keep_to_themselves(rows: int, depth: int, isa: str) -> None:
    torch.manual_seed(rows)
    layer = torch.nn.Linear(depth, 53)
    x = torch.randn(rows, depth)
    with torch.no_grad():
        x[rows // 2] = float("nan")
        layer.weight[10:20] = float("inf")
        expected = layer(x)
        found = weft.compile(layer, isa=isa)(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.parametrize("tokens", [5, 20, 50, 77, 100, 197])
@pytest.mark.parametrize("images", [1, 3])
def test_tokens_that_do_not_fill_their_blocks(images: int, tokens: int, isa: str) -> None:
    torch.manual_seed(tokens)
    layers = [torch.nn.Linear(160, 1700), torch.nn.GELU(), torch.nn.Linear(1700, 160)]
    module = torch.nn.Sequential(*layers, torch.nn.LayerNorm(160)).eval()
    x = torch.randn(images, tokens, 160)
    with torch.no_grad():
        compiled = [weft.compile(module, threads=n, isa=isa) for n in (1, 2)]
        results = [each(x) for each in compiled]
        # What lanes of padding are left with does not reach a result.
        assert torch.equal(compiled[0](x * float("nan")).isnan().all(), torch.tensor(True))
        assert torch.equal(compiled[0](x), results[0])
        eager, twin = module(x), module.double()(x.double())
    assert torch.equal(*results)
    assert (results[0] - twin).abs().max() <= 2 * (eager - twin).abs().max() + 1e-6


class Projections(torch.nn.Module):
    """x @ W with W as (in, out): row-major tokens, a page between the steps of a sum."""

    def __init__(self, depth: int, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.into = torch.nn.Parameter(torch.randn(depth, width, dtype=dtype) / depth**0.5)
        self.back = torch.nn.Parameter(torch.randn(width, 600, dtype=dtype) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x @ self.into) @ self.back


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "tokens, depth, width", [(16, 512, 513), (64, 1030, 257), (200, 770, 1000)]
)
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_weights_stored_as_in_by_out(
    tokens: int, depth: int, width: int, dtype, isa: str, monkeypatch
) -> None:
    monkeypatch.setenv("WEFT_CPU_CACHES", "32K,256K,32M")  # which keep no packed weights
    torch.manual_seed(depth)
    module = Projections(depth, width, dtype).eval()
    x = torch.randn(1, tokens, depth, dtype=dtype)
    results = []
    with torch.no_grad():
        for threads in (1, 2):
            compiled = weft.compile(module, threads=threads, isa=isa)
            results.append(compiled(x))
            assert all(torch.equal(compiled(x), results[0]) for _ in range(20))
        assert "relayout" not in compiled.ir("optimized")
        eager, twin = module(x), module.double()(x.double())
    assert (results[1] - twin).abs().max() <= 2 * (eager - twin).abs().max() + 1e-14


def test_flattened_images_are_read_where_they_lie() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(1568, 10)]
    module = torch.nn.Sequential(*layers).eval()
    x = torch.rand(64, 16, 7, 7)
    compiled = weft.compile(module)
    with torch.no_grad():
        result, eager, twin = compiled(x), module(x), module.double()(x.double())
    *_, last = latest(compiled).manifest["entries"]["main"]["calls"]
    assert "rows" in last["schedule"]  # register tiles, not a loop nest
    assert (result - twin).abs().max() <= 2 * (eager - twin).abs().max()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize(
    "channels, outputs, window, stride, size",
    [(512, 512, 3, 1, 7), (512, 96, 3, 2, 14), (1024, 130, 1, 1, 7), (320, 96, 5, 1, 5)],
)
def test_convolution_of_deep_images(
    channels: int, outputs: int, window: int, stride: int, size: int, isa: str
) -> None:
    """Weights that come from memory, fetched ahead, and windows whose rows are chunks."""
    torch.manual_seed(channels)
    conv = torch.nn.Conv2d(channels, outputs, window, stride, window // 2)
    module = torch.nn.Sequential(conv, torch.nn.ReLU()).eval()
    x = torch.randn(2, channels, size, size)
    with torch.no_grad():
        results = [weft.compile(module, threads=n, isa=isa)(x) for n in (1, 2)]
        eager, twin = module(x), module.double()(x.double())
    assert torch.equal(*results)
    assert (results[0] - twin).abs().max() <= 2 * (eager - twin).abs().max()
