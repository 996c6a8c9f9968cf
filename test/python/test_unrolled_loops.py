# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several small steps of a loop as one function (weft-unroll-loops), beside the loop itself."""

import concurrent.futures

import pytest
import torch
from torch._higher_order_ops.scan import scan

import weft

BATCH, WIDTH = 3, 5


def cell(states, inputs):
    """Elementwise alone; one state depends on the other."""
    h, c = states
    keep, new = torch.sigmoid(inputs[0]), inputs[1]
    c = keep * c + (1 - keep) * new
    h = 0.5 * torch.tanh(c) + 0.3 * h
    return (h, c), h.clone()


def step_by_step(h, c, keep, new, reverse):
    outputs = [None] * len(keep)
    for t in reversed(range(len(keep))) if reverse else range(len(keep)):
        (h, c), outputs[t] = cell((h, c), (keep[t], new[t]))
    return h, c, torch.stack(outputs)


def scanned(h, c, keep, new, reverse):
    (h, c), outputs = scan(cell, (h, c), (keep, new), reverse=reverse)
    return h, c, outputs


def results(run, tensors, reverse):
    """What it gives, then gradients of all arguments."""
    given = [each.clone().requires_grad_() for each in tensors]
    found = run(*given, reverse)
    weights = [torch.linspace(-1, 2, x.numel(), dtype=x.dtype).view(x.shape) for x in found]
    loss = sum((x * weight).sum() for x, weight in zip(found, weights, strict=True))
    return [*found, *torch.autograd.grad(loss, given)]


def arguments(steps, dtype=torch.float64):
    torch.manual_seed(steps)
    shapes = [(BATCH, WIDTH)] * 2 + [(steps, BATCH, WIDTH)] * 2
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


# With the largest factor that divides the steps, or with steps left at the end.
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "steps, unrolled, reverse",
    [
        (1, "", False),
        (2, "by 2 ", False),
        (7, "by 7 ", True),
        (9, "by 8 ", True),
        (17, "by 8 ", False),
    ],
)
def test_any_number_of_steps(steps, unrolled, reverse):
    tensors = arguments(steps)
    compiled = weft.compile(scanned)
    results(compiled, tensors, reverse)
    found, expected = results(compiled, tensors, reverse), results(step_by_step, tensors, reverse)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    assert not weft.stats(compiled)["breaks"] and unrolled in compiled.ir("kernels")


def test_it_is_a_switch(no_grad):
    tensors = arguments(16, torch.float32)
    texts = []
    for without in ([], ["weft-unroll-loops"]):
        compiled = weft.compile(scanned, without=without)
        for a, b in zip(compiled(*tensors, False), step_by_step(*tensors, False), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
        texts.append(compiled.ir("kernels"))
    assert " 16 by 8 " in texts[0] and " 16 reverse" in texts[1]


def folded(h, c, keep, new):
    for each in zip(keep, new, strict=True):
        (h, c), _ = cell((h, c), each)
    return h, c


def test_no_step():
    compiled = weft.compile(scanned)
    with pytest.raises(RuntimeError, match="scan dimension > 0"):
        compiled(*arguments(0), False)
    compiled = weft.compile(folded)
    for steps in (0, 9, 0, 17, 1):
        h, c, keep, new = (each.requires_grad_() for each in arguments(steps))
        found, expected = compiled(h, c, keep, new), folded(h, c, keep, new)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
        gradients = [
            torch.autograd.grad(sum(x.sum() for x in each), (h, c, keep, new), allow_unused=True)
            for each in (found, expected)
        ]
        for a, b in zip(*gradients, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_range_of_lengths_with_none_among_them(no_grad, automatic_sizes):
    compiled = weft.compile(folded)
    for steps in (12, 0, 9, 16, 1, 11, 0, 15):
        tensors = arguments(steps)
        for a, b in zip(compiled(*tensors), folded(*tensors), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    assert weft.stats(compiled)["breaks"] == [] and len(weft.stats(compiled)["ranges"]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("steps", [16, 19])
def test_any_number_of_threads_gives_the_same_bits(steps, own_threads):
    """In one call, and of calls at once."""
    torch.manual_seed(steps)
    shapes = [(16, 64)] * 2 + [(steps, 16, 64)] * 2
    tensors = [torch.randn(shape) for shape in shapes]
    compiled = weft.compile(scanned)
    results(compiled, tensors, False)
    assert " by " in compiled.ir("kernels")
    found = []
    for threads in (1, 2, 3):
        weft.set_num_threads(threads)
        found.append(results(compiled, tensors, False))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found += pool.map(lambda _: results(compiled, tensors, False), range(8))
    for each in found[1:]:
        assert all(map(torch.equal, each, found[0]))
