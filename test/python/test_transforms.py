# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules within torch.func: grad and vjp run programs, to any order; the others run
eagerly and say so. Values are those of PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)

import weft
from weft.compiled.module import callable_of


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


class Net(torch.nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
        # No LayerNorm: PyTorch's third derivative of it is not that of its formula.
        self.norm, self.drop = torch.nn.Softmax(-1), torch.nn.Dropout(dropout)

    def forward(self, x, scale=1.0):
        return self.last(self.drop(self.norm(torch.tanh(self.first(x))))) * scale


def net(dtype=torch.float64, **settings):
    return Net(**settings).to(dtype)


def data(dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(5, 4, generator=generator, dtype=torch.float64).to(dtype),
        torch.randn(5, 3, generator=generator, dtype=torch.float64).to(dtype),
    )


def parameters(module):
    return {name: each.detach() for name, each in module.named_parameters()}


def of_parameters(m, x, y):
    return grad(lambda p: F.mse_loss(functional_call(m, p, (x,)), y))(parameters(m))


def of_both(m, x, y):
    def loss(p, a):
        return F.mse_loss(functional_call(m, p, (a,), {"scale": 2.0}), y)

    return grad_and_value(loss, (0, 1))(parameters(m), x)


def pulled_twice(m, x, y):
    out, pull = vjp(m, x)
    return out, pull(y), pull(2 * y)


def second(m, x, y):
    return grad(lambda a: (grad(lambda b: (m(b) * y).sum())(a) ** 2).sum())(x)


def third(m, x, y):
    def along(a):
        return (grad(lambda b: (m(b) * y).sum())(a) ** 2).sum()

    return grad(lambda a: (grad(along)(a) ** 2).sum())(x)


def penalty(m, x, y):
    """A gradient that torch.func takes, in a loss that autograd differentiates."""
    slope = grad(lambda a: (m(a) * y).sum())(x)
    loss = m(x).square().mean() + (slope.norm(2, 1) - 1).square().mean()
    wanted = [each for name, each in m.named_parameters() if name != "last.bias"]
    return torch.autograd.grad(loss, wanted)


def a_step_ahead(m, x, y):
    """Gradients through a step of gradient descent (MAML)."""

    def loss(p):
        return F.mse_loss(functional_call(m, p, (x,)), y)

    def ahead(p):
        slopes = grad(loss)(p)
        return loss({name: each - 0.1 * slopes[name] for name, each in p.items()})

    return grad(ahead)(parameters(m))


COMPILED = [of_parameters, of_both, pulled_twice, second, third, penalty, a_step_ahead]


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def assert_same(found, expected, **tolerance):
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        torch.testing.assert_close(x, y, **tolerance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", COMPILED)
def test_programs_run(case, dtype):
    compiled = weft.compile(net(dtype))
    expected = case(net(dtype), *data(dtype))
    exact = case(net(), *data())
    for _ in range(3):
        found = case(compiled, *data(dtype))
        assert_same(found, expected)
        if dtype == torch.float32:  # no further from float64 than PyTorch, but for rounding
            for own, eager, right in zip(leaves(found), leaves(expected), leaves(exact)):
                slack = 1e-6 * right.abs().max()
                assert (own - right).abs().max() <= 4 * (eager - right).abs().max() + slack
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats


def higher_programs(compiled):
    programs = callable_of(compiled).face.programs
    return [each for s in programs.all() if s.training for each in s.training.graph.higher()]


def test_gradients_of_gradients_are_programs():
    compiled = weft.compile(net())
    for _ in range(3):
        second(compiled, *data())
    found = higher_programs(compiled)
    assert found and all(program.reason is None for _, program in found)
    assert any(program.calls >= 2 for _, program in found)


def test_first_order_compiles_nothing_further():
    compiled = weft.compile(net())
    for _ in range(3):
        of_parameters(compiled, *data())
    assert not higher_programs(compiled)


@pytest.mark.parametrize(
    "case",
    [
        lambda m, x, y: vmap(m)(x),
        lambda m, x, y: jvp(m, (x,), (x,)),
        lambda m, x, y: jacfwd(m)(x[0]),
        lambda m, x, y: hessian(lambda a: m(a).square().sum())(x[0]),
        lambda m, x, y: vmap(grad(lambda a, b: F.mse_loss(m(a), b)))(x, y),
    ],
)
def test_others_run_eagerly(case):
    compiled = weft.compile(net())
    with pytest.warns(weft.errors.WeftWarning, match="not grad or vjp"):
        for _ in range(2):
            assert_same(case(compiled, *data()), case(net(), *data()))
    assert weft.stats(compiled)["hits"] == 0


def test_a_backward_within_vmap():
    """The forward is a program; PyTorch pulls many cotangents back."""
    compiled, (x, _) = weft.compile(net()), data()
    for _ in range(3):
        assert_same(jacrev(compiled)(x[0]), jacrev(net())(x[0]))
    assert weft.stats(compiled)["hits"] >= 2


def test_a_module_in_eval_mode():
    compiled = weft.compile(net().eval())
    x, y = data()
    with torch.no_grad():
        compiled(x)
    for _ in range(3):
        assert_same(of_parameters(compiled, x, y), of_parameters(net().eval(), x, y))
    assert not weft.stats(compiled)["breaks"]


def test_random_numbers_run_eagerly():
    compiled, twin = weft.compile(net(dropout=0.5)), net(dropout=0.5)
    with pytest.warns(weft.errors.WeftWarning, match="draws random numbers"):
        for seed in range(3):
            torch.manual_seed(seed)
            expected = of_parameters(twin, *data())
            after = torch.get_rng_state()
            torch.manual_seed(seed)
            assert_same(of_parameters(compiled, *data()), expected)
            assert torch.equal(torch.get_rng_state(), after)


def test_a_buffer_that_is_written():
    """As in PyTorch, which refuses to change what a transform does not know."""

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(4, dtype=torch.float64))

        def forward(self, x):
            self.seen += x.sum(0)
            return x.sin().sum() * self.seen.sum()

    compiled, twin, (x, _) = weft.compile(Counting()), Counting(), data()
    for module in (compiled, twin):
        with pytest.raises(RuntimeError, match="captured Tensor"):
            grad(module)(x)
    torch.testing.assert_close(compiled.seen, twin.seen)


def test_the_module_is_as_before():
    compiled = weft.compile(net())
    before = dict(compiled.named_parameters())
    x, y = data()
    of_parameters(compiled, x, y)
    assert all(each is before[name] for name, each in compiled.named_parameters())
    compiled(x).square().sum().backward()
    twin = net()
    twin(x).square().sum().backward()
    assert_same([p.grad for p in compiled.parameters()], [p.grad for p in twin.parameters()])


def test_functional_call_shares_a_program():
    compiled, (x, _) = weft.compile(net()), data()
    for scale in (1.0, 2.0, 3.0):
        given = {k: (scale * v).requires_grad_() for k, v in parameters(net()).items()}
        found = torch.autograd.grad(functional_call(compiled, given, (x,)).sum(), [*given.values()])
        expected = torch.autograd.grad(functional_call(net(), given, (x,)).sum(), [*given.values()])
        assert_same(found, expected)
    assert weft.stats(compiled)["graphs"] == 1 and not weft.stats(compiled)["breaks"]
