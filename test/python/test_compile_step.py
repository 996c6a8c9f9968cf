# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole training step as one program, against the same steps by PyTorch."""

from __future__ import annotations

import copy
import functools
import warnings

import pytest
import torch
import torch.nn.functional as F

import weft
from weft.training.update_rules import AdamRule

STEPS = 20
OPTIMIZERS = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.05),
    "sgd_decay": lambda ps: torch.optim.SGD(ps, lr=0.05, weight_decay=0.1, maximize=False),
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9, dampening=0.1),
    "nesterov": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda ps: torch.optim.Adam(ps, lr=0.01),
    "adam_decay": lambda ps: torch.optim.Adam(ps, lr=0.01, weight_decay=0.1),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01, betas=(0.8, 0.95), eps=1e-6),
    "maximize": lambda ps: torch.optim.AdamW(ps, lr=0.01, maximize=True),
    "amsgrad": lambda ps: torch.optim.AdamW(ps, lr=0.01, amsgrad=True),
    "foreach": lambda ps: torch.optim.Adam(ps, lr=0.01, foreach=True),
    "fused": lambda ps: torch.optim.AdamW(ps, lr=0.01, fused=True),
    "tensor_rate": lambda ps: torch.optim.Adam(ps, lr=torch.tensor(0.01)),
}


@pytest.fixture(autouse=True)
def compare_first_calls(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")


def mlp(dtype=torch.float64):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
    return torch.nn.Sequential(*layers).to(dtype)


def batches(dtype=torch.float64, count=STEPS):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        x = torch.randn(5, 6, generator=generator, dtype=torch.float64).to(dtype)
        yield x, torch.randint(3, (5,), generator=generator)


def eager_step(model, loss, optimizer, x, y, clip=lambda ps: None):
    optimizer.zero_grad()
    value = loss(model(x), y)
    value.backward()
    clip(list(model.parameters()))
    optimizer.step()
    return value.detach()


def assert_same_state(own, eager, tolerance=1e-11):
    for key, expected in eager.state_dict().items():
        torch.testing.assert_close(own.state_dict()[key], expected, rtol=tolerance, atol=tolerance)


def assert_same_moments(own, eager, tolerance=1e-11):
    found, expected = own.state_dict(), eager.state_dict()
    assert found["param_groups"] == expected["param_groups"]
    assert found["state"].keys() == expected["state"].keys()
    for number, entries in expected["state"].items():
        assert found["state"][number].keys() == entries.keys()
        for name, value in entries.items():
            own_value = found["state"][number][name]
            torch.testing.assert_close(own_value, value, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps(name):
    model, twin = mlp(), mlp()
    own, eager = (OPTIMIZERS[name](each.parameters()) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own)
    addresses = [each.data_ptr() for each in model.parameters()]
    for x, y in batches():
        expected = eager_step(twin, F.cross_entropy, eager, x, y)
        torch.testing.assert_close(step(x, y), expected)
    assert step.stats() == {"steps": STEPS - step.in_parts, "in_parts": step.in_parts} | {
        "reasons": []
    }
    assert step.in_parts <= 3
    assert [each.data_ptr() for each in model.parameters()] == addresses
    assert_same_state(model, twin)
    assert_same_moments(own, eager)


@pytest.mark.parametrize("max_norm, clip_value", [(0.1, None), (None, 0.01), (0.5, 0.02)])
def test_clipping(max_norm, clip_value):
    model, twin = mlp(), mlp()
    own, eager = (torch.optim.AdamW(each.parameters()) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own, max_norm=max_norm, clip_value=clip_value)

    def clip(params):
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(params, max_norm)
        if clip_value is not None:
            torch.nn.utils.clip_grad_value_(params, clip_value)

    for x, y in batches(count=6):
        eager_step(twin, F.cross_entropy, eager, x, y, clip)
        step(x, y)
    assert step.steps >= 3
    assert_same_state(model, twin)


def test_groups_and_a_schedule():
    def made(model):
        first, last = model[0], model[2]
        optimizer = torch.optim.AdamW(
            [{"params": first.parameters(), "lr": 0.02}, {"params": last.parameters()}], lr=0.01
        )
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    model, twin = mlp(), mlp()
    (own, schedule), (eager, other) = made(model), made(twin)
    step = weft.compile_step(model, F.cross_entropy, own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in batches(count=8):
            eager_step(twin, F.cross_entropy, eager, x, y)
            step(x, y)
            schedule.step()
            other.step()
    assert step.steps >= 5
    assert_same_state(model, twin)
    assert_same_moments(own, eager)


def test_batch_norm_and_dropout():
    """The gradient of the bias ahead of the norm is rounding noise, which Adam divides by 1e-8."""

    def made():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.SiLU(),
            torch.nn.Dropout(0.3), torch.nn.Linear(8, 3),
        ).double()  # fmt: skip

    model, twin = made(), made()
    own, eager = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own)
    for number, (x, y) in enumerate(batches(count=6)):
        torch.manual_seed(number)
        expected = eager_step(twin, F.cross_entropy, eager, x, y)
        torch.manual_seed(number)
        torch.testing.assert_close(step(x, y), expected)
    assert step.steps >= 3, step.reasons
    assert_same_state(model, twin, 1e-8)


def test_a_number_that_changes(automatic_sizes):
    """The first call with a second value is not compiled, since a third might follow."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))
    step = weft.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.01))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in [0.3] * 3 + [0.4] * 4:
            model[1].p = p
            step(torch.ones(5, 6), torch.ones(5, 3))
    assert step.stats() == {"steps": 2, "in_parts": 5, "reasons": []}


def test_float32():
    model, twin = mlp(torch.float32), mlp(torch.float32)
    own, eager = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own)
    for x, y in batches(torch.float32):
        eager_step(twin, F.cross_entropy, eager, x, y)
        step(x, y)
    assert step.steps >= STEPS - 3, step.reasons
    assert_same_state(model, twin, 1e-4)


class Patches(torch.nn.Module):
    """A Transformer, whose attention gives the keys' bias a gradient that is rounding alone."""

    def __init__(self, dropout):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout, batch_first=True)

    def forward(self, x):
        return self.head(self.layer(self.embed(x[:, None] + x[:, :, None])).mean(1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dropout, max_norm", [(0.0, None), (0.1, 1.0)])
def test_a_transformer_by_adamw(dtype, dropout, max_norm):
    model, twin = (Patches(dropout).to(dtype) for _ in range(2))
    own, eager = (torch.optim.AdamW(each.parameters(), 1e-3) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own, max_norm=max_norm)

    def clip(params):
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(params, max_norm)

    for number, (x, y) in enumerate(batches(dtype, count=8)):
        torch.manual_seed(number)
        expected = eager_step(twin, F.cross_entropy, eager, x, y, clip)
        torch.manual_seed(number)
        torch.testing.assert_close(step(x, y), expected)
    assert step.steps >= 5, step.reasons


def test_a_wrong_update_is_noticed(monkeypatch):
    """Noise excuses what stands on noise alone."""
    emit = AdamRule.emit

    def wrong(self, b, param, gradient, state, numbers):
        param, *state = emit(self, b, param, gradient, state, numbers)
        return [b.scalar("mul", param, 1.0001), *state]

    monkeypatch.setattr(AdamRule, "emit", wrong)
    model = Patches(0.0)
    step = weft.compile_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters(), 1e-3))
    with pytest.warns(weft.errors.WeftWarning, match="does not reproduce PyTorch's step"):
        for x, y in batches(torch.float32, count=4):
            step(x, y)
    assert step.steps == 0


def test_arguments_frozen_parameters_and_another_shape():
    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.left, self.right = torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)
            self.left.bias.requires_grad_(False)

        def forward(self, x, y, scale=1.0):
            return self.left(x) + scale * self.right(y)

    model, twin = Sum().double(), Sum().double()
    own, eager = (torch.optim.SGD(each.parameters(), 0.1, 0.9) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own)
    for count, (x, y) in enumerate(batches(count=12)):
        x, y = (x, y) if count % 2 else (x[:3], y[:3])
        eager.zero_grad()
        F.cross_entropy(twin(x, x + 1), y).backward()
        eager.step()
        step((x, x + 1), y)
    assert step.steps >= 6, step.reasons
    assert_same_state(model, twin)


class Plain(torch.optim.Optimizer):
    def step(self):
        for param in self.param_groups[0]["params"]:
            param.data.sub_(param.grad, alpha=0.1)


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda m: torch.optim.RMSprop(m.parameters()), "the optimizer is a RMSprop"),
        # Its groups have neither a decay of weights nor a way to maximize.
        (lambda m: Plain(m.parameters(), {}), "the optimizer is a Plain"),
        (lambda m: torch.optim.SGD(m[0].parameters(), 0.1), "no parameter of the optimizer"),
    ],
)
def test_three_parts(change, reason):
    model, twin = mlp(), mlp()
    own, eager = change(model), change(twin)
    step = weft.compile_step(model, F.cross_entropy, own)
    with pytest.warns(weft.errors.WeftWarning, match=reason):
        for x, y in batches(count=4):
            step(x, y)
            eager_step(twin, F.cross_entropy, eager, x, y)
    assert step.steps == 0 and any(reason in each for each in step.stats()["reasons"])
    assert_same_state(model, twin)


def test_a_hook_sees_the_gradient():
    model, seen = mlp(), []
    step = weft.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    batch = list(batches(count=6))
    for x, y in batch[:4]:
        step(x, y)
    assert step.steps
    model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    with pytest.warns(weft.errors.WeftWarning, match="has hooks"):
        step(*batch[4])
    assert len(seen) == 1


def test_a_loaded_state_is_used():
    model, twin = mlp(), mlp()
    own, eager = (torch.optim.AdamW(each.parameters(), 0.05) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, own)
    batch = list(batches(count=10))
    for x, y in batch[:5]:
        step(x, y)
    twin.load_state_dict(copy.deepcopy(model.state_dict()))
    eager.load_state_dict(copy.deepcopy(own.state_dict()))
    own.load_state_dict(copy.deepcopy(own.state_dict()))
    for x, y in batch[5:]:
        step(x, y)
        eager_step(twin, F.cross_entropy, eager, x, y)
    assert step.steps >= 7
    assert_same_state(model, twin)
    assert_same_moments(own, eager)


class Rotated(torch.nn.Module):
    """Complex numbers as parameters and as a buffer."""

    def __init__(self, dtype):
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        start = torch.randn(4, 2, generator=generator, dtype=torch.float64).to(dtype)
        self.turn = torch.nn.Parameter(torch.view_as_complex(start))
        self.register_buffer("fixed", torch.polar(torch.ones(3), torch.arange(3.0)))
        self.inner = mlp(dtype)
        self.fixed = self.fixed.to(self.turn.dtype)

    def forward(self, x):
        pairs = torch.view_as_complex(x.reshape(-1, 3, 2)) * self.fixed
        turned = torch.view_as_real(pairs * self.turn[:3] + self.turn[3])
        return self.inner(turned.flatten(1)) + self.turn.abs().sum()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", ["nesterov", "adam_decay", "amsgrad"])
def test_complex_parameters(name, dtype):
    own, eager = Rotated(dtype), Rotated(dtype)
    optimizers = [OPTIMIZERS[name](each.parameters()) for each in (own, eager)]
    step = weft.compile_step(own, F.cross_entropy, optimizers[0], max_norm=0.5)
    tolerance = 1e-11 if dtype is torch.float64 else 1e-4
    for x, y in batches(dtype):
        clip = functools.partial(torch.nn.utils.clip_grad_norm_, max_norm=0.5)
        expected = eager_step(eager, F.cross_entropy, optimizers[1], x, y, clip)
        torch.testing.assert_close(step(x, y), expected, rtol=tolerance, atol=tolerance)
    assert step.steps >= STEPS - 3, step.stats()
    assert_same_state(own, eager, tolerance)
    assert_same_moments(optimizers[0], optimizers[1], tolerance)


def test_a_loss_that_is_not_traced_says_so():
    class Branched(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = mlp()

        def forward(self, x):
            y = self.inner(x)
            return y if y.sum() > -1e6 else -y

    own, eager = Branched(), Branched()
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.05) for each in (own, eager)]
    step = weft.compile_step(own, F.cross_entropy, optimizers[0])
    with pytest.warns(weft.errors.WeftWarning, match="three parts"):
        for x, y in batches(count=6):
            expected = eager_step(eager, F.cross_entropy, optimizers[1], x, y)
            torch.testing.assert_close(step(x, y), expected)
    assert_same_state(own, eager)
    (reason,) = step.stats()["reasons"]
    assert "not one program" in reason and step.in_parts == 6


def test_wrong_arguments():
    with pytest.raises(TypeError, match="expected a module"):
        weft.compile_step(torch.sin, F.mse_loss, None)
    with pytest.raises(TypeError, match="expected an optimizer"):
        weft.compile_step(mlp(), F.mse_loss, None)


class Branches(torch.nn.Module):
    """One of whose layers is left out at times."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = (torch.nn.Linear(6, 6, dtype=torch.float64) for _ in range(2))
        self.last = torch.nn.Linear(6, 3, dtype=torch.float64)

    def forward(self, x, both):
        x = self.first(x).relu()
        return self.last(x + self.second(x) if both else x)


def test_parameters_that_other_steps_leave_alone_count_their_own_steps():
    """Adam corrects by the number of updates: two verified programs share parameters, and one
    updates fewer of them. The other is divided by the numbers of updates."""
    model, twin = Branches(), Branches()
    optimizer, other = (torch.optim.Adam(each.parameters(), lr=0.01) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, optimizer)
    ways = [True] * 4 + [False] * 4 + [True] * 4 + [False] + [True] * 2
    for (x, y), both in zip(batches(count=len(ways)), ways, strict=True):
        value = step((x, both), y)
        other.zero_grad()
        expected = F.cross_entropy(twin(x, both), y)
        expected.backward()
        other.step()
        torch.testing.assert_close(value, expected.detach())
    for own, eager in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own, eager, atol=1e-12, rtol=1e-12)
    assert step.in_parts == 5 and not step.reasons


def test_layers_that_are_frozen_for_a_while():
    """Each set of trained parameters has its program, also where layers join one after another:
    the third time that counts of updates differ, each parameter is updated by itself."""
    model, twin = Branches(), Branches()
    optimizer, other = (torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, twin))
    step = weft.compile_step(model, F.cross_entropy, optimizer)
    frozen = [{"second"}, {"first"}, set(), {"first", "second"}, set(), {"last"}, set()]
    ways = [each for each in frozen for _ in range(3)]
    for (x, y), names in zip(batches(count=len(ways)), ways, strict=True):
        for each in (model, twin):
            for name, layer in each.named_children():
                layer.requires_grad_(name not in names)
        other.zero_grad()
        expected = F.cross_entropy(twin(x, True), y)
        expected.backward()
        other.step()
        torch.testing.assert_close(step((x, True), y), expected.detach())
    assert_same_state(model, twin, 1e-12)
    assert_same_moments(optimizer, other, 1e-12)
    assert not step.reasons and step.steps >= 10 and len(step._made) == 5


def test_a_step_leaves_no_gradient_of_what_it_does_not_train():
    model = torch.nn.ModuleDict({name: torch.nn.Linear(6, 3).double() for name in "ab"})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = weft.compile_step(model["a"], F.cross_entropy, optimizer)
    for x, y in batches(count=5):
        before = model["b"].weight.detach().clone()
        F.cross_entropy(model["b"](x), y).backward()
        step(x, y)
        assert all(each.grad is None for each in model.parameters())
        assert torch.equal(model["b"].weight, before)
    assert step.steps


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.leave = torch.nn.Embedding(7, 5), torch.nn.Linear(5, 3)

    def forward(self, words):
        return self.leave(F.dropout(self.embed(words), 0.2))


@pytest.mark.parametrize("words, labels", [([1, 9], [0, 1]), ([1, 2], [0, 5])])
def test_a_batch_that_pytorch_refuses(words, labels):
    """It raises PyTorch's error, and leaves what eager execution leaves; a wrong label is found
    behind the dropout."""
    torch.manual_seed(0)
    ours, theirs = Words(), Words()
    theirs.load_state_dict(ours.state_dict())
    mine, other = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (ours, theirs))
    step = weft.compile_step(ours, F.cross_entropy, mine)
    steps = (step, functools.partial(eager_step, theirs, F.cross_entropy, other))
    good = torch.tensor([1, 2]), torch.tensor([0, 1])
    bad = torch.tensor(words), torch.tensor(labels)
    for count in range(5):
        left = []
        for call in steps:
            torch.manual_seed(count)
            if count == 3:
                with pytest.raises((IndexError, RuntimeError)) as raised:
                    call(*bad)
                left.append((raised.type, str(raised.value)))
            else:
                call(*good)
            left.append(torch.get_rng_state().tolist())
        assert left[: len(left) // 2] == left[len(left) // 2 :]
    assert step.stats()["steps"] == 2
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_batches_of_several_sizes(automatic_sizes):
    """The loss has a program for a range, the optimizer makes the step, and the reason says so."""
    models = mlp(), mlp()
    optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in models]
    step = weft.compile_step(models[0], F.cross_entropy, optimizers[0])
    with pytest.warns(weft.errors.WeftWarning, match="its sizes vary"):
        for size in (5, 7, 9, 4, 6):
            x, y = torch.randn(size, 6, dtype=torch.float64), torch.randint(3, (size,))
            expected = eager_step(models[1], F.cross_entropy, optimizers[1], x, y)
            torch.testing.assert_close(step(x, y), expected, rtol=1e-12, atol=1e-12)
    assert step.in_parts == 5 and all("sizes vary" in each for each in step.reasons)
