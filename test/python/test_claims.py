# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose threads claim parts: the same bits whoever computes what, call after call."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

IN_BY_OUT, OUT_BY_IN = torch.randn(768, 1536), torch.randn(768, 2304)
CASES = {
    "rows": (nn.Linear(768, 1536), (1, 128, 768)),
    "blocks": (nn.Linear(768, 1536), (1, 256, 768)),
    "strips": (lambda x: F.linear(x, OUT_BY_IN) @ IN_BY_OUT, (1, 128, 2304)),
    "blocks of strips": (lambda x: F.linear(x, OUT_BY_IN) @ IN_BY_OUT, (1, 512, 2304)),
    "columns": (lambda x: x @ IN_BY_OUT, (1, 64, 768)),
    "panels": (nn.Conv2d(512, 256, 1), (1, 512, 7, 7)),
    "winograd": (nn.Conv2d(64, 128, 3, padding=1), (1, 64, 28, 28)),
    "batches": (lambda x: x @ x.mT, (24, 96, 128)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), (1, 8, 300, 64)),
    "nest": (lambda x: (x.exp() * x).softmax(-1), (700, 500)),
    "dots": (nn.Linear(2048, 2048), (1, 2048)),
}


@pytest.fixture(autouse=True)
def same_threads(monkeypatch, own_threads):
    # What threads divide follows the caches: these, whatever the host has.
    monkeypatch.setenv("WEFT_CPU_CACHES", "48K,1M")


def compiled_case(name: str):
    torch.manual_seed(0)
    function, shape = CASES[name]
    x = torch.randn(shape)
    compiled = weft.compile(function, threads=7)
    weft.set_num_threads(1)
    expected = compiled(x).clone()
    of_two = weft.compile(function, threads=2)  # which larger teams divide otherwise
    of_two(x)
    loops = of_two.ir("loops")
    assert "memref.atomic_rmw" in loops
    if name in ("blocks", "strips", "blocks of strips"):
        assert "arith.maxui" in loops  # rows of a block or strip begin with it, or with the part
    return compiled, x, expected


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_call_after_call(name: str) -> None:
    compiled, x, expected = compiled_case(name)
    for threads in (2, 3, 1, 7, 2):
        weft.set_num_threads(threads)
        for _ in range(15):
            assert torch.equal(compiled(x), expected), threads


def test_calls_at_once() -> None:
    """Each has an arena, and so counters, of its own."""
    compiled, x, expected = compiled_case("rows")
    weft.set_num_threads(2)
    wrong: list[int] = []

    def work() -> None:
        with torch.no_grad():
            wrong.extend(i for i in range(40) if not torch.equal(compiled(x), expected))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
