# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that follow from data: what Python reads of them is compared again in each call."""

import pytest
import torch

import weft

COUNTS = {
    "nonzero": lambda x: x.gt(0).nonzero().shape[0],
    "nonzero_as_tuple": lambda x: x.gt(0).nonzero(as_tuple=True)[0].numel(),
    "where": lambda x: torch.where(x > 0)[0].numel(),
    "argwhere": lambda x: torch.argwhere(x > 0).size(0),
    "masked_select": lambda x: torch.masked_select(x, x > 0).size()[0],
    "mask": lambda x: x[x > 0].numel(),
    "mask_of_rows": lambda x: x[:, 1:][x[:, 0] > 0].shape[0],
    "length": lambda x: len(x[x > 0]),
    "unique": lambda x: torch.unique(x.round()).numel(),
    "unique_consecutive": lambda x: torch.unique_consecutive(x.round()).nelement(),
    "bincount": lambda x: torch.bincount((x[:, 0].abs() * 3).long()).numel(),
    "repeat_interleave": lambda x: torch.repeat_interleave(
        torch.arange(4), (x[:, 0] > 0).long()
    ).numel(),
    "slice_by_tensor": lambda x: x.flatten()[: (x > 0).sum()].numel(),
    "zeros_by_tensor": lambda x: x.new_zeros((x > 0).sum()).numel(),
    "arange_by_tensor": lambda x: torch.arange((x > 0).sum()).numel(),
    "of_a_result": lambda x: (torch.cat([x[x > 0], x[0]]) * 2).unsqueeze(0).shape[-1],
    "stride": lambda x: x[:, 0][x[:, 0] > 0].outer(x[0][x[0] > 0]).stride(0),
    "into_given": lambda x: torch.nonzero(x > 0, out=torch.empty(0, dtype=torch.int64)).shape[0],
    "overload": lambda x: torch.ops.aten.nonzero.default(x > 0).shape[0],
}


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[x > 0] * 2

    @staticmethod
    def backward(ctx, g):
        return torch.zeros(4, 8)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("capture", [None, "observe"])
@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_the_call(name, capture):
    def f(x):
        return x + COUNTS[name](x)

    compiled = weft.compile(f) if capture is None else weft.compile(f, capture=capture)
    with torch.no_grad():
        for x in torch.randn(4, 4, 8):
            for _ in range(2):
                assert torch.equal(compiled(x), f(x))
    stats = weft.stats(compiled)
    assert stats["hits"] and not stats["breaks"], stats


def test_counts_of_functions_with_their_own_backward():
    def f(x):
        return x + Counting.apply(x).shape[0]

    compiled = weft.compile(f, capture="observe")
    for _ in range(6):
        x = torch.randn(4, 8, requires_grad=True)
        assert torch.equal(compiled(x), f(x))


def test_sizes_that_no_data_decides_are_not_compared():
    """A reshape by the sizes of a product has one program for all values."""
    compiled = weft.compile(lambda x: (x @ x.T).reshape(x.shape[0], -1) * 2, capture="observe")
    for _ in range(4):
        x = torch.randn(4, 8)
        torch.testing.assert_close(compiled(x), (x @ x.T) * 2)
    assert weft.stats(compiled)["graphs"] == 1
