# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Iterators from outside that are made of others, and what C would iterate over within a call."""

import itertools

import pytest
import torch
from observing import beside_eager, compiled, is_without_breaks, values, whole
from torch import nn

import weft
from weft import _capture

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

NUMBERS = [float(i) + 1 for i in range(7)]
MAKERS = {
    "cycle": lambda: itertools.cycle(NUMBERS[:3]),
    "cycle of range": lambda: itertools.cycle(range(1, 4)),
    "cycle of nothing": lambda: itertools.cycle([]),
    "cycle of enumerate": lambda: itertools.cycle(enumerate(NUMBERS[:3])),
    "enumerate": lambda: enumerate(NUMBERS, 5),
    "enumerate beyond 64 bits": lambda: enumerate(NUMBERS, 2**63 - 3),
    "zip": lambda: zip(NUMBERS, range(9), tuple(NUMBERS)),
    "strict zip": lambda: zip(NUMBERS, NUMBERS[:3], strict=True),
    "zip of nothing": lambda: zip(),
    "reversed list": lambda: reversed(NUMBERS),
    "reversed tuple": lambda: reversed(tuple(NUMBERS)),
    "islice": lambda: itertools.islice(NUMBERS, 1, 6, 2),
    "islice of cycle": lambda: itertools.islice(itertools.cycle(NUMBERS[:2]), 7),
    "chain": lambda: itertools.chain(NUMBERS[:2], (), tuple(NUMBERS[4:]), range(2)),
    "repeat": lambda: itertools.repeat(2.0, 3),
    "repeat for ever": lambda: itertools.repeat(2.0),
    "count": lambda: itertools.count(3, 2),
    "count in floats": lambda: itertools.count(0.5, 0.25),
    "count beyond 64 bits": lambda: itertools.count(2**63 - 2, 1),
    "pairwise": lambda: itertools.pairwise(NUMBERS),
    "zip of all": lambda: zip(enumerate(reversed(NUMBERS)), itertools.cycle("ab" and [1, 2])),
}


def taken(iterator, count):
    """What `next` gives so many times, errors among them."""
    found = []
    for _ in range(count):
        try:
            found.append(next(iterator))
        except (StopIteration, ValueError) as error:
            found.append(type(error))
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_positions_are_told_and_set(name):
    make = MAKERS[name]
    expected = taken(make(), 20)
    for begin in range(9):
        for count in range(9):
            iterator = make()
            taken(iterator, begin)
            position = _capture.position_of(iterator)
            assert taken(iterator, count) == expected[begin : begin + count]
            _capture.set_position(iterator, position)
            del position
            assert taken(iterator, 9) == expected[begin : begin + 9]


class Taking(nn.Module):
    def __init__(self, iterator):
        super().__init__()
        self.iterator = iterator

    def forward(self, x):
        item = next(self.iterator, None)
        while isinstance(item, tuple):
            x, item = x + len(item), item[0]
        return x if item is None else x * item


@pytest.mark.parametrize("name", MAKERS)
def test_each_call_takes_the_next_item(name):
    model, expected = Taking(MAKERS[name]()), Taking(MAKERS[name]())
    fast = compiled(model)
    for _ in range(12):
        found = []
        for each in (fast, expected):
            try:
                found.append(each(values()).tolist())
            except ValueError as error:  # of a strict zip
                found.append(str(error))
        assert found[0] == found[1]
    assert taken(model.iterator, 3) == taken(expected.iterator, 3)
    # Iterators that give tuples of numbers are captured for each of these.
    if isinstance(next(MAKERS[name](), None), float):
        assert whole(fast, 6)


def test_batches_that_come_again():
    def make():
        batches = [(torch.ones(3) * i, torch.arange(3) + i) for i in range(3)]
        iterator = itertools.cycle(batches)

        def step(x):
            image, label = next(iterator)
            return (x * image).sum() + label

        return step, lambda number: (values() + number,), tuple

    fast = beside_eager(make, 10, backend="native")
    assert whole(fast, 8)


def test_modules_in_turn():
    def make():
        torch.manual_seed(0)
        layers = itertools.cycle([nn.Linear(3, 3), nn.Linear(3, 3)])
        return lambda x: next(layers)(x)

    fast = beside_eager(make, 10)
    assert whole(fast, 6)


def test_a_cycle_that_the_call_makes():
    class Model(nn.Module):
        def forward(self, x):
            if not hasattr(self, "scales"):
                self.scales = itertools.cycle([1.0, 2.0, 3.0])
                return x
            return x * next(self.scales)

    fast = beside_eager(Model, 10)
    assert weft.stats(fast)["hits"] >= 5


def test_parts_that_others_step():
    def make():
        inner = iter(NUMBERS * 3)
        pairs = itertools.pairwise(inner)

        def step(x):
            a, b = next(pairs)
            return x * a + b * next(inner)

        return step

    fast = beside_eager(make, 6)
    assert "whose parts others may step" in weft.stats(fast)["breaks"][0]


def test_parts_that_somebody_gets_between_calls():
    def make():
        pairs = itertools.islice(iter(NUMBERS * 9), 40)
        others = []

        def step(x):
            for each in others:
                x = x + next(each)
            return x * next(pairs)

        return step, lambda number: (values(),), lambda: None, pairs, others

    def change(number, world):
        if number == 4:
            _, _, _, pairs, others = world
            others.append(pairs.__reduce__()[1][0])  # what it goes over

    fast = beside_eager(make, 8, change)
    assert "whose parts others may step" in weft.stats(fast)["breaks"][0]


def test_lists_below_that_the_call_changes():
    def make():
        items = [1.0, 2.0, 3.0]
        scales = itertools.cycle(items)

        def step(x):
            items.append(4.0)
            return x * next(scales)

        return step, lambda number: (values(),), lambda: items

    beside_eager(make, 8)


def test_the_list_below_is_the_one_that_the_call_changes_by_now():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept, self.items = [], [1.0, 2.0, 3.0, 4.0]
            self.scales = zip(self.items)

        def forward(self, x):
            self.kept.append(9.0)
            return x * next(self.scales, (0.0,))[0]

    def make():
        model = Model()
        return model, lambda number: (values(),), lambda: (model.kept, model.items)

    def change(number, world):
        model = world[0]
        if number == 3:
            model.kept = model.items

    beside_eager(make, 12, change)


# What sum, any and filter go over in C.

OVER = {
    "chain": lambda xs: itertools.chain(xs, xs[:1]),
    "islice": lambda xs: itertools.islice(xs, 1, None),
    "cycle": lambda xs: itertools.islice(itertools.cycle(xs), 5),
    "repeat": lambda xs: itertools.repeat(xs[0], 3),
    "takewhile": lambda xs: itertools.takewhile(lambda each: each.dim() == 1, xs),
    "reversed": reversed,
    "starmap": lambda xs: itertools.starmap(torch.mul, zip(xs, xs)),
    "filter": lambda xs: filter(lambda each: each.sum() > 5, xs),
    "dropwhile": lambda xs: itertools.dropwhile(lambda each: each.sum() < 5, xs),
    "filterfalse": lambda xs: itertools.filterfalse(lambda each: each.sum() < 5, xs),
}


def lists(number):
    return ([values() * (i + number % 2) for i in range(2 + number // 4)],)


@pytest.mark.parametrize("over", OVER)
def test_sums(over):
    def step(xs):
        return sum(OVER[over](xs)), sum(OVER[over](xs), 1.0), sum(OVER[over](xs), start=xs[0])

    fast = beside_eager(lambda: (step, lists, tuple), 8)
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] >= 2


@pytest.mark.parametrize("fold", [any, all])
@pytest.mark.parametrize("lazy", [True, False])
def test_any_and_all_of_tensors(fold, lazy):
    seen = []

    def step(xs):
        seen.clear()
        found = (seen.append(i) or each.sum() > 6 for i, each in enumerate(xs))
        return xs[0] * 2 if fold(found if lazy else itertools.chain(found)) else xs[0]

    fast = beside_eager(lambda: (step, lists, lambda: list(seen)), 8)
    assert is_without_breaks(fast)


@pytest.mark.parametrize("fold", [any, all])
def test_any_and_all_of_lists_of_tensors(fold):
    def step(xs):
        found = fold([each.sum() > 6 for each in xs]), fold(tuple(xs[0] > 2)), fold([True, 1, ""])
        return xs[0] * 2 if found[0] else xs[0], found

    fast = beside_eager(lambda: (step, lists, tuple), 8)
    assert is_without_breaks(fast)


def test_loaders_of_data():
    def make():
        torch.manual_seed(0)
        inner = nn.Linear(3, 3)
        loader = torch.utils.data.DataLoader(torch.arange(12.0).view(4, 3), batch_size=2)
        return lambda x: sum(inner(each).sum() for each in loader) * x

    fast = beside_eager(make, 6)
    assert "iterates over a DataLoader" in weft.stats(fast)["breaks"][0]
    assert weft.stats(fast)["parts"]["Linear"] > 0
