# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is saved for the backward: within a budget, and as the report lists it."""

from __future__ import annotations

import io

import pytest
import torch
import torch.nn.functional as F
from agreeing import check_replayed
from training_cases import assert_same

import weft
from weft.compiled.api import _face


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x):
        for _ in range(3):
            x = x + self.second(F.gelu(self.first(self.norm(x))))
        return x.softmax(-1).log().sum()


def trained(budget):
    """What a step saves, and its gradients."""
    model = Block().double()
    compiled = weft.compile(model, memory_budget=budget)
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(1)).double()
    for _ in range(4):
        model.zero_grad()
        compiled(x).backward()
    check_replayed(compiled)
    training = _face(compiled).programs.latest().training
    saved = sum(
        size
        for (_, size), (kind, _) in zip(
            training.saved_bytes, (r for r in training.reads if r[0] in ("saved", "result"))
        )
        if kind == "saved"
    )
    return saved, [each.grad for each in model.parameters()]


@pytest.mark.at_length
def test_smaller_budgets_never_save_more():
    budgets = (1.0, 0.75, 0.5, 0.25, 0.0)
    found = {budget: trained(budget) for budget in budgets}
    sizes = [found[budget][0] for budget in budgets]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0] / 2, sizes
    for budget in (0.75, 0.5):
        assert found[budget][0] <= budget * sizes[0]
    _, expected = trained(None)
    for _, gradients in found.values():
        assert_same(gradients, expected, 1e-12)


@pytest.mark.parametrize("budget", [-0.5, 1.5])
def test_a_budget_is_a_share(budget):
    with pytest.raises(weft.errors.ConfigError, match="expected memory_budget from 0 to 1"):
        weft.compile(Block(), memory_budget=budget)


def test_the_report_lists_what_is_saved_and_computed_again():
    def function(x, w):
        hidden = x @ w
        return (hidden.exp() + 1).log().tanh() @ w.t()

    x, w = torch.randn(64, 32, requires_grad=True), torch.randn(32, 48, requires_grad=True)
    compiled = weft.compile(function)
    for _ in range(2):
        compiled(x, w).sum().backward()
    text = io.StringIO()
    weft.report(compiled, text)
    line = function.__code__.co_firstlineno + 1
    saved, _, again = text.getvalue().partition("computed again")
    assert "saved for the backward" in saved
    (row,) = [each for each in saved.splitlines() if "f32[64, 48]" in each and "dot" in each]
    assert f"test_memory_budget.py:{line}" in row and "0.012" in row
    assert "keeping it costs less" in row
    assert "exp" in again and f"test_memory_budget.py:{line + 1}" in again
