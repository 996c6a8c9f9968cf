# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain numbers in dicts and lists that a module holds, such as the weights of a loss, and in
globals: a second value makes an input."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict, defaultdict

import pytest
import torch
import torch.nn.functional as F

import weft

X = torch.linspace(-3, 3, 60).reshape(4, 15)
pytestmark = [
    pytest.mark.usefixtures("automatic_sizes"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


SCALE, ROWS = 1.0, 3
SETTINGS = {"temperature": 1.0}


class Weighted(torch.nn.Module):
    def __init__(self, use):
        super().__init__()
        self.use = use
        self.weights = {"a": 1.0, "b": 0.5}
        self.ordered = OrderedDict(x=1.0, y=2.0)
        self.default = defaultdict(float, p=0.25)
        self.by_number = {0: 0.5, 1: 1.5}
        self.scales = [1.0, 2.0]
        self.nested = {"steps": [1.0, {"deep": 0.5}]}
        self.sizes = [5, 3]
        self.free = [1.0, 2.0]  # nothing reads it

    def forward(self, x):
        return self.use(self, x)


def parts(x):
    return x.mean(), x.std()


# What takes numbers of plain computations only: one program stands for all of their values.
PLAIN = {
    "an entry": lambda m, x: m.weights["a"] * x + m.weights["b"],
    "get": lambda m, x: x * m.weights.get("a", 3.0),
    "values": lambda m, x: sum(w * p for w, p in zip(m.weights.values(), parts(x))),
    "items": lambda m, x: {k: w * x for k, w in m.weights.items()},
    "ordered": lambda m, x: sum(w * p for w, p in zip(m.ordered.values(), parts(x))),
    "default": lambda m, x: x * m.default["p"],
    "numbered": lambda m, x: sum(m.by_number[i] * p for i, p in enumerate(parts(x))),
    "an item": lambda m, x: x * m.scales[0] - m.scales[-1],
    "iteration": lambda m, x: [w * x for w in m.scales],
    "unpacked": lambda m, x: torch.add(x, *(x,), alpha=[*m.scales][1]),
    "arithmetic": lambda m, x: x / (abs(m.scales[0]) + math.exp(-abs(m.weights["b"]))),
    "sum": lambda m, x: x * sum(m.scales),
    "a tensor": lambda m, x: x[:, :2] * torch.tensor(m.scales),
    "nested": lambda m, x: x * m.nested["steps"][0] + m.nested["steps"][1]["deep"],
}
# What looks at numbers, or changes them.
OTHER = {
    "a branch": lambda m, x: x * 2 if m.weights["a"] > 1.5 else x - m.scales[0],
    "most": lambda m, x: x * max(m.scales),
    "sorted": lambda m, x: x * sorted(m.scales)[0],
    "text": lambda m, x: (x, f"{m.scales[0]:.2f}", str(m.weights)),
    "equality": lambda m, x: x if m.scales == [1.0, 2.0] else -x,
    "within": lambda m, x: x * (2 if 2.0 in m.scales else 3),
    "length": lambda m, x: x * len(m.scales),
    "sizes": lambda m, x: F.softmax(x[:, : m.sizes[0]], -1) * m.sizes[1],
    "copy": lambda m, x: x * copy.deepcopy(m.weights)["a"],
    "result": lambda m, x: (x * m.scales[0], m.scales[1], m.weights["a"]),
    "whole": lambda m, x: (x, m.scales),
}


def changes(number, m):
    m.weights["a"] = 0.75 * number + 0.25
    m.weights["b"] = -0.5 * number
    m.ordered["y"] = m.default["p"] = m.by_number[1] = 0.5 * number
    m.scales[0] = float(number)
    m.scales[1] = 2.5 - number
    m.nested["steps"][0] = number * 1.5
    m.nested["steps"][1]["deep"] = number / 3
    m.free[0] = number * 7.0


def agree(fast, twin):
    found, expected = fast(X), twin(X)
    assert str(found) == str(expected) or torch.testing.assert_close(
        found, expected, rtol=2e-6, atol=2e-6
    ) is None  # fmt: skip


def pair(use):
    models = [Weighted(use) for _ in range(2)]
    return weft.compile(models[0]), models


@pytest.mark.parametrize("what", PLAIN)
@pytest.mark.usefixtures("verified")
def test_one_program_stands_for_all_numbers(what):
    fast, models = pair(PLAIN[what])
    for number in (1, 3, 0, 4, 5, 2, 7):
        for model in models:
            changes(number, model)
        agree(fast, models[1])
    stats = weft.stats(fast)
    assert stats["captures"] == 2 and not stats["breaks"], stats
    assert all(type(each) is float for each in [*models[0].scales, *models[0].weights.values()])


@pytest.mark.usefixtures("verified")
def test_gradients():
    fast, models = pair(
        lambda m, x: sum(w * p for w, p in zip(m.scales, parts(x * m.weights["a"])))
    )
    for number in (1, 3, 0, 4, 5):
        found = []
        for call, model in zip((fast, models[1]), models):
            changes(number, model)
            x = X.clone().requires_grad_()
            call(x).backward()
            found.append(x.grad)
        torch.testing.assert_close(*found, rtol=2e-6, atol=2e-6)
    assert weft.stats(fast)["captures"] == 2


@pytest.mark.parametrize("what", OTHER)
@pytest.mark.usefixtures("verified")
def test_what_looks_at_numbers(what):
    fast, models = pair(OTHER[what])
    for number in (1, 3, 0, 4, 5, 2, 7, 1, 3):
        for model in models:
            changes(number, model)
            model.sizes[0] = 3 + number % 4
        agree(fast, models[1])


@pytest.mark.usefixtures("verified")
def test_other_kinds_of_changes():
    fast, models = pair(lambda m, x: x * sum(m.scales) + sum(m.weights.values()))

    def call(change):
        for model in models:
            change(model)
        agree(fast, models[1])

    for number in (1, 2, 3):
        call(lambda m, number=number: changes(number, m))
    call(lambda m: m.scales.append(4.0))
    call(lambda m: m.scales.pop(0))
    call(lambda m: m.weights.update(c=3.0))
    call(lambda m: m.weights.pop("a"))
    call(lambda m: m.weights.update(b=2))
    call(lambda m: m.weights.update(b=True))
    call(lambda m: m.weights.update(b=math.nan))
    call(lambda m: m.scales.__setitem__(0, 2**70))
    call(lambda m: setattr(m, "scales", [3.0, 5.0]))
    call(lambda m: setattr(m, "weights", {"b": 3.0}))
    call(lambda m: m.scales.__setitem__(0, 7.0))
    call(lambda m: m.scales.__setitem__(0, 8.0))


@pytest.mark.parametrize(
    "use",
    [
        lambda m, x: (m.weights.update(a=m.weights["a"] + 1), x * m.weights["a"])[1],
        lambda m, x: (m.scales.append(m.scales[-1] / 2), x * m.scales[0])[1],
        lambda m, x: (m.scales.__setitem__(0, m.scales[1]), x * m.scales[0])[1],
        lambda m, x: (m.scales.sort(), x * m.scales[0])[1],
    ],
)
@pytest.mark.usefixtures("verified")
def test_numbers_that_the_call_changes(use):
    fast, models = pair(use)
    for number in range(8):
        if number > 3:
            for model in models:
                model.scales[1] = number / 2
        agree(fast, models[1])
        assert models[0].weights == models[1].weights and models[0].scales == models[1].scales


def scaled(x):
    return torch.softmax(x[:ROWS] / SETTINGS["temperature"], -1) * SCALE + math.pi


def branched(x):
    return x * 2 if SCALE > 4 else x / SCALE


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * SCALE - SETTINGS["temperature"]


@pytest.mark.parametrize("target", [scaled, branched, Scaled()])
@pytest.mark.usefixtures("verified")
def test_globals(target, monkeypatch):
    fast = weft.compile(target)
    eager = Scaled() if isinstance(target, torch.nn.Module) else target
    for number in range(1, 9):
        monkeypatch.setitem(globals(), "SCALE", number + 0.5)
        monkeypatch.setitem(SETTINGS, "temperature", number * 2.0)
        agree(fast, eager)
    assert weft.stats(fast)["captures"] == (3 if target is branched else 2)
    for scale in (3, True, math.nan, 2.5):
        monkeypatch.setitem(globals(), "SCALE", scale)
        agree(fast, eager)
    monkeypatch.setitem(globals(), "ROWS", 2)
    agree(fast, eager)
    monkeypatch.setitem(globals(), "SCALE", torch.tensor(3.0))
    agree(fast, eager)


@pytest.mark.usefixtures("verified")
def test_a_global_that_the_call_changes(monkeypatch):
    def counts(x):
        global SCALE
        SCALE += 1
        return x * SCALE

    fast = weft.compile(counts)
    monkeypatch.setitem(globals(), "SCALE", 0.0)
    for number in range(1, 7):
        torch.testing.assert_close(fast(X), X * number)
    assert number == SCALE
