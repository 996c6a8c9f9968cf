# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of research code, forward and backward, beside PyTorch in float64."""

import pytest
import torch
import torch.utils._pytree as pytree
from research_decoders import DECODERS
from research_loops import INPUTS, LOOPS, LSTMCells, StateInDataclass

import weft


def results_and_gradients(call, net, xs):
    """Along a cotangent that differs everywhere; what is drawn is drawn from one seed."""
    torch.manual_seed(1)
    results = pytree.tree_leaves(call(xs))
    loss = sum(
        (each * torch.linspace(-1, 2, each.numel(), dtype=each.dtype).reshape(each.shape)).sum()
        for each in results
    )
    return results, torch.autograd.grad(loss, [xs, *net.parameters()], allow_unused=True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", [*LOOPS, *DECODERS])
def test_cells(kind):
    torch.manual_seed(0)
    net = kind().double()
    xs = torch.randn(20, 3, INPUTS, dtype=torch.float64, requires_grad=True)
    compiled = weft.compile(net)
    results_and_gradients(compiled, net, xs)
    found, expected = (results_and_gradients(call, net, xs) for call in (compiled, net))
    for a, b in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(found[1], expected[1], strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("kind", [LSTMCells, StateInDataclass])
def test_half_precision(kind):
    torch.manual_seed(0)
    net = kind()
    xs = torch.randn(20, 3, INPUTS, requires_grad=True)
    exact = results_and_gradients(net.double(), net, xs.double())[0]
    compiled = weft.compile(net.bfloat16())
    found, eager = (pytree.tree_leaves(call(xs.bfloat16())) for call in (compiled, net))
    for a, b, c in zip(found, eager, exact, strict=True):
        assert a.dtype == b.dtype == torch.bfloat16
        assert (a - c).abs().max() <= 2 * (b - c).abs().max() + 2**-7
    assert not weft.stats(compiled)["breaks"]
