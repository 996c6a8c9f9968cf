# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch._higher_order_ops.scan` and `associative_scan`: any number of steps, derivatives, and
within `torch.no_grad`."""

import operator

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from training_cases import assert_same, gradients

import weft


def rnn(state, xs, w):
    """A matmul of the state, and an output that is no state."""

    def step(h, x):
        h = torch.tanh(x + h @ w)
        return h, h * x

    last, outputs = scan(step, state, xs, dim=0)
    return last, outputs


def gated(state, xs, w):
    """Two states, of which one is not read by the other."""

    def step(states, x):
        h, count = states
        keep = torch.sigmoid(x @ w)
        return (keep * h + (1 - keep) * x, count + keep), h * 2

    (last, count), outputs = scan(step, (state, state * 0.5), xs, dim=0, reverse=True)
    return last, count, outputs


def given(steps):
    torch.manual_seed(steps)
    shapes = ((2, 3), (steps, 2, 3), (3, 3))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("function", [rnn, gated])
def test_any_number_of_steps(function, steps):
    inputs, compiled = given(steps), weft.compile(function)
    for _ in range(2):
        assert_same(list(compiled(*inputs)), list(function(*inputs)), 1e-12)
        assert_same(gradients(compiled, inputs), gradients(function, inputs), 1e-10)
    assert not weft.stats(compiled)["breaks"], weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("function", [rnn, gated])
def test_no_steps(function):
    """What eager execution does with none."""
    inputs, compiled = given(0), weft.compile(function)
    outcomes = []
    for call in (compiled, function):
        try:
            outcomes.append([each.detach() for each in call(*inputs)])
        except Exception as error:
            outcomes.append(type(error))
    assert type(outcomes[0]) is type(outcomes[1])
    if isinstance(outcomes[0], list):
        assert_same(*outcomes, 0)
    else:
        assert outcomes[0] is outcomes[1]


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("function", [rnn, gated])
def test_derivatives_are_those_of_differences(function, steps):
    compiled, inputs = weft.compile(function), given(steps)
    assert torch.autograd.gradcheck(compiled, inputs)
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("function", [rnn, gated])
def test_second_derivatives_are_those_of_differences(function, steps):
    assert torch.autograd.gradgradcheck(weft.compile(function), given(steps))


@pytest.mark.parametrize("steps", [1, 2, 17])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scans(steps, reverse):
    def linear(xs, decay):
        def combine(one, other):
            return one[0] * other[0], other[0] * one[1] + other[1]

        decays = torch.sigmoid(decay).expand(len(xs), -1, -1).contiguous()
        states = associative_scan(
            combine, (decays, xs), dim=0, reverse=reverse, combine_mode="generic"
        )
        sums = associative_scan(operator.add, xs, dim=0, combine_mode="generic")
        return states[1], sums

    torch.manual_seed(steps)
    inputs = [torch.randn(s, 2, 3, dtype=torch.float64, requires_grad=True) for s in (steps, 1)]
    compiled = weft.compile(linear)
    for _ in range(2):
        assert_same(list(compiled(*inputs)), list(linear(*inputs)), 1e-12)
        assert_same(gradients(compiled, inputs), gradients(linear, inputs), 1e-10)
    assert not weft.stats(compiled)["breaks"], weft.stats(compiled)["breaks"]


def test_no_gradient_passes_a_scan_within_no_grad():
    def reservoir(state, xs, w):
        with torch.no_grad():
            _, outputs = rnn(state, xs, w)
        return (outputs * xs,)

    inputs, compiled = given(5), weft.compile(reservoir)
    for _ in range(2):
        assert_same(gradients(compiled, inputs), gradients(reservoir, inputs), 1e-10)
    assert not weft.stats(compiled)["breaks"]
