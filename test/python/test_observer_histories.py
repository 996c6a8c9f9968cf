# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Histories that calls fill and ask, and counters whose entries a call makes: after the second
capture one program stands for all."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, IntEnum

import pytest
import torch
from observing import beside_eager, captures, is_whole, values
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def by_number(number):
    return (values() * (number + 1) * 0.25,)


class Losses(nn.Module):
    def __init__(self, ask, kind=list):
        super().__init__()
        self.ask, self.losses = ask, kind()

    def forward(self, x):
        self.losses.append(x.sum().item())
        return x * 2, self.ask(self.losses)


def every_second(losses):
    return "second" if len(losses) % 2 == 0 else "first"


QUESTIONS = {
    "length": len,
    "sum": sum,
    "mean": lambda losses: sum(losses) / len(losses),
    "least": min,
    "greatest": lambda losses: max(losses) - 1,
    "every second": every_second,
    "truth": lambda losses: 1 if losses else 0,
    "text": lambda losses: f"{sum(losses) / len(losses):.3f} of {len(losses)}",
}


@pytest.mark.parametrize("backend", ["eager", None])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_list_that_grows(question, backend):
    def make():
        model = Losses(QUESTIONS[question])
        return model, by_number, lambda: model.losses, model

    fast = beside_eager(make, 20, backend=backend) if backend else None
    if fast is None:
        pairs = [make(), make()]
        fast = weft.compile(pairs[0][0])
        for number in range(12):
            (_, found), (_, expected) = fast(*by_number(number)), pairs[1][0](*by_number(number))
            assert found == pytest.approx(expected) if question != "text" else found == expected
            assert pairs[0][3].losses == pytest.approx(pairs[1][3].losses)
    assert is_whole(fast) and weft.stats(fast)["graphs"] <= 3


@pytest.mark.parametrize("question", ["mean", "length", "greatest"])
def test_a_deque_that_is_full(question):
    def make():
        model = Losses(QUESTIONS[question], lambda: deque(maxlen=3))
        return model, by_number, lambda: model.losses, model

    fast = beside_eager(make, 20)
    assert is_whole(fast) and captures(fast) <= 3


def test_a_history_that_others_change():
    def make():
        model = Losses(QUESTIONS["mean"])
        return model, by_number, lambda: model.losses, model

    def change(number, world):
        losses = world[3].losses
        if number == 5:
            losses.clear()
        if number == 7:
            losses.append(3)
        if number == 9:
            losses.append(torch.ones(1))
        if number == 11:
            world[3].losses = [1, 2]
        if number == 13:
            losses[:] = [Number(1.0), Number(2.0)]

    beside_eager(make, 16, change)


class Number(float):
    def __radd__(self, other):
        return other + 100.0


def test_histories_that_are_asked_before_and_behind_and_read():
    def make():
        losses = []

        def step(x):
            before = len(losses)
            losses.append(x.sum().item())
            behind = len(losses)
            if behind == 6:
                losses.pop(0)
            return before, behind, losses[-1], sum(losses), [each * 2 for each in losses[:1]]

        return step, by_number, lambda: losses, losses

    beside_eager(make, 9)


def test_a_history_of_an_argument_is_another_list():
    def make():
        kept = []

        def step(x, losses):
            kept.append(1.0)
            losses.append(2.0)
            return x * len(kept) + len(losses)

        return step, lambda number: (values(), kept if number == 8 else [1.0]), lambda: kept

    beside_eager(make, 12)


class Mode(Enum):
    TRAIN = 1
    TEST = 2


class Number2(IntEnum):
    FIRST = 0
    SECOND = 1


@pytest.mark.parametrize("kind", [Counter, lambda: defaultdict(int), lambda: defaultdict(float)])
@pytest.mark.parametrize("key", [Mode.TRAIN, Number2.FIRST, "a", 3])
def test_entries_that_are_made_and_counted(kind, key):
    def make():
        counts = kind()

        def step(x):
            counts[key] += 1
            counts["sum"] += x.sum().item()
            return x + 1, counts["sum"] / counts[key]

        return step, by_number, lambda: [*counts.items()], counts

    def change(number, world):
        if number == 12:
            world[3][key] = 0.5
        if number == 15:
            del world[3][key]

    fast = beside_eager(make, 12)
    assert is_whole(fast) and captures(fast) <= 3
    beside_eager(make, 20, change)


@pytest.mark.parametrize("factory", [list, dict, set, str, tuple])
def test_entries_that_a_defaultdict_makes(factory):
    def make():
        made = defaultdict(factory)

        def step(x):
            entry = made["a"]
            if factory is list:
                entry.append(x.sum().item())
            return x + len(made), made["a"] == entry, "b" in made

        return step, by_number, lambda: [*made.items()], made

    def change(number, world):
        if number == 4:
            world[3].clear()
        if number == 6:
            world[3].default_factory = lambda: 5

    beside_eager(make, 8, change)
    assert is_whole(beside_eager(make, 8))


def test_the_factory_of_a_defaultdict_is_guarded():
    def make():
        made = defaultdict(int)

        def step(x):
            return x + made[0]

        return step, by_number, lambda: [*made.items()], made

    def change(number, world):
        world[3].clear()
        if number == 3:
            world[3].default_factory = float
        if number >= 5:
            world[3].default_factory = None
            world[3][0] = 7

    beside_eager(make, 8, change)


def test_items_that_members_of_enumerations_number():
    def make():
        counts = [0, 0]

        def step(x):
            counts[Number2.SECOND] += 1
            return x + 1

        return step, by_number, lambda: counts, counts

    fast = beside_eager(make, 12)
    assert is_whole(fast) and captures(fast) <= 3


def test_a_counter_that_is_updated_from_a_dict():
    def make():
        counts = Counter()

        def step(x):
            counts.update({"a": 2})
            return x + 1

        return step, by_number, lambda: counts, counts

    beside_eager(make, 12)


@dataclass
class Inner:
    steps: int = 0
    total: float = 0.0


@dataclass
class Outer:
    inner: Inner = field(default_factory=Inner)


def test_numbers_of_nested_dataclasses():
    def make():
        state = Outer()

        def step(x):
            state.inner.steps += 1
            state.inner.total += x.sum().item()
            return x * 2, state.inner.total / state.inner.steps

        return step, by_number, lambda: state, state

    fast = beside_eager(make, 20)
    assert is_whole(fast) and captures(fast) <= 3
