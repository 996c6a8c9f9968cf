# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What eager PyTorch raises is raised, on every call, and nothing else is."""

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


def outcome(function, args):
    """The result, or the type of what is raised."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def check(function, *calls):
    """Every call against eager, three times in turn."""
    compiled = weft.compile(function)
    for args in calls:
        for _ in range(3):
            expected, found = outcome(function, args), outcome(compiled, args)
            if isinstance(expected, type):
                assert found is expected, args
            else:
                torch.testing.assert_close(found, expected, equal_nan=True)
    return compiled


MATRIX, VECTOR, WEIGHTS = torch.randn(2, 5), torch.randn(2), torch.randn(4, 5)
# Of indices: two, into what they index.
INDEXED = {
    "one_hot": lambda i: F.one_hot(i, 5),
    "nll_loss": lambda i: F.nll_loss(MATRIX, i),
    "nll_loss but for one": lambda i: F.nll_loss(MATRIX, i, ignore_index=-1),
    "cross_entropy": lambda i: F.cross_entropy(MATRIX, i),
    "cross_entropy smoothed": lambda i: F.cross_entropy(MATRIX, i, label_smoothing=0.1),
    "multi_margin_loss": lambda i: F.multi_margin_loss(MATRIX, i),
    "searchsorted": lambda i: torch.searchsorted(VECTOR, VECTOR, sorter=i),
    "max_unpool1d": lambda i: F.max_unpool1d(VECTOR.view(1, 1, 2), i.view(1, 1, 2), 2),
    "max_unpool2d": lambda i: F.max_unpool2d(VECTOR.view(1, 1, 1, 2), i.view(1, 1, 1, 2), 2),
    "max_unpool3d": lambda i: F.max_unpool3d(VECTOR.view(1, 1, 1, 1, 2), i.view(1, 1, 1, 1, 2), 2),
    "embedding": lambda i: F.embedding(i, WEIGHTS, padding_idx=1),
    "embedding_bag": lambda i: F.embedding_bag(i, WEIGHTS, torch.tensor([0])),
    "take_along_dim": lambda i: torch.take_along_dim(VECTOR, i, 0),
}


@pytest.mark.parametrize("name", INDEXED)
def test_indices_out_of_range(name):
    good = (torch.tensor([0, 1]),)
    check(INDEXED[name], good, (torch.tensor([0, 99]),), good, (torch.tensor([0, -1]),))
    check(INDEXED[name], good, (torch.tensor([0, -99]),), good)


PORTIONS = [
    lambda x: F.binary_cross_entropy(x, torch.ones(2)),
    lambda x: F.binary_cross_entropy(torch.full((2,), 0.5), x, reduction="none"),
    lambda x: F.binary_cross_entropy(x.double(), torch.ones(2).double(), torch.ones(2).double()),
    lambda x: torch.quantile(torch.arange(5.0), x),
    lambda x: torch.nanquantile(torch.arange(5.0), x),
]


@pytest.mark.parametrize("number", range(len(PORTIONS)))
@pytest.mark.parametrize("bad", [1.5, -0.5, float("nan")])
def test_portions_out_of_range(number, bad):
    good = (torch.tensor([0.5, 0.25]),)
    check(PORTIONS[number], good, (torch.tensor([0.5, bad]),), good)


def test_bags_out_of_order():
    def function(offsets):
        return F.embedding_bag(torch.tensor([0, 1, 2]), WEIGHTS, offsets)

    good = (torch.tensor([0, 1, 2]),)
    check(function, good, (torch.tensor([0, 2, 1]),), good)
