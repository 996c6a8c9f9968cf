# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks around the forwards of modules are captured, with what they read and change."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scale, self.calls, self.kept = 2.0, 0, None
        self.handle = self.hook()

    def hook(self):
        return self.first.register_forward_hook(lambda module, args, out: out * 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class OfTheRoot(Net):
    def hook(self):
        return self.register_forward_hook(lambda module, args, out: out + 1)


class BeforeTheForward(Net):
    def hook(self):
        return self.first.register_forward_pre_hook(lambda module, args: args[0].tanh())


class WithKeywords(Net):
    def hook(self):
        double = lambda module, args, kwargs: ((args[0] * 2,), kwargs)  # noqa: E731
        self.first.register_forward_pre_hook(double, with_kwargs=True)
        count = lambda module, args, kwargs, out: out + len(kwargs)  # noqa: E731
        return self.first.register_forward_hook(count, with_kwargs=True)


class Ordered(Net):
    def hook(self):
        self.first.register_forward_hook(lambda module, args, out: out + 1)
        return self.first.register_forward_hook(lambda module, args, out: out * 2, prepend=True)


class ReadsTheModule(Net):
    def hook(self):
        return self.first.register_forward_hook(self.scaled)

    def scaled(self, module, args, out):
        return out * self.scale


class Counts(Net):
    def hook(self):
        return self.first.register_forward_hook(self.counted)

    def counted(self, module, args, out):
        self.calls += 1


class Keeps(Net):
    def hook(self):
        return self.first.register_forward_hook(self.keep)

    def keep(self, module, args, out):
        self.kept = out


class Once(Net):
    def hook(self):
        return self.first.register_forward_hook(self.once)

    def once(self, module, args, out):
        self.handle.remove()
        return out * 3


class ByData(Net):
    def hook(self):
        return self.first.register_forward_hook(
            lambda module, args, out: out * 2 if out.sum() > 0 else out
        )


class Draws(Net):
    def hook(self):
        return self.first.register_forward_hook(
            lambda module, args, out: out + torch.rand_like(out)
        )


class Requires(Net):
    """As gradient checkpointing makes sure of gradients."""

    def hook(self):
        return self.first.register_forward_hook(lambda module, args, out: out.requires_grad_(True))


class Scoped(Net):
    def hook(self):
        return None

    def forward(self, x):
        found = []
        handle = self.first.register_forward_hook(lambda module, args, out: found.append(out))
        try:
            return super().forward(x) + 2 * self.first(x) if x.shape[0] == 1 else self.first(x)
        finally:
            handle.remove()


class Leaks(Net):
    def hook(self):
        return None

    def forward(self, x):
        super().hook()
        return super().forward(x)


KINDS = [OfTheRoot, BeforeTheForward, WithKeywords, Ordered, ReadsTheModule, Counts, Keeps, Once]
KINDS += [ByData, Draws, Requires, Scoped, Leaks, Net]


def hooks(model: nn.Module) -> list[int]:
    return [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("settings", [{}, {"capture": "observe"}], ids=["default", "observe"])
@pytest.mark.parametrize("kind", KINDS)
def test_hooks(kind, settings, verified):
    model, twin = kind(), kind()
    twin.load_state_dict(model.state_dict())
    fast = weft.compile(model, **settings)
    for step in range(7):
        x = torch.randn(3, 4)
        torch.manual_seed(step)
        actual = fast(x)
        torch.manual_seed(step)
        expected = twin(x)
        torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(model.kept, twin.kept)
        assert hooks(model) == hooks(twin) and model.calls == twin.calls
        for each in (model, twin):
            if step == 2:
                each.scale = 5.0
            if step == 4:
                each.second.register_forward_hook(lambda module, args, out: out - 1)
            if step == 5:
                each.second._forward_hooks.clear()


@pytest.mark.parametrize("kind", [Net, OfTheRoot, BeforeTheForward, ReadsTheModule, Requires])
def test_hooked_calls_are_captured(kind, verified):
    fast = weft.compile(kind())
    for _ in range(3):
        fast(torch.randn(3, 4)).sum().backward()
    stats = fast.stats()
    assert stats["graphs"] == 1 and stats["hits"] >= 2 and not stats["breaks"]


def test_whether_a_hook_is_given_keywords(verified):
    """PyTorch keeps the answer beside the hooks."""
    model, twin = Net(), Net()
    twin.load_state_dict(model.state_dict())
    for each in (model, twin):
        each.handle = each.second.register_forward_hook(lambda *call: call[-1] * len(call))
    fast, x = weft.compile(model), torch.randn(3, 4)
    for keywords in (False, True, False):
        for each in (model, twin):
            told = each.second._forward_hooks_with_kwargs
            told.clear()
            if keywords:
                told[each.handle.id] = True
        for _ in range(2):
            torch.testing.assert_close(fast(x), twin(x))


def test_hooks_of_a_backward_run_eagerly(verified):
    model, seen = Net(), []
    model.first.register_full_backward_hook(lambda *call: seen.append(1))
    fast = weft.compile(model)
    for _ in range(2):
        fast(torch.randn(3, 4)).sum().backward()
    assert seen == [1, 1] and "has hooks" in fast.stats()["breaks"][0]
