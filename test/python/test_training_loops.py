# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of recurrent modules and of loops over time, by scans in the other direction."""

import re
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from agreeing import check_replayed
from test_rolled_loops import ALL, HigherOrderScan, LayerNormLSTM
from torch import nn
from training_cases import assert_same, gradients

import weft

MODULES = [
    nn.LSTM(5, 7, 2, bidirectional=True),
    nn.LSTM(5, 7, proj_size=3),
    nn.GRU(5, 7, batch_first=True),
    nn.RNN(5, 7, nonlinearity="relu"),
    nn.RNN(5, 7, 2, bias=False),
]


@pytest.fixture(autouse=True)
def compare_first_calls(verified):
    """Each backward is compared with PyTorch's, too."""


def gradients_of(call, module: nn.Module, x: torch.Tensor) -> list[torch.Tensor | None]:
    """Of the first result of `call`, by x and the parameters of the module."""

    def function(x, *_):
        result = call(x)
        return result if isinstance(result, torch.Tensor) else result[0]

    return gradients(function, [x, *module.parameters()])


def check_gradients(module: nn.Module, x: torch.Tensor, tolerance: float):
    x.requires_grad_()
    expected = gradients_of(module, module, x)
    compiled = weft.compile(module)
    gradients_of(compiled, module, x)
    found = gradients_of(compiled, module, x)
    check_replayed(compiled)
    assert_same(found, expected, tolerance)
    return compiled


@pytest.mark.sampled(2)
@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules(module):
    check_gradients(module.double(), torch.randn(11, 3, 5, dtype=torch.float64), 1e-10)


@pytest.mark.parametrize("steps", [1, 2, 17])
def test_lengths(steps):
    check_gradients(nn.LSTM(5, 7), torch.randn(steps, 1, 5), 1e-4)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ALL)
def test_loops(kind):
    check_gradients(kind().double(), torch.randn(11, 3, 5, dtype=torch.float64), 1e-10)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reverse", [False, True])
def test_higher_order_scans(reverse):
    x = torch.randn(11, 3, 5, dtype=torch.float64)
    check_gradients(HigherOrderScan(reverse).double(), x, 1e-10)


def test_artifacts_do_not_grow_with_the_number_of_steps():
    lstm, sizes = nn.LSTM(5, 7), []
    for steps in (10, 400):  # the code of a product varies with its size, too
        compiled = check_gradients(lstm, torch.randn(steps, 3, 5), 1e-3)
        sizes.append(sum(Path(path).stat().st_size for path in compiled.artifact_paths))
    assert sizes[1] <= 1.5 * sizes[0], sizes


@pytest.mark.parametrize("steps", [11, 30])
def test_gradients_of_weights_are_no_states(steps):
    """Of those that a step reads and of those that have left it."""
    net = LayerNormLSTM().double()
    compiled = check_gradients(net, torch.randn(steps, 3, 5, dtype=torch.float64), 1e-10)
    (given,) = re.findall(
        r"weft.loop @step .* carry\(([^)]*)\)", compiled.ir("kernels", "backward")
    )
    assert len(given.split(",")) == 2, given  # of the hidden state and the cell


@pytest.mark.parametrize("module", [nn.GRU(5, 7), ALL[0]()], ids=lambda m: type(m).__name__)
def test_training(module):
    """40 steps of a predictor of the next element."""
    torch.manual_seed(0)
    net = nn.ModuleList([module, nn.Linear(7, 5)])
    twin = deepcopy(net)
    xs = torch.sin(torch.arange(60).reshape(12, 1, 5) / 7.0) + 0.01 * torch.randn(12, 2, 5)
    losses = []
    for nets, run in ((net, weft.compile(net[0])), (twin, twin[0])):
        optimizer = torch.optim.Adam(nets.parameters(), lr=1e-2)
        for _ in range(40):
            optimizer.zero_grad()
            loss = (nets[1](run(xs[:-1])[0]) - xs[1:]).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=2e-2), losses
