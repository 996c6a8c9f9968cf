# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cells of the literature become loops of the machine code, forward and backward."""

import pytest
import torch
from published_cells import GATED, INPUTS, QRNN, SRU
from published_memories import MEMORIES, BahdanauDecoder
from recent_cells import RECENT
from torch import nn
from training_cases import assert_same

import weft

# Elementwise ops of fewer steps are fused with each other instead.
STEPS = {SRU: 64, QRNN: 64}
LOOPS = {BahdanauDecoder: 3}


def outputs_and_gradients(call, net: nn.Module, xs: torch.Tensor) -> tuple[torch.Tensor, list]:
    """Along a cotangent that differs everywhere; what is drawn is drawn from one seed."""
    torch.manual_seed(1)
    outputs = call(xs)
    cotangent = torch.linspace(-1, 2, outputs.numel(), dtype=xs.dtype).reshape(outputs.shape)
    wanted = [xs, *net.parameters()]
    return outputs, list(torch.autograd.grad(outputs, wanted, cotangent, allow_unused=True))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", [*GATED, *MEMORIES, *RECENT])
def test_cells(kind):
    torch.manual_seed(0)
    net = kind().double()
    xs = torch.randn(STEPS.get(kind, 18), 3, INPUTS, dtype=torch.float64, requires_grad=True)
    compiled = weft.compile(net)
    outputs_and_gradients(compiled, net, xs)
    found, expected = (outputs_and_gradients(call, net, xs) for call in (compiled, net))
    assert_same([found[0]], [expected[0]], 1e-12)
    assert_same(found[1], expected[1], 1e-10)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]
    assert compiled.ir("kernels").count("weft.loop @") == LOOPS.get(kind, 1)


class OneTensorPerStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.recall = nn.Linear(5, 6), nn.Linear(6, 6)

    def forward(self, xs: list[torch.Tensor]):
        hidden, outputs = xs[0].new_zeros(xs[0].shape[0], 6), []
        for x in xs:
            hidden = torch.tanh(self.enter(x) + self.recall(hidden))
            outputs.append(hidden)
        return torch.stack(outputs)


def test_a_tensor_for_each_step():
    net = OneTensorPerStep().double()
    stacked = torch.randn(11, 3, 5, dtype=torch.float64, requires_grad=True)
    compiled = weft.compile(net)

    def listed(call):
        return lambda xs: call(list(xs.unbind(0)))

    outputs_and_gradients(listed(compiled), net, stacked)
    found, expected = (
        outputs_and_gradients(listed(call), net, stacked) for call in (compiled, net)
    )
    assert_same([found[0]], [expected[0]], 1e-12)
    assert_same(found[1], expected[1], 1e-10)
    assert compiled.ir("kernels").count("weft.loop @") == 1
