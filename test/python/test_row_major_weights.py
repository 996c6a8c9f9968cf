# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights as (in, out): read in columns beside row-major tokens, fetched ahead, or copied."""

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

ENTRY = {"fetched": "strided_prefetch", "copied": "copied_steps", "streamed": "steps_ahead"}
CASES = {
    # rows, in, out
    "fetched": [(64, 768, 768), (100, 1024, 1000), (33, 2048, 520), (150, 768, 1096)],
    "copied": [(300, 768, 768), (272, 2304, 512), (1024, 512, 1536), (271, 800, 1088)],
    "streamed": [(1, 768, 768), (1, 1027, 1000), (5, 2048, 640), (8, 520, 1290)],
}


@pytest.fixture(autouse=True)
def same_choices(monkeypatch, own_threads):
    # What is fetched or copied follows the caches: these, whatever the host has.
    monkeypatch.setenv("WEFT_CPU_CACHES", "32K,1M,32M")


def entry_of(compiled, x, w, entry: str) -> int:
    kernels = compiled.profile(x, w, repeats=1).kernels
    return max(kernels, key=lambda kernel: kernel.flops).schedule[entry]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize("way, shape", [(way, each) for way in CASES for each in CASES[way]])
def test_sums_are_as_exact_as_eager_ones_and_alike_on_all_threads(way, shape, isa):
    m, k, n = shape
    torch.manual_seed(0)
    x, w = torch.randn(m, k), torch.randn(k, n)
    compiled = weft.compile(lambda x, w: x @ w, threads=7, isa=isa)
    weft.set_num_threads(1)
    result = compiled(x, w).clone()
    if isa != "avx2" or way != "fetched":  # short runs of a step are copied for fewer rows
        of_two = weft.compile(lambda x, w: x @ w, threads=2, isa=isa)
        assert entry_of(of_two, x, w, ENTRY[way]) > 0
    expected = x.double() @ w.double()
    error = (result - expected).abs().max()
    assert error <= 2 * ((x @ w) - expected).abs().max() + 1e-5
    for threads in (2, 3, 7):
        weft.set_num_threads(threads)
        assert torch.equal(compiled(x, w), result)


def test_weights_that_no_cache_keeps_are_copied_for_few_rows():
    torch.manual_seed(0)
    weights = [torch.randn(2048, 2048) for _ in range(3)]

    def layers(x):
        for weight in weights:
            x = (x @ weight).tanh()
        return x

    x = torch.randn(48, 2048) / 45
    compiled = weft.compile(layers)
    expected = x.double()
    for weight in weights:
        expected = (expected @ weight.double()).tanh()
    torch.testing.assert_close(compiled(x).double(), expected, rtol=1e-3, atol=1e-3)
    kernels = compiled.profile(x, repeats=1).kernels
    assert all(each.schedule["copied_steps"] for each in kernels if each.flops > 10**6)


def test_an_update_in_place_is_seen():
    torch.manual_seed(0)
    x, w = torch.randn(300, 512), torch.randn(512, 1024)
    compiled = weft.compile(lambda x: x @ w)
    compiled(x)
    w.mul_(2)
    torch.testing.assert_close(compiled(x), x @ w, rtol=1e-4, atol=1e-3)
