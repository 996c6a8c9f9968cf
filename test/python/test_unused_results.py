# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of one result beside another whose slope is no number: the program has zeros as the
cotangents of what nobody uses, so that PyTorch differentiates the graph's meaning."""

import math

import pytest
import torch
import torch.nn.functional as F

import weft

NAN = math.nan
ROWS = [[1.0, -2.0, 3.0, 3.0], [NAN, 1.0, NAN, -1.0], [-0.5, 0.25, 0.0, -math.inf]]
INDEX = torch.tensor([[0, 1, 1, 0], [3, 3, 3, 3], [2, 0, 2, 1]])
USED = {
    "scatter": lambda x, y: x.scatter(1, INDEX, y),
    "scatter_add": lambda x, y: x.scatter_add(1, INDEX, y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(1, INDEX, y, "amax"),
    "index_put": lambda x, y: x.index_put((torch.tensor([0, 0]),), y[:2]),
    "max of all": lambda x, y: x.max() * y,
    "median of all": lambda x, y: x.median() * y,
    "max of rows": lambda x, y: x.max(1).values * y.sum(1),
    "amax": lambda x, y: (x * y)[::2].amax(1),
    "pool": lambda x, y: F.max_pool1d(x * y, 2, 1),
    "adaptive pool": lambda x, y: F.adaptive_max_pool1d(x * y, 2),
    "running extremum": lambda x, y: (x * y).cummax(1).values,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", USED)
def test_the_gradients_of_one_result_are_those_of_eager(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")

    def both(x, y):
        return USED[name](x, y), (x * y).sqrt()

    def run(call):
        x, y = torch.tensor(ROWS).requires_grad_(), torch.full((3, 4), 0.5).requires_grad_()
        used, _ = call(x, y)
        return [used.detach(), *torch.autograd.grad(used, (x, y), torch.ones_like(used))]

    expected, compiled = run(both), weft.compile(both)
    for _ in range(2):
        for mine, theirs in zip(run(compiled), expected, strict=True):
            torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert not weft.stats(compiled)["breaks"]
