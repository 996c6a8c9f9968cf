# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes and reads under no_grad in calls that record gradients: caches, running statistics,
straight-through estimators. Programs run unverified, so that what they compute is compared."""

import copy

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Model(nn.Module):
    """keys: what is made of the keys, partly under no_grad."""

    def __init__(self):
        super().__init__()
        self.embed, self.q, self.k = (nn.Linear(4, 4, bias=False) for _ in range(3))
        self.register_buffer("mean", torch.zeros(4))
        self.scale = nn.Parameter(torch.randn(4))
        self.cache = torch.zeros(4, 8, 4)

    def forward(self, x):
        x = self.embed(x)
        return self.q(x) @ self.keys(self.k(x)).transpose(1, 2)


class InCache(Model):
    def keys(self, k):
        with torch.no_grad():
            self.cache[: k.shape[0], : k.shape[1]] = k
        return self.cache[: k.shape[0], : k.shape[1]]


class Copied(Model):
    def keys(self, k):
        new = torch.zeros(k.shape)
        with torch.no_grad():
            new.copy_(k)
        return new


class Reshaped(Model):
    def keys(self, k):
        with torch.no_grad():
            return k.clone().view(k.shape) + 1


class OfRunningMean(Model):
    def keys(self, k):
        with torch.no_grad():
            self.mean.lerp_(k.mean((0, 1)), 0.1)
        return k - self.mean


class ItsArgument(Model):
    def keys(self, k):
        with torch.no_grad():
            same = k.contiguous().to(torch.float32)
        return same * 2


class Overwritten(Model):
    """The rows that are overwritten keep their gradient."""

    def keys(self, k):
        k = k * 3
        with torch.no_grad():
            k[:, :2] = 1.0
        return k


class Scaled(Model):
    def keys(self, k):
        k = k.sin()
        with torch.no_grad():
            k.mul_(2.0)
        return k


class OfItsWeight(Model):
    """A weight that is kept small, as a max-norm constraint does."""

    def keys(self, k):
        with torch.no_grad():
            self.scale.clamp_(-0.3, 0.3)
        return k * self.scale


KINDS = (InCache, Copied, Reshaped, OfRunningMean, ItsArgument, Overwritten, Scaled, OfItsWeight)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_pytorchs(kind):
    model = kind()
    twin, compiled = copy.deepcopy(model), weft.compile(model)
    for _ in range(3):
        x, cotangent = torch.randn(2, 6, 4), torch.randn(2, 6, 6)
        for each in (twin, compiled):
            each.zero_grad()
            (each(x) * cotangent).sum().backward()
        torch.testing.assert_close(compiled.cache, twin.cache)
        torch.testing.assert_close(compiled.mean, twin.mean)
        for own, theirs in zip(compiled.parameters(), twin.parameters()):
            assert (own.grad is None) == (theirs.grad is None)
            if own.grad is not None:
                torch.testing.assert_close(own.grad, theirs.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", (InCache, Copied, Reshaped, OfRunningMean, ItsArgument))
def test_they_are_compiled(kind):
    compiled = weft.compile(kind())
    for _ in range(2):
        compiled(torch.randn(2, 6, 4)).sum().backward()
    assert weft.stats(compiled)["breaks"] == []
