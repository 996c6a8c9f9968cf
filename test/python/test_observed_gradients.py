# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that an observed call computes itself, and what it sets of them at tensors."""

import copy

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = [
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
    pytest.mark.usefixtures("verified"),  # which goes backward once more
]


def hits(function):
    stats = weft.stats(function)
    assert not stats["breaks"], stats["breaks"]
    return stats["hits"]


class Energy(nn.Module):
    """Forces are the gradient of an energy by positions."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, positions):
        positions.requires_grad_()
        energy = self.layers(positions).sum()
        (force,) = torch.autograd.grad(energy, positions, create_graph=self.training)
        return energy, -force


@pytest.mark.parametrize("options", [{"backend": "eager"}, {"backend": "native"}])
@pytest.mark.parametrize("trains", [True, False])
def test_forces(trains, options):
    model = Energy().train(trains)
    fast, twin = weft.compile(model, capture="observe", **options), copy.deepcopy(model)
    for _ in range(4):
        x = torch.randn(5, 3)
        y = x.clone()
        found, expected = fast(x), twin(y)
        assert x.requires_grad
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other)
            assert one.requires_grad == other.requires_grad
        if trains:
            (found[0] + found[1].square().sum()).backward()
            (expected[0] + expected[1].square().sum()).backward()
            for one, other in zip(model.parameters(), twin.parameters()):
                torch.testing.assert_close(one.grad, other.grad)
    assert hits(fast) == 3
    x = torch.randn(5, 3, requires_grad=True)  # as it is from now on
    torch.testing.assert_close(fast(x)[1], twin(x)[1])


def descends(w, x):
    w.grad = None
    loss = (w * x).square().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    return loss, w.grad


def accumulates(w, x):
    (w * x).sum().backward()
    return w.grad * 2


def scales_what_it_finds(w, x):
    y = w.grad + 1
    (w * x).sum().backward()
    w.grad.mul_(0.5)
    return y


def steps(w, x):
    v = w.detach().requires_grad_()
    for _ in range(2):
        (gradient,) = torch.autograd.grad((v * x).exp().sum(), v)
        v = (v - 0.1 * gradient).detach().requires_grad_()
    return v


def with_a_gradient_given(w, x):
    y = w * x
    y.backward(gradient=torch.ones_like(y) * 2)
    return y


@pytest.mark.parametrize(
    "program", [descends, accumulates, scales_what_it_finds, steps, with_a_gradient_given]
)
@pytest.mark.parametrize("starts", ["none", "zeros"])
def test_gradients_within(program, starts):
    fast = compiled(program)
    w = torch.randn(3)
    both = [w.clone().requires_grad_(), w.clone().requires_grad_()]
    if starts == "zeros" or program is scales_what_it_finds:
        for each in both:
            each.grad = torch.zeros(3)
    for _ in range(6):
        x = torch.randn(3)
        found, expected = fast(both[0], x), program(both[1], x)
        for one, other in zip(*[each if isinstance(each, tuple) else (each,)
                                for each in (found, expected)]):  # fmt: skip
            assert torch.equal(one, other)
        assert torch.equal(both[0], both[1])
        if both[1].grad is None:
            assert both[0].grad is None
        else:
            assert torch.equal(both[0].grad, both[1].grad)
    assert hits(fast) >= 3


def test_a_gradient_from_outside_is_read_anew():
    fast = compiled(lambda w: w if w.grad is None else w * w.grad)
    w = torch.ones(2, requires_grad=True)
    for gradient in (None, torch.ones(2), torch.ones(2) * 3, None, torch.zeros(2)):
        w.grad = gradient
        expected = w if gradient is None else w * gradient
        assert torch.equal(fast(w), expected)


def test_hooks_and_functions_in_python_end_a_capture():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append("backward")
            return gradient * 2

    def by_function(w):
        return torch.autograd.grad(Double.apply(w).sum(), w)[0]

    def by_hook(w):
        return torch.autograd.grad((w * w).sum(), w)[0]

    for program in (by_function, by_hook):
        w = torch.ones(2, requires_grad=True)
        if program is by_hook:
            w.register_hook(lambda gradient: seen.append("hook"))
        fast = compiled(program)
        for _ in range(3):
            seen.clear()
            assert torch.equal(fast(w), torch.full((2,), 2.0))
            assert len(seen) == 1
        assert weft.stats(fast)["breaks"] and not weft.stats(fast)["hits"]


def test_a_hook_that_comes_later_runs_once():
    def program(w, flag):
        (gradient,) = torch.autograd.grad((w * w).sum(), w)
        return gradient + 1 if flag.sum() > 0 else gradient

    fast, seen = compiled(program), []
    w = torch.ones(2, requires_grad=True)
    for _ in range(3):
        fast(w, torch.ones(1))
    assert hits(fast) == 2
    w.register_hook(lambda gradient: seen.append(gradient))
    for number, flag in enumerate((1, -1, 1, -1)):
        found = fast(w, torch.full((1,), float(flag)))
        assert torch.equal(found, torch.full((2,), 3.0 if flag > 0 else 2.0))
        assert len(seen) == number + 1


@pytest.mark.parametrize("kind", ["register_hook", "register_prehook"])
def test_a_hook_of_what_accumulates_that_comes_later_runs_once(kind):
    def program(w, flag):
        w.grad = None
        (w * w).sum().backward()
        return w.grad + 1 if flag.sum() > 0 else w.grad * 1

    fast, seen = compiled(program), []
    w = torch.ones(2, requires_grad=True)
    for _ in range(5):
        fast(w, torch.ones(1))
    assert hits(fast) >= 2
    node = torch.autograd.graph.get_gradient_edge(w).node
    getattr(node, kind)(lambda *gradients: seen.append(gradients))
    for number, flag in enumerate((1, -1, 1, -1, -1)):
        found = fast(w, torch.full((1,), float(flag)))
        assert torch.equal(found, torch.full((2,), 3.0 if flag > 0 else 2.0))
        assert len(seen) == number + 1


def test_tensors_from_outside_that_are_no_leaves():
    def program(x):
        (x * 2).sum().backward()
        return x + 1

    fast = compiled(program)
    for _ in range(3):
        w = torch.ones(2, requires_grad=True)
        fast(w * 3)
        assert torch.equal(w.grad, torch.full((2,), 6.0))


def test_the_flag_is_set():
    def program(x, flag):
        x.requires_grad = flag
        return x * 2

    fast = compiled(program)
    for flag in (True, True, False, True, False):
        x = torch.ones(2)
        assert fast(x, flag).requires_grad is flag and x.requires_grad is flag
    assert hits(fast) >= 3


def test_gradients_of_parameters_and_their_norm():
    def make():
        layer = torch.nn.Linear(3, 1)
        torch.nn.init.ones_(layer.weight)

        def program(x):
            (own,) = torch.autograd.grad(layer(x).square().mean(), [layer.weight])
            layer.zero_grad()
            layer(x).square().mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            return own, norm, layer.weight.grad.clone()

        return program

    torch.manual_seed(0)
    program = make()
    fast = compiled(program)
    for number in range(6):
        x = torch.full((2, 3), number + 1.0)
        assert all(torch.equal(*each) for each in zip(fast(x), program(x), strict=True))
    assert hits(fast) >= 3 and not weft.stats(fast)["breaks"]
