# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of as many rows as data say: the caller gets eager execution's tensors, strides too."""

import pytest
import torch
from torch.utils import _pytree as pytree

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")


def table_and_column(x):
    places = (x > 0).nonzero()
    return places, places[:, 0]


def returned_twice(x):
    places = (x > 0).nonzero()
    return places, places


def by_sign(x):
    row = x[0] * 2
    return row[row > 0], row[row <= 0]


def three_dims(x):
    return (x.reshape(2, 3, 11) > 0).nonzero()


COMPILED = {
    "x[mask]": lambda x: x[x > 0],
    "rows": lambda x: x[x[:, 0] > 0],
    "columns": lambda x: x[:, x[0] > 0],
    "columns in the middle": lambda x: x.unsqueeze(-1)[:, x[0] > 0].exp(),
    "masked_select": lambda x: torch.masked_select(x * 2, x > 0) + 1,
    "turned": lambda x: x.t()[x.t() > 0],
    "two choices": lambda x: (x[x > 0], x[x < 0].abs()),
    "two masks of one tensor": by_sign,
    "rows and columns": lambda x: (x[x[:, 0] > 0], x[:, x[0] > 0]),
    "written": lambda x: x[x > 0].add_(1),
    "nonzero": lambda x: (x > 0).nonzero(),
    "nonzero numbers": lambda x: x.relu().nonzero(),
    "nonzero of three dims": three_dims,
    "argwhere": lambda x: torch.argwhere(x > 0.5),
    "where": lambda x: torch.where(x > 0),
    "as_tuple": lambda x: x[0].gt(0).nonzero(as_tuple=True),
    "flattened": lambda x: torch.flatten(x > 0).nonzero().flatten(),
    "table and column": table_and_column,
    "returned twice": returned_twice,
    "x[where]": lambda x: x[torch.where(x[:, 0] > 0)[0]] * 2,
    "x[i, j]": lambda x: x[torch.where(x > 0)],
    "index_select": lambda x: x.index_select(0, (x[:, 1] > 0).nonzero().squeeze(1)),
    "softmax of rows": lambda x: x[x[:, 0] > 0].softmax(-1),
    "sums of rows": lambda x: x[x[:, 0] > 0].sum(1),
    "extremes of rows": lambda x: x[x[:, 0] > 0].max(1),
    "spread": lambda x: (x[x > 0].std(), x[x > 0].var(correction=0)),
    "number": lambda x: x / x[x > 0].shape[0],
    "unique": lambda x: torch.unique((x * 2).round()),
    "unique, all": lambda x: torch.unique((x * 2).round(), True, True, True),
    "unique bools": lambda x: torch.unique(x > 0, return_inverse=True),
    "unique integers": lambda x: torch.unique((x * 3).int(), return_counts=True),
    "unique of nan": lambda x: torch.unique(torch.where(x > 1, torch.nan, x.round())),
    "consecutive": lambda x: torch.unique_consecutive(x[0].round(), True, True),
}


def same(found, expected):
    """Values, sizes, strides, and which results share memory."""
    found, expected = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    assert len(found) == len(expected)
    for own, eager in zip(found, expected):
        torch.testing.assert_close(own, eager, equal_nan=True)
        assert own.stride() == eager.stride() and own.storage_offset() == eager.storage_offset()
        assert own.untyped_storage().nbytes() <= eager.untyped_storage().nbytes()
    shared = [[a.untyped_storage().data_ptr() for a in each] for each in (found, expected)]
    assert [[a == b for a in row for b in row] for row in shared[:1]] == [
        [a == b for a in row for b in row] for row in shared[1:]
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name, dtype):
    function = COMPILED[name]
    compiled = weft.compile(function)
    for _ in range(4):  # other numbers of elements each time
        x = torch.randn(6, 11).to(dtype)
        same(compiled(x), function(x))
    stats = weft.stats(compiled)
    assert stats["hits"] >= 3 and not stats["breaks"], stats


@pytest.mark.parametrize("name", ["x[mask]", "rows", "columns", "nonzero", "where", "x[i, j]"])
def test_none_and_all(name):
    function = COMPILED[name]
    compiled = weft.compile(function)
    for x in (torch.randn(6, 11), torch.full((6, 11), -1.0), torch.ones(6, 11)):
        same(compiled(x), function(x))
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and stats["graphs"] == 1 and not stats["breaks"], stats


def test_the_extreme_of_none_is_refused():
    compiled = weft.compile(lambda x: x[x > 0].max())
    assert compiled(torch.ones(3)) == compiled(torch.ones(3)) == 1
    with pytest.raises(RuntimeError, match="Expected reduction dim to be specified"):
        compiled(-torch.ones(3))


@pytest.mark.parametrize("size", [1, 2, 17, 1000])
def test_results_are_in_order(size):
    compiled = weft.compile(lambda x: (x[x > 0], (x > 0).nonzero()))
    for _ in range(3):
        x = torch.randn(size)
        same(compiled(x), (x[x > 0], (x > 0).nonzero()))


LEFT = {
    "gaps": (lambda x: x[x[:, 0] > 0][:, :2], "gaps between them"),
    "linear": (lambda x: torch.nn.functional.linear(x[x[:, 0] > 0], x), "depends on data"),
    "bincount": (lambda x: torch.bincount(x[0].abs().long()), "depends on data"),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_to_pytorch(name):
    function, reason = LEFT[name]
    compiled = weft.compile(function, capture="export")
    with pytest.warns(weft.errors.WeftWarning, match=reason):
        x = torch.randn(6, 11)
        same(compiled(x), function(x))
