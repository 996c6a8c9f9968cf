# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views by strides."""

import math
import random

import pytest
import torch
import torch.nn.functional as F
import transformers

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


def drawn_view(random):
    """(shape, permutation, sizes, strides, offset), within the memory of the permuted tensor."""
    shape = [random.randint(1, 5) for _ in range(random.randint(1, 4))]
    perm = random.sample(range(len(shape)), len(shape))
    dims = [(random.randint(1, 4), random.randint(0, 12)) for _ in range(random.randint(0, 4))]
    room = math.prod(shape) - 1 - sum((n - 1) * s for n, s in dims)
    while room < 0:
        n, s = dims.pop()
        room += (n - 1) * s
    offset = random.choice([None, random.randint(0, room)])
    return shape, perm, [n for n, _ in dims], [s for _, s in dims], offset


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(25))
def test_views_of_permuted_tensors(seed):
    shape, perm, size, stride, offset = drawn_view(random.Random(seed))

    def function(x):
        return (x + 1).permute(perm).as_strided(size, stride, offset) * 2

    x = torch.randn(shape)
    compiled = weft.compile(function)
    assert torch.equal(compiled(x), function(x))
    assert "weft.torch_fallback" not in compiled.ir("graph")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1).as_strided((20, 20), (1, 1)) * 2,
        lambda x: (x + 1).as_strided((2, 20, 20), (0, 1, 1)) * 2,
        lambda x: (x + 1).view(8, 5).t().as_strided((3, 2), (2, 5), 4) * 2,
        lambda x: (x + 1).as_strided((0, 3), (1, 1)) * 2,
        lambda x: x.view(8, 5)[2:].as_strided((3, 5), (5, 1)) * 2,
        lambda x: (
            (x + 1).as_strided_scatter(torch.zeros(3), (3,), (2,), 1) * 2
            + (x + 1).as_strided_scatter(x[:6].view(2, 3), (2, 3), (1, 5))
            + (x + 1).as_strided_scatter(x[0], (), (), 7)
            + (x + 1).as_strided_scatter(x.view(8, 1, 5), (8, 1, 5), (1, 3, 8))
            + (x + 1).as_strided_scatter(x[:6].view(2, 3), (2, 3), (1, 1))
        ),
    ],
)
def test_views(compiled_only, function):
    x = torch.randn(40)
    assert torch.equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[::2].as_strided((10, 3), (2, 1)) * 2,
        lambda x: (x + 1)[5:].as_strided((10, 3), (2, 1), 0) * 2,
        lambda x: (x + 1).view(4, 10).t().as_strided_scatter(torch.zeros(3), (3,), (2,)),
        lambda x: x.as_strided((3,), (1,), 0) * 2,
    ],
)
def test_memory_around_the_tensor(function):
    x = torch.randn(40)
    compiled = weft.compile(function, capture="export")
    assert torch.equal(compiled(x), function(x))
    assert "strides" in str(compiled.eager_reasons)


@pytest.mark.parametrize("batch", [1, 2])
def test_results_that_eager_lays_out_otherwise(batch):
    # Fake tensors say channels-last, as the argument is.
    def rolled(x):
        return x.roll(1, -1).as_strided((6,), (1,)) * 2

    def shuffled(x):
        return F.channel_shuffle(x, 2).as_strided((6,), (1,)) * 2

    x = torch.arange(batch * 60.0).view(batch, 3, 5, 4).permute(0, 3, 1, 2)
    for function in (rolled, shuffled):
        compiled = weft.compile(function)
        for _ in range(3):
            assert torch.equal(compiled(x), function(x))


def test_writes_through_windows_that_overlap():
    def function(x):
        y = x * 1
        y.as_strided((4, 3), (1, 1)).mul_(2)
        return y

    x = torch.arange(6.0)
    assert torch.equal(weft.compile(function)(x), function(x))


def test_sliding_chunks(compiled_only):
    config = transformers.LEDConfig(
        vocab_size=50,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        attention_window=8,
        use_cache=False,
    )
    model = transformers.LEDModel(config).eval()
    inputs = {
        "input_ids": torch.randint(3, 50, (1, 30)),
        "decoder_input_ids": torch.ones(1, 4).long(),
    }
    expected = model(**inputs)  # and a warning, which is given once
    found = weft.compile(model)(**inputs)
    torch.testing.assert_close(
        found.last_hidden_state, expected.last_hidden_state, rtol=1e-4, atol=1e-5
    )
