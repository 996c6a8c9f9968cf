# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a call that other results are computed of: whoever looks at their gradients sees those
of eager execution, though a program gives the gradients of the call's inputs at once."""

import copy
import functools

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.utils.checkpoint import checkpoint

import weft


class Layers(nn.Module):
    """With hidden states, a result that is computed of one of them, and one that is of none."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.last, self.drop = nn.Linear(4, 2), nn.Dropout(0.3)

    def forward(self, x):
        hidden = [x]
        for layer in self.layers:
            hidden.append(self.drop(torch.tanh(layer(hidden[-1]))) + hidden[-1])
        return {
            "logits": self.last(hidden[-1]) + hidden[1].sum(),
            "hidden": hidden[1:],
            "aside": hidden[1].exp(),
            "copy": hidden[1].clone(),
            "other": x.sin() * self.last.bias.sum(),
        }


def retained(module, x, given):
    found = []
    for kept in ([1], [0, 2], [0, 1, 2]):
        results = module(x)
        for number in kept:
            results["hidden"][number].retain_grad()
        results["aside"].retain_grad()
        results["copy"].retain_grad()
        loss = results["logits"].square().sum() + results["other"].sum()
        (loss + results["hidden"][2].sum()).backward()
        found += [results["hidden"][number].grad for number in kept] + [
            results["aside"].grad,
            results["copy"].grad,
        ]
    return found


def hooked(module, x, given):
    seen = []
    results = module(x)
    results["hidden"][1].register_hook(lambda gradient: seen.append(gradient) or gradient * 0.5)
    (results["logits"] * given).sum().backward(retain_graph=True)
    results["hidden"][2].backward(x.detach().cos())
    return seen


def asked(module, x, given):
    results = module(x)
    first, second, third = results["hidden"]
    loss, found = (results["logits"] * given).sum(), []
    for wanted in ([first, x, module.last.weight], [second], [get_gradient_edge(third)], [x]):
        found += torch.autograd.grad(loss, wanted, retain_graph=True)
    found += torch.autograd.grad(second.sum(), [third, x], retain_graph=True, allow_unused=True)
    found += torch.autograd.grad(results["aside"].sum(), first, retain_graph=True)
    batch = torch.eye(2, dtype=x.dtype)[:, None].expand(2, 3, 2)
    for wanted in ([first, x], [x]):
        found += torch.autograd.grad(
            results["logits"], wanted, batch, retain_graph=True, is_grads_batched=True
        )
    loss.backward(inputs=[x, second])
    return [*found, second.grad]


def asked_twice(module, x, given):
    """The gradient of a gradient on its way."""
    results = module(x)
    found = torch.autograd.grad(
        results["logits"].square().sum(), results["hidden"][:2], create_graph=True
    )
    sum(each.square().sum() for each in found).backward()
    return [each.detach() for each in found]


def test_gradients_on_their_way(verified):
    torch.manual_seed(0)
    twin = Layers().double()
    fast = weft.compile(copy.deepcopy(twin))
    fast(torch.randn(3, 4, dtype=torch.float64, requires_grad=True))
    for look in (retained, hooked, asked, asked_twice):
        outcomes = []
        for module in (twin, fast):
            torch.manual_seed(1)
            x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
            found = look(module, x, torch.randn(3, 2, dtype=torch.float64))
            parameters = [each.grad for each in module.parameters()]
            outcomes.append([found, x.grad, parameters, torch.get_rng_state()])
            module.zero_grad()
        torch.testing.assert_close(*outcomes)
    stats = weft.stats(fast)
    assert stats["hits"] >= 6 and not stats["breaks"], stats


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)

    def forward(self, x):
        features = torch.relu(self.norm(self.first(x)))
        return self.last(features.mean(2)), features


def test_features_of_a_norm_whose_statistics_are_written_since(verified):
    torch.manual_seed(0)
    twin = Features().double()
    fast = weft.compile(copy.deepcopy(twin))
    for is_training in (True, True, False, False):
        x, found = torch.randn(2, 2, 6, dtype=torch.float64), []
        for module in (twin, fast):
            module.train(is_training)
            logits, features = module(x)
            module.train()(x + 1)
            (slopes,) = torch.autograd.grad(logits[:, 1].sum(), features, retain_graph=True)
            features.retain_grad()
            logits.sum().backward()
            found.append([slopes, features.grad, module.first.weight.grad, module.norm.weight.grad])
        torch.testing.assert_close(*found)
    assert weft.stats(fast)["hits"] >= 4 and not weft.stats(fast)["breaks"]


@weft.compile
def with_its_view(x):
    states = x.tanh()
    last = states[:, -1]
    return last.exp(), states, last


def test_results_of_a_view_that_is_returned(verified):
    """Which PyTorch makes of the result that it shows: no program leads to it."""
    for _ in range(4):
        x = torch.randn(2, 3, 4, requires_grad=True)
        result, states, last = with_its_view(x)
        by_states, by_last = torch.autograd.grad(result.sum(), [states, last])
        torch.testing.assert_close([by_states[:, -1], by_last], [result, result])
        assert not by_states[:, :-1].any()


def steps(x, weight):
    """The first result is computed of both others, the last one is a copy of the second."""
    first = x * 2
    second = first.clone()
    return (first - weight).sin() * second * x, first, second


def written_since(call, x, weight, seen):
    """After a write in place a hook from before stays where it was."""
    last, first, _ = call(x, weight)
    first.register_hook(lambda gradient: seen.append(gradient) or gradient * 2)
    first.mul_(3)
    last.sum().backward()


def asked_of_one(call, x, weight, seen):
    """The second backward comes by no result."""
    last, first, _ = call(x, weight)
    last.sum().backward(inputs=[first, x], retain_graph=True)
    last.sum().backward(inputs=[weight])
    seen.append(first.grad)


def copied(call, x, weight, seen):
    last, first, second = call(x, weight)
    first.retain_grad()
    second.register_hook(lambda gradient: seen.append(gradient) or gradient * 2)
    (last.sum() + second.exp().sum()).backward()
    seen.append(first.grad)


def within_a_hook(call, x, weight, seen):
    """One backward runs another."""
    last, first, _ = call(x, weight)

    def look(gradient):
        if not seen:
            seen.append(gradient)
            wanted = [x, weight]
            seen.extend(torch.autograd.grad(last, wanted, last.detach().cos(), retain_graph=True))
        return gradient * 2

    first.register_hook(look)
    last.sum().backward(retain_graph=True)


def within_a_checkpoint(call, x, weight, seen):
    """What is saved is given once."""
    last, first, second = checkpoint(call, x, weight, use_reentrant=False)
    first.retain_grad()
    second.retain_grad()
    last.sum().backward()
    seen += [first.grad, second.grad]


def seen_by(look, call):
    torch.manual_seed(0)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, dtype=torch.float64, requires_grad=True)
    seen = []
    look(call, x, weight, seen)
    return [seen, x.grad, weight.grad]


def test_gradients_of_steps():
    fast = weft.compile(steps)
    looks = (written_since, asked_of_one, copied, within_a_hook, within_a_checkpoint)
    for look in (copied, *looks):
        torch.testing.assert_close(seen_by(look, steps), seen_by(look, fast))
    assert weft.stats(fast)["hits"] >= 5


def parts(x):
    spectrum = torch.complex(x, x.sin())
    return spectrum.abs(), spectrum


def siblings(x):
    x = x.sin()
    left, right = x.clone(), x.clone()
    return left * right.exp(), left, right


def test_results_whose_order_a_graph_does_not_tell():
    for plain in (parts, siblings):
        found = []
        for call in (plain, weft.compile(plain)):
            for _ in range(2):
                x = torch.linspace(1, 2, 3, dtype=torch.float64, requires_grad=True)
                last, *others = call(x)
                for other in others:
                    other.retain_grad()
                last.sum().backward()
            found.append([x.grad, *[other.grad for other in others]])
        torch.testing.assert_close(*found)


def _note(called, number, given):
    assert given is not None
    called.append(number)


def test_hooks_of_results_that_nobody_used_are_not_called():
    """Of one that others are computed of, too, and of a call that draws random numbers."""

    def function(x, y):
        hidden = torch.nn.functional.dropout(x.sin(), 0.5)
        return hidden, hidden.exp(), y.cos()

    compiled = weft.compile(function)
    for used in (0, 1, 2, 2):
        called = []
        x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
        results = compiled(x, y)
        for number, each in enumerate(results):
            each.register_hook(functools.partial(_note, called, number))
        results[used].sum().backward()
        assert called == [[0], [1, 0], [2]][used]
    assert weft.stats(compiled)["hits"] >= 3, weft.stats(compiled)
