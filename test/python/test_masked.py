# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that a mask chooses: compiled where what is done with them needs no number of them."""

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")


def doubled_where_positive(x):
    y = x.clone()
    y[y > 0] = y[y > 0] * 2
    return y


def written_by_one_mask(x):
    mask = x.abs() > 0.5
    y = x + 0
    y[mask] = torch.tanh(x[mask]) + 1
    return y, mask


COMPILED = {
    "mean": lambda x: x[x > 0].mean(),
    "mean of none": lambda x: x[x > 1000].mean(),
    "sum of squares": lambda x: ((x[x > 0] - 1) ** 2).sum(),
    "of two tensors": lambda x: (x[x > 0] * x.exp()[x > 0]).sum(),
    "masked_select": lambda x: x.masked_select(x > 0).sum(),
    "rows": lambda x: x[x[:, 0] > 0].sum(0),
    "mean of rows": lambda x: x[x[:, 0] > 0].mean(),
    "not the others": lambda x: x[~(x > 0)].sum(),
    "integers": lambda x: (x * 10).long()[x > 0].sum(),
    "counted by Python": lambda x: x[x > 0].numel() + x,
    "behind a dim": lambda x: x[:, x[0] > 0].sum(),
    "two masks": lambda x: x[x > 0].exp().sum() + x[x <= 0].max(),
    "beside a scalar": lambda x: (x[x > 0] / x.sum()).sum(),
    "doubled in place": doubled_where_positive,
    "by one mask": written_by_one_mask,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name, dtype):
    function = COMPILED[name]
    compiled = weft.compile(function)
    for _ in range(4):  # other numbers of elements each time
        x = torch.randn(6, 16, dtype=dtype)
        torch.testing.assert_close(compiled(x), function(x), equal_nan=True)
    stats = weft.stats(compiled)
    assert stats["hits"] >= 3 and not stats["breaks"], stats


def infinite_outside(x):
    return (1 / x[x > 0]).sum()


def test_the_others_do_not_count():
    compiled = weft.compile(infinite_outside)
    x = torch.tensor([2.0, 0.0, -1.0, 4.0])
    for _ in range(3):
        assert compiled(x).item() == 0.75


def unread(x):
    doubled = F.conv1d(x, torch.ones(6, 6, 3)) * 2
    x.add_(0)
    doubled.clone().index_put((doubled > 0,), doubled[doubled > 0] * 2)
    return doubled


LEFT = {
    "unread": unread,
    "two masks": lambda x: (x[x > 0] + x[x >= 0]).sum() * 0,
    "complex ones": lambda x: (x * 1j)[x > 0].sum(),
    "places of complex ones": lambda x: (x * 1j).nonzero().sum(),
    "times a complex one": lambda x: (x[x > 0] * 1j).abs().sum(),
    "a range": lambda x: torch.arange(x[x > 0].numel()),
    "their number": lambda x: torch.argwhere(x > 0).shape[0],
    "their number among rows": lambda x: x[x[:, 0] > 0].size(0),
    "written by another mask": lambda x: x.clone().index_put((x < 0,), x[x >= 0][:1].sum(0)),
}


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("name", LEFT)
def test_left_to_pytorch(name):
    function = LEFT[name]
    compiled = weft.compile(function, capture="export")
    for _ in range(3):
        x = torch.randn(6, 16)
        torch.testing.assert_close(compiled(x), function(x), equal_nan=True)
    breaks = weft.stats(compiled)["breaks"]
    assert breaks and not any("compilation failed" in each for each in breaks), breaks
