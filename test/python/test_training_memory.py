# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program keeps for its backward where the user says it, and what it compiles."""

from __future__ import annotations

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import weft
from weft.compiled.module import callable_of


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


class Checkpointed(nn.Module):
    """reentrant: None for no region of a checkpoint."""

    def __init__(self, reentrant: bool | None):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(8, 64), nn.Linear(64, 64), nn.Linear(64, 8)
        self.norm = nn.LayerNorm(64)
        self.reentrant = reentrant

    def body(self, x):
        return self.third(torch.exp(self.norm(self.second(torch.tanh(self.first(x))))))

    def forward(self, x):
        x = F.relu(x * 2)
        if self.reentrant is None:
            return self.body(x) + x
        return checkpoint(self.body, x, use_reentrant=self.reentrant) + x


def programs_of(compiled):
    return callable_of(compiled).face.programs


def trained(module, x):
    compiled = weft.compile(module)
    for _ in range(3):
        compiled.zero_grad()
        compiled(x).square().sum().backward()
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats
    training = programs_of(compiled).latest().training
    return sum(size for _, size in training.saved_bytes), [p.grad for p in compiled.parameters()]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_not_saved(reentrant):
    x = torch.randn(16, 8, dtype=torch.float64)
    torch.manual_seed(0)
    x = x.requires_grad_()
    saved, gradients = {}, {}
    for kind in (None, reentrant):
        torch.manual_seed(0)
        saved[kind], gradients[kind] = trained(Checkpointed(kind).double(), x)
    torch.testing.assert_close(gradients[reentrant], gradients[None])
    wide = 16 * 64 * 8  # a value within the region
    assert saved[None] >= wide > saved[reentrant]


def test_eval_mode_compiles_a_backward_when_somebody_asks():
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout()).double()
    module.eval()
    compiled = weft.compile(module)
    x = torch.randn(5, 4, dtype=torch.float64)
    for _ in range(3):
        assert compiled(x).requires_grad
    assert weft.stats(compiled)["hits"] >= 2
    text = io.StringIO()
    weft.report(compiled, file=text)
    assert "compiled when somebody asks" in text.getvalue()
    assert programs_of(compiled).latest().training.backward is None
    assert "weft.dot_general" in callable_of(compiled).face.ir(role="backward"), "as it would be"

    def gradients(function):
        module.zero_grad()
        function(x).square().sum().backward()
        return [each.grad for each in module.parameters()]

    expected = gradients(module)
    for _ in range(3):  # by the graph's meaning, by PyTorch's first call, by the program
        torch.testing.assert_close(gradients(compiled), expected)
    assert programs_of(compiled).latest().training.backward is not None
    assert weft.stats(compiled)["hits"] >= 4 and not weft.stats(compiled)["breaks"]


def test_a_backward_of_the_first_call_is_noticed():
    compiled = weft.compile(nn.Linear(4, 3).double().eval())
    x = torch.randn(5, 4, dtype=torch.float64)
    for _ in range(3):
        compiled.zero_grad()
        compiled(x).square().sum().backward()
    assert programs_of(compiled).latest().training.backward is not None
    assert weft.stats(compiled)["hits"] >= 1


def normed() -> nn.Module:
    """What precedes each activation is kept, and the norm's shift."""
    layers = [nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.LayerNorm(32)]
    return nn.Sequential(*layers, nn.GELU(), nn.Linear(32, 4)).double()


def test_activations_behind_norms_are_not_saved():
    torch.manual_seed(0)
    size, _ = trained(normed(), torch.randn(16, 8, dtype=torch.float64))
    kept = 16 * (64 + 32)  # the results of the linear layers
    beside = 3 * 64 + 2 * 16 + 32  # statistics and shifts
    assert size <= (kept + beside) * 8


def test_shifts_may_change_before_the_backward():
    """PyTorch's own backward does not read them."""
    torch.manual_seed(0)
    modules = [normed()]
    modules.append(copy.deepcopy(modules[0]))
    compiled, eager = weft.compile(modules[0]), modules[1]
    x = torch.randn(16, 8, dtype=torch.float64)
    for _ in range(3):
        for each in (compiled, eager):
            each.zero_grad()
            loss = each(x).square().sum()
            with torch.no_grad():
                each[1].bias.add_(1)
            loss.backward()
        for mine, theirs in zip(compiled.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-11)
    assert weft.stats(compiled)["hits"] >= 2
