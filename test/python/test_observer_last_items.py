# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last items of lists to which each call appends: their places from the end are those of
inputs, however long the list is."""

import pytest
import torch
from observing import beside_eager, captures, is_without_breaks, values
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class History(nn.Module):
    def __init__(self, step, items=0):
        super().__init__()
        self.step = step
        self.items = [values() * (number + 1) for number in range(items)]

    def forward(self, x):
        return self.step(self.items, x)


def world(step, items=0):
    def make():
        model = History(step, items)
        return model, lambda number: (values() + number,), lambda: model.items, model

    return make


def recurrent(items, x):
    state = items[-1] if items else torch.zeros_like(x)
    state = torch.tanh(state + x)
    items.append(state)
    return state, len(items)


def window(items, x):
    items.append(x * 2)
    return torch.stack(items[-3:]).mean(0)


def window_ahead(items, x):
    result = sum(items[-2:], x)
    items.append(result)
    return result


def two_names(items, x):
    other = items
    items.append(x)
    return other[-1] + other[-3]


def extended(items, x):
    items.extend([x, x * 2])
    return items[-3] + items[-1]


def entries(items, x):
    items.append({"x": x * 2})
    return items[-2]["x"] + items[-1]["x"] if len(items) > 1 else x


def written(items, x):
    items[-1].add_(1)
    result = items[-1] + items[-2]
    items.append(x * 1)
    return result


def number(items, x):
    value = (items[-1] if items else 1.0) * 0.5
    items.append(value)
    return x * value


STEPS = {
    "recurrent": (recurrent, 0, 2),
    "window": (window, 0, 3),
    "window ahead": (window_ahead, 2, 2),
    "two names": (two_names, 3, 2),
    "extended": (extended, 1, 2),
    "entries": (entries, 0, 2),
    "written": (written, 2, 2),
    "number": (number, 0, 2),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_one_program_for_all_lengths(name, backend):
    step, items, programs = STEPS[name]
    if backend == "eager":
        fast = beside_eager(world(step, items), 14)
    else:
        (model, arguments, _, _), (expected, *_) = world(step, items)(), world(step, items)()
        fast = weft.compile(model, capture="observe")
        for call in range(10):
            found = fast(*arguments(call))
            torch.testing.assert_close(found, expected(*arguments(call)))
            torch.testing.assert_close(model.items, expected.items)
    assert is_without_breaks(fast) and captures(fast) == programs


def changed(change):
    def at(number, made):
        if number in (6, 8, 9):
            change(made[3])

    return at


CHANGES = {
    "cleared": lambda model: model.items.clear(),
    "another list": lambda model: setattr(model, "items", list(model.items)),
    "another item": lambda model: model.items.__setitem__(-1, torch.zeros(3)),
    "another type": lambda model: model.items.append(torch.zeros(3, dtype=torch.float64)),
    "another size": lambda model: model.items.append(torch.zeros(1)),
    "a number": lambda model: model.items.append(2.0),
    "the same item twice": lambda model: model.items.append(model.items[-1]),
    "a view": lambda model: model.items.append(model.items[-1].view(3)),
    "inserted": lambda model: model.items.insert(len(model.items) - 1, torch.ones(3)),
    "shorter": lambda model: model.items.pop(),
    "reversed": lambda model: model.items.reverse(),
}


def last_two(items, x):
    result = items[-1] * 2 + items[-2] if len(items) > 1 else x
    items.append(x * 3)
    return result


# What is written to has to be a tensor, and there.
_WRITTEN = [name for name in CHANGES if name not in ("a number", "cleared")]


@pytest.mark.parametrize(
    ("name", "step"),
    [(each, last_two) for each in CHANGES] + [(each, written) for each in _WRITTEN],
)
def test_what_others_do_to_the_list(name, step):
    beside_eager(world(step, 4), 14, changed(CHANGES[name]))


def popped(items, x):
    last = items.pop()
    items.append(x)
    items.append(last)
    return items[-1] + items[-2] * 2 + items[-3]


def turned(items, x):
    items.append(x)
    items.reverse()
    first = items[-1]
    items.reverse()
    return first + items[-2]


def overwritten(items, x):
    items[-1] = x * 2
    second = items[-2]
    items.append(x)
    return second + items[-2]


def shortened(items, x):
    items.append(x * 1)
    if len(items) > 4:
        items.pop(0)
    return items[-1] + items[0]


def as_a_whole(items, x):
    last = items[-1]
    items.append(x)
    return last + torch.stack(items).sum(0)


def absent(items, x):
    try:
        return items[-5]
    except IndexError:
        return x
    finally:
        items.append(x * 1)


def identity(items, x):
    same = items[-1] is items[-2]
    items.append(x if same else items[-1])
    return same


@pytest.mark.parametrize(
    "step", [popped, turned, overwritten, shortened, as_a_whole, absent, identity]
)
def test_calls_that_do_more_than_append(step):
    beside_eager(world(step, 4), 14)


@pytest.mark.parametrize("question", [len, bool])
def test_a_generator_asks_the_list_that_it_extends(question):
    def make():
        numbers = []

        def step(x):
            before = len(numbers)
            numbers.extend(float(question(numbers)) for _ in range(2))
            return x * numbers[-1], before

        return step, lambda number: (values() + number,), lambda: numbers, numbers

    def change(number, made):
        if number == 5:
            made[3].clear()

    beside_eager(make, 9, change)
