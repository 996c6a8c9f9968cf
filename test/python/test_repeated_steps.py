# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python that are traced for some of their steps alone, beside the loops themselves."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from filled_loops import FILLED, MIXED
from growing_loops import ASKED, GROWING
from loops_in_place import IN_PLACE, SHOWN
from stepped_loops import (
    INPUTS,
    OTHERS,
    SKIPPED,
    TRACED,
    Net,
    blocks,
    both_directions,
    elements,
    layers,
    properties,
    within_no_grad,
)

import weft
import weft.capture.tracing as tracing
from weft.capture.repeated_steps import FEWEST

BATCH = 3


@pytest.fixture
def traces(monkeypatch):
    """What comes back from each trace."""
    found, original = [], tracing.call_isolated

    def recorded(*args):
        found.append(original(*args))
        return found[-1]

    monkeypatch.setattr(tracing, "call_isolated", recorded)
    return found


def _storages(results):
    addresses = [each.untyped_storage().data_ptr() for each in results]
    return [addresses.index(each) for each in addresses]


def _check(run, steps, training):
    torch.manual_seed(steps)
    net = Net(run).double().eval()
    xs = torch.randn(steps, BATCH, INPUTS, dtype=torch.float64)
    own, theirs = xs.clone().requires_grad_(training), xs.clone().requires_grad_(training)
    compiled = weft.compile(net)
    with torch.set_grad_enabled(training):
        actual, expected = pytree.tree_leaves(compiled(own)), pytree.tree_leaves(net(theirs))
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
        assert a.stride() == b.stride()
    assert _storages(actual) == _storages(expected)
    if training:
        assert [each.requires_grad for each in actual] == [each.requires_grad for each in expected]
        actual, expected = ([x for x in each if x.requires_grad] for each in (actual, expected))
        weights = [torch.randn_like(each) for each in expected]
        given = [*net.parameters()]
        for results, x in ((actual, own), (expected, theirs)):
            loss = sum((each * weight).sum() for each, weight in zip(results, weights, strict=True))
            gradients = torch.autograd.grad(loss, [x, *given], allow_unused=True)
            if x is own:
                found = gradients
        for a, b in zip(found, gradients, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    return compiled


@pytest.mark.sampled(6)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "run", [*SKIPPED, *FILLED, *IN_PLACE, *GROWING], ids=lambda run: run.__name__
)
def test_steps_are_skipped(run, training, traces):
    compiled = _check(run, 40, training)
    assert not weft.stats(compiled)["breaks"]
    assert traces[-1].skipped_steps and traces[-1].failure is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "run, training",
    [*((run, False) for run in [*TRACED, within_no_grad]), (within_no_grad, True)],
)
def test_steps_that_follow_no_rule_are_traced(run, training, traces):
    _check(run, 40, training)
    assert not traces[-1].skipped_steps and traces[-1].failure is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("run", [*OTHERS, *MIXED, *SHOWN, *ASKED], ids=lambda run: run.__name__)
def test_results_of_other_loops(run):
    _check(run, 40, False)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("steps", [0, 1, 2, FEWEST - 1, FEWEST, FEWEST + 1, FEWEST + 2, 17, 1000])
def test_any_number_of_steps(steps):
    if steps:
        _check(elements, steps, True)
    else:
        with pytest.raises(RuntimeError):
            weft.compile(Net(elements).double())(torch.zeros(0, BATCH, INPUTS).double())


def test_a_step_beyond_the_end_raises_what_eager_execution_does():
    def beyond(net, xs):
        h = net.zeros(xs)
        for t in range(len(xs) + 1):
            h = net.step(xs[t], h)
        return h

    net = Net(beyond)
    with pytest.raises(IndexError):
        weft.compile(net)(torch.randn(40, BATCH, INPUTS))


@pytest.mark.parametrize("run, loops", [(layers, 2), (both_directions, 3), (blocks, 2)])
def test_loops_over_what_loops_gave(run, loops, traces):
    _check(run, 40, True)
    assert traces[-1].lowered.graph.count(b"weft.scan") == loops


def test_what_steps_check_is_checked_behind_them(traces):
    def embedded(net, xs):
        h, outputs, numbers = net.zeros(xs), [], xs[:, :, 0].long()
        for t in range(len(xs)):
            h = torch.tanh(F.embedding(numbers[t], net.second.weight) + net.recall(h))
            outputs.append(h)
        return torch.stack(outputs)

    net = Net(embedded)
    compiled, xs = weft.compile(net), torch.rand(40, BATCH, INPUTS)
    torch.testing.assert_close(compiled(xs), net(xs))
    assert traces[-1].skipped_steps and traces[-1].failure is None
    assert not weft.stats(compiled)["breaks"]
    xs[30, 1, 0] = 99
    with pytest.warns(weft.errors.WeftWarning), pytest.raises(IndexError, match="out of range"):
        compiled(xs)


def test_steps_begin_where_they_read_on(traces):
    """Rather than a call later or earlier: all of them are then steps of the scan."""

    def cell(net, xs):
        h = count = net.zeros(xs)
        outputs = []
        for x in xs:
            keep, new = torch.cat([net.enter(x), net.recall(h)], 1).sigmoid().chunk(2, 1)
            count = keep * count + new
            h = new / count.clamp(min=1)
            outputs.append(h)
        return torch.stack(outputs)

    compiled = _check(cell, 40, True)
    assert traces[-1].skipped_steps
    assert "weft.loop @step 40 " in compiled.ir("kernels")


def test_properties_do_not_end_a_loop():
    """What `Tensor.T` calls is another object each time."""
    assert "weft.loop @step 40 " in _check(properties, 40, False).ir("kernels")


def test_a_loop_within_autocast(traces, no_grad):
    def cast(net, xs):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states, last = elements(net, xs)
        return states.float(), last

    net, xs = Net(cast), torch.randn(40, BATCH, INPUTS)
    compiled = weft.compile(net)
    torch.testing.assert_close(compiled(xs), net(xs), rtol=0, atol=2**-7)
    assert not weft.stats(compiled)["breaks"] and "bf16" in compiled.ir("graph")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("training", [False, True])
def test_the_graph_is_as_long_for_any_number_of_steps(training, traces):
    for steps in (40, 400):
        net = Net(elements)
        with torch.set_grad_enabled(training):
            weft.compile(net)(torch.randn(steps, BATCH, INPUTS))
    short, long = (len(each.lowered.graph) for each in traces)
    assert long <= short + 100
