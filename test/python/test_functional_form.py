# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.functional`: modules as functions of inputs and parameters."""

from __future__ import annotations

import pytest
import torch
from training_cases import assert_same

import weft


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


class Recurrent(torch.nn.Module):
    """Takes and gives nested tuples."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.Linear(7, 8)

    def forward(self, x, state):
        h, c = state
        i, g = self.cell(torch.cat([x, h], 1)).chunk(2, 1)
        c = c * i.sigmoid() + g.tanh()
        return c.tanh(), (i.sin(), c)


def mlp():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)]
    return torch.nn.Sequential(*layers).double()


def other_parameters(module):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in module.parameters()]


def test_a_function_of_inputs_and_parameters():
    module, x = mlp(), torch.randn(3, 4, dtype=torch.float64)
    own = [each.detach().clone() for each in module.parameters()]
    f = weft.functional(module, x)
    others = other_parameters(module)
    expected = torch.func.functional_call(module, dict(zip(f.names, others)), (x,))
    assert f.names == [name for name, _ in module.named_parameters()]
    for _ in range(2):
        for found in (f(x, *others), f(x, others), f((x,), tuple(others))):
            torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(f(x, own), module(x).detach())
    assert_same(list(module.parameters()), own, 0.0)
    stats = weft.stats(f.compiled)
    assert stats["hits"] >= 6 and not stats["breaks"], stats


def test_gradient_and_halves():
    module, x = mlp(), torch.randn(3, 4, dtype=torch.float64)
    f, others = weft.functional(module, x), other_parameters(module)
    leaves = [each.clone().requires_grad_() for each in (x, *others)]
    out = torch.func.functional_call(module, dict(zip(f.names, leaves[1:])), (leaves[0],))
    cotangent = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2)
    expected = torch.autograd.grad(out, leaves, cotangent)
    for _ in range(2):
        assert_same(list(f.gradient(x, others, cotangents=cotangent)), expected, 1e-12)
        value, saved = f.forward(x, others)
        assert not value.requires_grad
        torch.testing.assert_close(value, out.detach())
        for _ in range(2):
            assert_same(list(f.backward(saved, cotangent)), expected, 1e-12)
    assert weft.stats(f.compiled)["hits"] >= 3


def test_nested_tuples():
    module = Recurrent()
    x, h, c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    f = weft.functional(module, (x, (h, c)))
    params = list(module.parameters())
    expected = module(x, (h, c))
    for _ in range(2):
        for found in (f(x, (h, c), params), f((x, (h, c)), params), f(x, h, c, *params)):
            assert type(found) is tuple and type(found[1]) is tuple
            torch.testing.assert_close(found, expected)
    cotangents = (torch.ones(2, 4), (torch.full((2, 4), 2.0), torch.zeros(2, 4)))
    found = f.gradient(x, (h, c), params, cotangents=cotangents)
    eager = module(x, (h, c))
    loss = eager[0].sum() + 2 * eager[1][0].sum()
    expected = torch.autograd.grad(loss, params)
    assert_same(list(found[3:]), list(expected), 1e-5)
    assert len(found) == 5


def test_integers_have_no_gradient():
    torch.manual_seed(0)
    module = torch.nn.Embedding(5, 3)
    f = weft.functional(module, torch.tensor([0, 1]))
    for _ in range(2):
        none, gradient = f.gradient(
            torch.tensor([4, 4]), [module.weight], cotangents=torch.ones(2, 3)
        )
        assert none is None and gradient[4].tolist() == [2.0] * 3


def test_dispatch_by_shapes():
    module, x = mlp(), torch.randn(3, 4, dtype=torch.float64)
    by_sample = weft.functional(module, x).module
    for size in (3, 3, 5, 3):
        given = torch.randn(size, 4, dtype=torch.float64)
        torch.testing.assert_close(by_sample(given), module(given))
    assert (by_sample.compiled_calls, by_sample.ordinary_calls) == (3, 1)
    names = [name for name, _ in by_sample.named_parameters()]
    assert names == [f"module.{name}" for name, _ in module.named_parameters()]


def test_wrong_arguments():
    f = weft.functional(mlp(), torch.randn(3, 4).double())
    with pytest.raises(TypeError, match="expected 1 inputs and 4 parameters, found 2 tensors"):
        f(torch.randn(3, 4), torch.randn(1))
    with pytest.raises(TypeError, match="expected a module"):
        weft.functional(torch.sin, torch.randn(3))
    with pytest.raises(TypeError, match="expected a sample of tensors, found int"):
        weft.functional(mlp(), (1,))
