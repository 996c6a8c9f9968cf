# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Curves of training by one program per step, against PyTorch's."""

from __future__ import annotations

import pytest
import torch
from benchmarks.training.curves import CURVES, distance, losses_of
from examples.fashion_mnist import ConvNet, Mlp
from examples.train_fashion_mnist import accuracy, train_both

import weft

STEPS = 40


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


def synthetic(dtype):
    """Images with a bright row where the label says."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 10
    images = torch.rand(400, 1, 28, 28, generator=generator, dtype=torch.float64)
    images[range(400), 0, 2 * labels] += 0.5
    return images.to(dtype), labels


@pytest.mark.parametrize("kind, steps", [(Mlp, STEPS), (ConvNet, 6)])
def test_curves_are_pytorchs(kind, steps):
    images, labels = synthetic(torch.float64)
    (eager, compiled), (expected, found), own = train_both(kind, images, labels, steps, batch=16)
    assert own.steps >= steps - 3, own.reasons
    # In float64 sums in another order are apart by less than that after these steps.
    torch.testing.assert_close(
        torch.tensor(found.losses), torch.tensor(expected.losses), rtol=1e-9, atol=1e-9
    )
    for ours, theirs in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def test_same_accuracy_in_float32():
    images, labels = synthetic(torch.float32)
    models, _, own = train_both(Mlp, images, labels, STEPS)
    assert own.steps >= STEPS - 3, own.reasons
    first, second = (accuracy(model, images, labels) for model in models)
    assert abs(first - second) <= 0.01 and first > 0.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["resnet", "transformer", "autoencoder"])
def test_losses_of_other_networks(name):
    """Sums in another order take two curves of PyTorch's as far apart."""
    curve = CURVES[name]
    eager, _ = losses_of(curve, 8)
    own, _ = losses_of(curve, 8, compiled=True)
    assert distance(eager, own) < 1e-11 and eager[-1] != eager[0]
