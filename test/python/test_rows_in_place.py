# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and softmax whose result lies where the tensor did that they reduce, row by row."""

import pytest
import torch
from processor import ISAS
from torch import nn
from torch.nn import functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only", "own_threads")


class Rows(nn.Module):
    """A tensor that nobody else reads, what is done to its rows, and who reads that."""

    def __init__(self, width: int, rows) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(64, width), nn.Linear(width, 24)
        self.rows = rows

    def forward(self, x):
        return self.after(self.rows(self.before(x)))


def centred(x):
    return x - x.mean(-1, keepdim=True)


def by_columns(x):
    return x.softmax(-2)


CASES = {
    "layer norm in blocks": (128, 96, lambda x: F.layer_norm(x, (96,))),
    "layer norm in rows": (7, 301, lambda x: F.layer_norm(x, (301,))),
    "layer norm of odd blocks": (197, 130, lambda x: F.layer_norm(x, (130,))),
    "softmax": (33, 77, lambda x: x.softmax(-1)),
    "log softmax": (50, 1000, lambda x: x.log_softmax(-1)),
    "softmax of columns": (60, 48, by_columns),
    "centred": (9, 40, centred),
    "square, by columns": (48, 48, by_columns),
    "square, by rows": (48, 48, centred),
    "rows less columns": (48, 48, lambda x: x - x.mean(-1).unsqueeze(-2)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", CASES)
def test_rows_are_as_exact_as_eager_ones(name, isa):
    tokens, width, rows = CASES[name]
    torch.manual_seed(0)
    module, x = Rows(width, rows).eval(), torch.randn(2, tokens, 64)
    compiled = weft.compile(module, threads=3, isa=isa)
    results = []
    for threads in (1, 2, 3):
        weft.set_num_threads(threads)
        results.append(compiled(x).clone())
    eager, exact = module(x), module.double()(x.double())
    assert all(torch.equal(result, results[0]) for result in results)
    assert (results[0] - exact).abs().max() <= 2 * (eager - exact).abs().max() + 1e-6


def test_a_layer_norm_takes_the_place_of_what_it_reads():
    module = Rows(96, lambda x: F.layer_norm(x, (96,))).eval()
    compiled = weft.compile(module)
    compiled(torch.randn(2, 128, 64))
    assert "weft.in_place" in compiled.ir("loops")
