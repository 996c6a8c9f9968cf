# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backward frees what autograd has saved on its way, and no more: later ones of the same call
give a gradient or an error where eager execution does."""

from __future__ import annotations

import random

import pytest
import torch

import weft


class Heads(torch.nn.Module):
    """Two heads on one trunk, and a result beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = torch.nn.Linear(6, 6)
        self.heads = torch.nn.ModuleList(torch.nn.Linear(6, n) for n in (4, 3))
        self.scale = torch.nn.Parameter(torch.rand(6))

    def forward(self, x):
        hidden = self.trunk(x).tanh()
        return (*(head(hidden) for head in self.heads), (x * self.scale).exp())


def outcome(results, wanted, names, parameters, retain):
    loss = sum(results[n].sin().sum() for n in wanted)
    try:
        return torch.autograd.grad(
            loss, [parameters[name] for name in names], retain_graph=retain, allow_unused=True
        )
    except RuntimeError as error:
        return str(error)[:40]


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_backwards_of_parts(seed, is_leaf, verified):
    torch.manual_seed(seed)
    module = Heads().double()
    compiled = weft.compile(module)
    given = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    compiled(given if is_leaf else given * 2)
    chosen = random.Random(seed)
    parameters = {**dict(module.named_parameters()), "x": given}
    eager, ours = (f(given if is_leaf else given * 2) for f in (module, compiled))
    for _ in range(6):
        wanted = chosen.sample(range(3), chosen.randint(1, 2))
        names = chosen.sample(sorted(parameters), chosen.randint(1, 3))
        retain = chosen.random() < 0.3
        want = outcome(eager, wanted, names, parameters, retain)
        got = outcome(ours, wanted, names, parameters, retain)
        if isinstance(want, str) or isinstance(got, str):
            assert got == want, f"{wanted} to {names}"
        else:
            torch.testing.assert_close(got, want)
    assert compiled.stats()["hits"] >= 1


def test_one_heads_gradient_before_the_other_heads_backward(verified):
    torch.manual_seed(0)
    module = Heads()
    compiled, x = weft.compile(module), torch.randn(5, 6)
    for _ in range(2):
        one, other, _ = compiled(x)
        torch.autograd.grad(one.sum(), module.heads[0].weight)
        other.sum().backward()
    assert module.trunk.weight.grad is not None
