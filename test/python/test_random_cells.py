# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random cells in loops over time, and second derivatives through loops."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cells import BINARY, UNARY, WIDTH, RandomCell, Step
from torch import nn
from training_cases import assert_same, gradients

import weft

_NUMBERS = st.integers(0, 20)


@st.composite
def cells(draw) -> RandomCell:
    ops = st.sampled_from([*UNARY, *BINARY, "linear", "linear"])
    steps = draw(st.lists(st.builds(Step, ops, _NUMBERS, _NUMBERS), min_size=2, max_size=7))
    states = draw(st.integers(1, 3))
    after = draw(st.lists(_NUMBERS, min_size=states, max_size=states))
    return RandomCell(states, steps, after, draw(st.booleans()), draw(st.booleans()))


def check(cell: RandomCell, steps: int, batch: int) -> None:
    """Values to 1e-12 and gradients to 1e-10."""
    torch.manual_seed(0)
    cell = cell.double()
    xs = torch.randn(steps, batch, WIDTH, dtype=torch.float64)
    compiled = weft.compile(cell)
    with torch.no_grad():
        assert_same(list(compiled(xs)), list(cell(xs)), 1e-12)
    wanted = [xs.requires_grad_(), *cell.parameters()]
    expected = gradients(lambda *_: cell(xs), wanted)
    assert_same(gradients(lambda *_: compiled(xs), wanted), expected, 1e-10)
    assert not weft.stats(compiled)["breaks"]


@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
@given(cells(), st.sampled_from([10, 13]), st.sampled_from([1, 3]))
def test_cells(cell, steps, batch):
    check(cell, steps, batch)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.recall = nn.Linear(3, 3)

    def forward(self, xs, hidden):
        outputs = []
        for x in xs.unbind(0):
            hidden = torch.tanh(self.recall(hidden) * x + x)
            outputs.append(hidden)
        return torch.stack(outputs), hidden


@pytest.mark.sampled(2)
@pytest.mark.parametrize("net", [Loop(), nn.GRU(3, 3)], ids=lambda net: type(net).__name__)
def test_second_derivatives(net):
    compiled = weft.compile(net.double())
    hidden = [2, 3] if isinstance(net, Loop) else [1, 2, 3]
    inputs = [
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ([9, 2, 3], hidden)
    ]
    assert torch.autograd.gradcheck(compiled, inputs)
    assert torch.autograd.gradgradcheck(compiled, inputs)
    assert not weft.stats(compiled)["breaks"]
