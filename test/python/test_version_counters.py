# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What calls write goes on in version as in eager execution: autograd's errors depend on it,
whether the first call is compared or not."""

from __future__ import annotations

import copy

import pytest
import torch

import weft


class _Counting(torch.nn.Module):
    """A buffer that the derivative reads, and that the call then writes to, three times. Another
    that it multiplies and adds to, and multiplies."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("mean", torch.ones(4))
        self.register_buffer("noise", torch.ones(4, 4))

    def forward(self, x):
        y = self.linear(x) * self.mean
        if self.training:
            with torch.no_grad():
                self.mean.mul_(0.9)
                self.mean[1:].add_(0.1)
                self.mean.data.neg_()
                self.mean.neg_()
                torch.alpha_dropout_(self.noise, 0.5, True)
                torch.feature_alpha_dropout_(self.noise, 1.0, True)
        return y


NORMS = {
    "batch norm": (torch.nn.BatchNorm1d(4), (6, 4)),
    "averaged": (torch.nn.BatchNorm1d(4, momentum=None), (6, 4)),
    "instance norm": (torch.nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 4)),
    "writes of its own": (_Counting(), (6, 4)),
}


def steps(run, module, shape, ahead):
    """Of each of some backwards its error or gradients; the versions of the buffers."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(3):
        x, y = torch.randn(2, *shape, generator=generator)
        x.requires_grad_()
        module.eval()
        loss = run(x).square().sum()
        module.train()
        with torch.set_grad_enabled(ahead == "with gradients"):
            loss = loss + run(y).sin().sum()
        try:
            found.append(torch.autograd.grad(loss, x)[0])
        except RuntimeError as error:
            found.append(str(error).partition(":")[0])
    return found, [each._version for each in module.buffers()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ahead", ["with gradients", "without"])
@pytest.mark.parametrize("verify", ["off", "first"])
@pytest.mark.parametrize("name", NORMS)
def test_eval_then_training_ahead_of_one_backward(monkeypatch, name, verify, ahead):
    monkeypatch.setattr(weft.config, "verify", verify)
    module, shape = NORMS[name]
    module = torch.nn.Sequential(copy.deepcopy(module), torch.nn.Tanh())
    twin = copy.deepcopy(module)
    compiled = weft.compile(module)
    own, versions = steps(compiled, module, shape, ahead)
    eager, theirs = steps(twin, twin, shape, ahead)
    assert versions == theirs
    for x, y in zip(own, eager, strict=True):
        assert x == y if isinstance(y, str) else torch.allclose(x, y, atol=1e-5)
    stats = weft.stats(compiled)
    assert stats["hits"] >= 2 and not stats["breaks"], stats


def test_statistics_that_two_norms_and_the_call_itself_write():
    """Only the writes that count are steps of the versions."""

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            y = self.norm(x)
            with torch.no_grad():
                self.norm.running_mean.mul_(0.5)
            return y

    module = Both()
    twin = copy.deepcopy(module)
    compiled = weft.compile(module)
    for number in range(3):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(number))
        torch.testing.assert_close(compiled(x), twin(x))
    for own, eager in zip(module.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(own, eager)
        assert own._version == eager._version
    assert weft.stats(compiled)["hits"] >= 2


def test_statistics_within_regions_without_gradients():
    class Frozen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)
            self.linear = torch.nn.Linear(4, 2)

        def forward(self, x):
            with torch.no_grad():
                x = self.norm(x)
            return self.linear(x)

    module = Frozen()
    twin = copy.deepcopy(module)
    compiled = weft.compile(module)
    for number in range(3):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(number))
        for run in (compiled, twin):
            run(x).sum().backward()
    for own, eager in zip(module.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(own, eager)
        assert own._version == eager._version
    assert weft.stats(compiled)["hits"] >= 2
