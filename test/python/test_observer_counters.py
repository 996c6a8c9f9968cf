# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a call does nothing with but count: one program stands for all calls."""

from collections import Counter, defaultdict

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

total = 0


def captures(function):
    return weft.stats(function)["captures"]


class Plain:
    def __init__(self):
        self.calls, self.share, self.limit = 0, 0.5, 3


class Slots:
    __slots__ = ("calls", "share", "limit")
    __init__ = Plain.__init__


def contents(state):
    names = [] if isinstance(state, dict) else Slots.__slots__
    return {each: getattr(state, each) for each in names} or state


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(2, 2), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


def of_an_object(state, x):
    state.calls += 1
    state.share *= 0.5
    return x * 2


def of_an_object_without_an_operator_in_place(state, x):
    state.calls = state.calls + 1
    return x * 2


def of_a_dict(state, x):
    state["calls"] += 2
    state["left"] = state["left"] - 1
    return x * 2


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (of_an_object, Plain),
        (of_an_object_without_an_operator_in_place, Plain),
        (of_an_object, Slots),
        (of_an_object_without_an_operator_in_place, Slots),
        (of_a_dict, lambda: {"calls": 0, "left": 10}),
    ],
)
def test_counters_of_arguments(function, make):
    fast, x = compiled(function), torch.ones(2)
    state, expected = make(), make()
    for _ in range(6):
        assert torch.equal(fast(state, x), function(expected, x))
        assert contents(state) == contents(expected)
    assert captures(fast) == 1 and weft.stats(fast)["hits"] == 5


def test_a_counter_of_a_module():
    model, x = Counting(), torch.ones(2)
    fast = compiled(model)
    for number in range(6):
        fast(x)
        assert model.calls == number + 1
    assert captures(fast) == 1 and weft.stats(fast)["hits"] == 5
    model.register_buffer("other", torch.ones(1))
    del model.calls
    model.register_buffer("calls", torch.zeros(1))
    fast(x)
    assert torch.equal(model.calls, torch.ones(1))


def test_counters_of_globals_and_of_outer_functions():
    global total
    total, calls = 0, 0

    def step(x):
        global total
        nonlocal calls
        total += 1
        calls -= 1
        return x + 1

    fast, x = compiled(step), torch.ones(2)
    for number in range(6):
        fast(x)
        assert (total, calls) == (number + 1, -number - 1)
    assert captures(fast) == 1


@pytest.mark.parametrize("kind", [Plain, Slots])
def test_the_type_of_a_counter_is_guarded(kind):
    fast, x, state = compiled(of_an_object), torch.ones(2), kind()
    fast(state, x), fast(state, x)
    state.calls = 0.5
    fast(state, x)
    assert state.calls == 1.5
    state.calls = torch.zeros(1)
    fast(state, x)
    assert torch.equal(state.calls, torch.ones(1))
    del state.calls
    with pytest.raises(AttributeError):
        fast(state, x)


@pytest.mark.parametrize(
    ("kind", "way"),
    [(Plain, "behind"), (Plain, "ahead"), (Plain, "dict"), (Plain, "name")]
    + [(Slots, "behind"), (Slots, "ahead"), (Slots, "descriptor"), (Slots, "name")],
)
def test_a_counter_that_is_read_as_well_is_guarded(kind, way):
    name = "calls"

    def step(state, x):
        if way == "ahead" and state.calls > 2:
            x = x * 10
        state.calls += 1
        value = 0
        if way == "behind":
            value = state.calls
        if way == "dict":
            value = state.__dict__["calls"]
        if way == "descriptor":
            value = Slots.calls.__get__(state)
        if way == "name":
            value = getattr(state, name)
        return x * 2 + value

    fast, x, state, expected = compiled(step), torch.ones(2), kind(), kind()
    for _ in range(8):
        assert torch.equal(fast(state, x), step(expected, x))
        assert state.calls == expected.calls


def test_what_is_stored_elsewhere_is_no_counter():
    def step(state, other, x):
        other["calls"] += 1
        other["calls"] = state["calls"] + 1
        other["a"], other["b"] = state["calls"] + 5, state["calls"] + 3
        return x * 2

    fast, x = compiled(step), torch.ones(2)
    for number in range(6):
        found, wanted = {"calls": 1, "a": 0}, {"calls": 1, "a": 0}
        fast({"calls": number, "b": 7}, found, x), step({"calls": number, "b": 7}, wanted, x)
        assert found == wanted


def test_values_that_change_places():
    def step(state, x):
        y, state["n"] = state["n"] + 1, 4
        state["m"], z = 3, state["m"] + 1
        return x * y + z

    fast, x = compiled(step), torch.ones(2)
    for number in range(5):
        found, wanted = {"n": number, "m": number}, {"n": number, "m": number}
        assert torch.equal(fast(found, x), step(wanted, x)) and found == wanted


def test_a_class_that_stores_otherwise():
    class Doubling:
        def __init__(self):
            self.calls = 1

        def __setattr__(self, name, value):
            self.__dict__[name] = value * 2

    def step(state, x):
        state.calls += 1
        return x + 1

    fast, x, state, expected = compiled(step), torch.ones(2), Doubling(), Doubling()
    for _ in range(5):
        fast(state, x), step(expected, x)
        assert state.calls == expected.calls


def test_a_call_that_is_left_counts_once():
    def step(state, x):
        state["calls"] += 1
        if x.sum() > 0:
            return x * 2
        return x * 3

    fast, state = compiled(step), {"calls": 0}
    for number in range(8):
        x = torch.ones(2) * (-1) ** number
        assert torch.equal(fast(state, x), x * (2 if number % 2 == 0 else 3))
        assert state["calls"] == number + 1
    assert captures(fast) == 2


def test_native_programs_count():
    model, x = Counting(), torch.ones(2)
    fast = weft.compile(model, capture="observe")
    with torch.no_grad():
        for number in range(5):
            assert torch.allclose(fast(x), model.layer(x))
            assert model.calls == number + 1
    assert captures(fast) == 1 and not weft.stats(fast)["breaks"]


def test_counters_behind_properties():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0.0

        @property
        def time(self):
            return self.steps * 2

        @time.setter
        def time(self, value):
            self.steps = value / 2

        def forward(self, x):
            self.time = self.time + 1
            self.time += 2
            return x * self.time

    module, x = Module(), torch.ones(3)
    fast = compiled(module)
    for number in range(1, 6):
        assert torch.equal(fast(x), x * 3 * number) and module.steps == 1.5 * number
    assert weft.stats(fast)["breaks"] == [] and weft.stats(fast)["hits"]


def counts_items(state, x):
    state["list"][0] += 1
    state["list"][-1] = state["list"][0] * 2
    state["counter"]["calls"] += 1
    state["default"][x.shape] += 3
    return x * state["list"][0] + state["counter"]["calls"]


def counts_items_and_looks_at_the_others(state, x):
    items, counter = state["list"], state["counter"]
    items[0], items[1] = items[1], x.mean()
    counter["calls"] += 1
    items[2] = 7
    return sum(items) + sum(counter.values()) + len(items) + x + len(list(counter))


def swaps_and_appends(state, x):
    items = state["list"]
    items[0], items[1] = items[1], items[0]
    items.append(x)
    items[0] = 5.0
    y = items.pop() + items[0] + items[1]
    return y + sum(items[1:])


def items_of():
    return {
        "list": [1, 2.0, 3],
        "counter": Counter(other=2),
        "default": defaultdict(int, {torch.Size([2]): 1}),
    }


@pytest.mark.parametrize(
    ("function", "hits"),
    [(counts_items, 3), (counts_items_and_looks_at_the_others, 0), (swaps_and_appends, 3)],
)
def test_items_of_containers(function, hits):
    own, twin = items_of(), items_of()
    fast = compiled(lambda x: function(own, x))
    for number in range(8):
        if number == 6:  # from outside
            for each in (own, twin):
                each["counter"]["calls"], each["list"][0] = 20, 9
        x = torch.full((2,), float(number))
        assert torch.equal(fast(x), function(twin, x)), number
        assert str(own) == str(twin)
    assert weft.stats(fast)["hits"] >= hits and not weft.stats(fast)["breaks"]


def test_items_that_are_put_back():
    state = items_of()

    def step(x):
        state["list"][0] += 1
        state["counter"]["calls"] += 1
        if x.sum() > 10:
            raise ValueError(state["list"][0])
        return x * 2

    fast = compiled(step)
    for value, count in ((1.0, 2), (1.0, 3), (1.0, 4), (1.0, 5)):
        fast(torch.full((2,), value))
        assert state["list"][0] == count and state["counter"]["calls"] == count - 1
    for count in (6, 7):
        with pytest.raises(ValueError, match=str(count)):
            fast(torch.full((2,), 20.0))
        assert state["list"][0] == count and state["counter"]["calls"] == count - 1
