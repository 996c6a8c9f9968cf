# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of numbers, as many as are asked for; calls with larger numbers are PyTorch's."""

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

TYPES = [torch.int64, torch.int32, torch.uint8]
WEIGHTS = [None, torch.float32, torch.float64, torch.int64, torch.bfloat16]


@pytest.fixture
def unverified(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [0, 1, 300])
@pytest.mark.usefixtures("unverified")
def test_counts_are_pytorchs(size, dtype, weights):
    torch.manual_seed(0)
    x = torch.randint(0, 7, (2 * size,)).to(dtype)[::2]
    given = [] if weights is None else [(torch.randn(size) * 9).to(weights)]

    def count(x, *weights):
        return torch.bincount(x, *weights, minlength=7)

    compiled = weft.compile(count, capture="export")
    found, expected = compiled(x, *given), count(x, *given)
    torch.testing.assert_close(found, expected)
    assert found.dtype == expected.dtype and not compiled.eager_reasons


@pytest.mark.usefixtures("unverified")
def test_numbers_beyond_the_counts_are_pytorchs():
    def count(x):
        counts = torch.bincount(x, minlength=5)
        return counts * counts.shape[0], list(counts.shape)

    compiled = weft.compile(count)
    for low, high in ((0, 5), (0, 5), (3, 9), (0, 5), (6, 7), (0, 1)):
        x = torch.randint(low, high, (40,))
        x[0] = high - 1
        (found, sizes), (expected, wanted) = compiled(x), count(x)
        assert torch.equal(found, expected) and sizes == wanted
    with pytest.raises(RuntimeError, match="non-negative"):
        compiled(torch.tensor([0, -1] * 20))
    assert weft.stats(compiled)["hits"] >= 3


@pytest.mark.usefixtures("verified")
def test_rows_of_other_lengths_are_counted_by_one_program():
    def count(x):
        return torch.bincount(x.flatten(), minlength=6) / x.numel()

    compiled = weft.compile(count, shapes={"x": {1: weft.Range(2, 16)}})
    for length in (12, 9, 14, 2, 16):
        x = torch.randint(0, 6, (3, length))
        torch.testing.assert_close(compiled(x), count(x))
    stats = weft.stats(compiled)
    assert stats["graphs"] == 1 and sum(stats["ranges"].values()) == 4


def test_experts_are_counted_within_a_program():
    gate, experts = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

    def balance(x):
        chosen = gate(x).topk(2).indices
        load = torch.bincount(chosen.flatten(), minlength=4) / chosen.numel()
        return (gate(x).softmax(-1).mean(0) * load).sum() + experts(x).mean()

    compiled = weft.compile(balance, capture="export")
    with torch.enable_grad():
        for _ in range(3):
            x = torch.randn(32, 8, requires_grad=True)
            found, expected = (torch.autograd.grad(f(x), x)[0] for f in (compiled, balance))
            torch.testing.assert_close(found, expected)
    assert weft.stats(compiled)["hits"] and not compiled.eager_reasons
