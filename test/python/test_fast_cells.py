# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The snippets of docs/fast-cells.md run, and the cells they define give PyTorch's values."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pages import blocks, run
from training_cases import assert_same, gradients

import weft

PAGE = Path(__file__).parents[2] / "docs" / "fast-cells.md"
CELLS = {
    "LSTM": (5, 7, 4),
    "GRU": (5, 7, 3),
    "LayerNormLSTM": (5, 7),
    "MinGRU": (5, 7, 2),
    "SLSTM": (5, 7, 4),
    "StateSpace": (5,),
    "ParallelStateSpace": (5,),
}


@pytest.fixture(scope="module")
def names() -> dict:
    torch.manual_seed(0)
    assert len(blocks(PAGE)) >= 7
    names = {"__name__": "fast_cells"}
    run(PAGE, names)
    return names


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CELLS)
def test_cells(names, name):
    net = names[name](*CELLS[name]).double()
    xs = torch.randn(12, 3, 5, dtype=torch.float64)
    compiled = weft.compile(net)
    with torch.no_grad():
        torch.testing.assert_close(compiled(xs), net(xs), rtol=1e-12, atol=1e-12)
    loops = compiled.ir("kernels").count("weft.loop @")
    assert loops == (0 if "StateSpace" in name else 1)  # few steps of elementwise work are one
    wanted = [xs.requires_grad_(), *net.parameters()]
    expected = gradients(lambda *_: net(xs), wanted)
    assert_same(gradients(lambda *_: compiled(xs), wanted), expected, 1e-10)
    assert not weft.stats(compiled)["breaks"]


def test_both_state_spaces_agree(names):
    net = names["StateSpace"](5).double()
    twin = names["ParallelStateSpace"](5).double()
    twin.load_state_dict(net.state_dict())
    for steps in (1, 2, 17):
        xs = torch.randn(steps, 1, 5, dtype=torch.float64)
        torch.testing.assert_close(net(xs), twin(xs), rtol=1e-12, atol=1e-12)
