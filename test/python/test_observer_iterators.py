# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Iterators that are made outside of a call and consumed in it."""

import copy
import itertools

import pytest
import torch
from observing import answers, compiled, is_whole, values
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Taking(nn.Module):
    def __init__(self, iterator):
        super().__init__()
        self.iterator = iterator

    def forward(self, x):
        return x * next(self.iterator)


def left(iterator):
    """What the iterator has yet to give, at most five items."""
    return list(itertools.islice(copy.copy(iterator), 5))


def captures(function):
    return weft.stats(function)["captures"]


SOURCES = {
    "list": lambda: iter([float(i) for i in range(9)]),
    "tuple": lambda: iter(tuple(i * 1000 for i in range(9))),
    "range": lambda: iter(range(300, 900, 7)),
    "count": lambda: itertools.count(1000),
    "list of tensors": lambda: iter([torch.ones(3) * i for i in range(9)]),
    "tuple of tensors": lambda: iter(tuple(torch.ones(3) * i for i in range(9))),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("backend", ["eager", "weft"])
def test_each_call_takes_the_next_item(source, backend):
    model, expected, x = Taking(SOURCES[source]()), Taking(SOURCES[source]()), values()
    fast = compiled(model) if backend == "eager" else weft.compile(model)
    for _ in range(7):
        assert torch.equal(fast(x), expected(x))
        assert str(left(model.iterator)) == str(left(expected.iterator))
    assert is_whole(fast) and captures(fast) == 1 and weft.stats(fast)["hits"] == 6


def test_an_iterator_at_its_end():
    iterator = iter([2.0, 3.0])

    def step(x):
        value = next(iterator, None)
        return x if value is None else x * value

    fast = compiled(step)
    found = [fast(values()).tolist() for _ in range(5)]
    assert found == [(values() * each).tolist() for each in (2, 3, 1, 1, 1)]
    assert answers(fast)


def test_the_list_grows_while_it_is_iterated():
    items = [1.0, 2.0]
    iterator = iter(items)

    def step(x):
        return x * next(iterator) + len(items)

    fast = compiled(step)
    for number in range(6):
        assert torch.equal(fast(values()), values() * items[number] + len(items))
        items.append(float(number))


def test_a_list_that_the_call_changes_first_is_not_iterated():
    def run(step_of):
        items = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        iterator = iter(items)

        def step(x):
            items[-1] = items[-1] + 1
            return x * next(iterator)

        step = step_of(step)
        return [step(values()).tolist() for _ in range(6)]

    assert run(compiled) == run(lambda step: step)


def test_arguments():
    def step(x, iterator):
        for each in iterator:
            x = x * 2 + each
        return x

    fast = compiled(step)
    for items in ([1.0, 2.0], [3.0, 4.0], [5.0], (6.0, 7.0), [values(), values()], range(2)):
        iterator = iter(items)
        assert torch.equal(fast(values(), iterator), step(values(), iter(items)))
        assert next(iterator, None) is None
    assert answers(fast)


def test_two_arguments_that_are_one_iterator():
    def step(x, first, second):
        return x * next(first) - next(second)

    fast = compiled(step)
    for number in range(8):
        found, expected = [iter([3.0, 5.0, 7.0])], [iter([3.0, 5.0, 7.0])]
        for each in (found, expected):
            each.append(iter([3.0, 5.0]) if number % 3 else each[0])
        assert torch.equal(fast(values(), *found), step(values(), *expected))
        assert left(found[0]) == left(expected[0])


def test_the_list_of_an_argument_is_one_that_the_call_changes():
    def step(x, iterator, items):
        first = next(iterator)
        items.append(first)
        return x * (first + sum(iterator_rest(iterator)))

    def iterator_rest(iterator):
        yield from iterator

    fast = compiled(step)
    for number in range(6):
        results = []
        for each in (fast, step):
            items = [1.0, 2.0]
            other = items if number % 3 == 2 else [9.0]
            results.append((each(values(), iter(items), other).tolist(), items, other))
        assert results[0] == results[1]


class Epochs:
    """Starts over at the end of its data."""

    def __init__(self):
        self.data = [torch.ones(3) * i for i in range(4)]
        self.iterator, self.epoch = None, 0

    def step(self, x):
        if self.iterator is None:
            self.iterator = iter(self.data)
        batch = next(self.iterator, None)
        if batch is None:
            self.epoch += 1
            self.iterator = iter(self.data)
            batch = next(self.iterator)
        return x * batch


def test_epochs():
    found, expected = Epochs(), Epochs()
    fast = compiled(found.step)
    for _ in range(18):
        assert torch.equal(fast(values()), expected.step(values()))
        assert found.epoch == expected.epoch
        assert str(left(found.iterator)) == str(left(expected.iterator))
    assert is_whole(fast) and captures(fast) <= 3


def test_data_that_is_replaced_between_epochs():
    found, expected = Epochs(), Epochs()
    fast = compiled(found.step)
    for number in range(12):
        for each in (found, expected):
            if number == 5:
                each.data = [torch.ones(3) * 7, torch.ones(3) * 9]
        assert torch.equal(fast(values()), expected.step(values()))


def test_an_iterator_that_a_call_makes_and_keeps():
    kept, data = {}, [1.0, 2.0, 3.0]

    def step(x):
        kept["it"] = iter(data)
        for each in kept["it"]:
            x = x * each
            if each > 1.5:
                break
        return x

    fast = compiled(step)
    for number in range(6):
        if number == 3:
            data.insert(0, 1.25)
        assert torch.equal(fast(values()), step(values()))
        fast(values())
        assert left(kept["it"]) == [3.0]
    assert answers(fast)


def test_what_data_decides_about_is_taken_once():
    def make():
        iterator = iter([float(i) for i in range(20)])

        def step(x):
            value = next(iterator)
            return x * value if x.sum() > 0 else x - value + next(iterator)

        return step, iterator

    (found, taken), (expected, other) = make(), make()
    fast = compiled(found)
    for number in range(10):
        x = values() * (number % 3 - 1)
        assert torch.equal(fast(x), expected(x))
        assert left(taken) == left(other)
    assert answers(fast)


def generators():
    count = 0.0
    while True:
        count += 1
        yield count


OTHERS = (
    generators,
    lambda: itertools.cycle(generators()),
    lambda: zip(map(abs, range(99))),
    lambda: map(abs, range(99)),
)


@pytest.mark.parametrize("make", OTHERS)
def test_other_iterators_are_the_interpreters_and_what_is_around_them_has_programs(make):
    inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def step(x, iterator):
        x = inner(x)
        for each in iterator:
            return inner(x) * (each[0] if isinstance(each, tuple) else each)

    fast, taken, other = compiled(step), make(), make()
    for _ in range(12):
        assert torch.equal(fast(values(), taken), step(values(), other))
    stats = weft.stats(fast)
    assert any(each in stats["breaks"][0] for each in ("iterates over", "steps"))
    assert "test_observer_iterators.py:" in stats["breaks"][0]
    assert stats["parts"]["Sequential"] > 0
