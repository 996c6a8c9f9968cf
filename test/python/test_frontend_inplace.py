# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops: which ones their out-of-place forms stand for, and that values stay right."""

import pytest
import torch

import weft
from weft.frontend.inplace import mutates_beyond, out_of_place

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def chain(x):
    y = x @ x.t()
    y.relu_().add_(1)
    return y.mul_(2).flatten()


def view_before_the_write(x):
    y = x + 1
    row = y[0]
    y.mul_(2)
    return row + 1


def pieces_before_the_write(x):
    y = x + 1
    pieces = y.split(1)
    y.mul_(2)
    return pieces[0] + pieces[1]


def write_through_a_view(x):
    y = x + 1
    y[0].mul_(3)
    return y + 0


def argument(x):
    x.mul_(2)
    return x + 1


def promoted(x):
    y = x + 1
    y.add_(torch.ones(3, dtype=torch.float64))
    return y * 2


def view_after_the_write(x):
    y = (x + 1).mul_(2)
    return y.view(-1) + y.t().reshape(-1)


@pytest.mark.parametrize(
    ("function", "simple"),
    [
        (chain, True),
        (view_after_the_write, True),
        (view_before_the_write, False),
        (pieces_before_the_write, False),
        (write_through_a_view, False),
        (argument, False),
        (promoted, False),
    ],
)
def test_writes(function, simple):
    class Root(torch.nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.randn(3, 3)
    graph = torch.export.export(Root(), (x.clone(),), strict=False).graph
    assert mutates_beyond(graph) is not simple
    compiled = weft.compile(function)
    for _ in range(2):
        mine, theirs = x.clone(), x.clone()
        torch.testing.assert_close(compiled(mine), function(theirs))
        torch.testing.assert_close(mine, theirs)


def test_out_of_place_forms():
    aten = torch.ops.aten
    assert out_of_place(aten.relu_.default) is aten.relu.default
    assert out_of_place(aten.add_.Tensor) is aten.add.Tensor
    for op in (aten.relu.default, aten.add.out, aten.index_put.default):
        assert out_of_place(op) is None
