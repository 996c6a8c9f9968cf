# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys that are no plain values: named tuples, frozen dataclasses, and objects that are known by
their addresses."""

from collections import Counter, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
from observing import beside_eager, captures, compiled, is_whole, values
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


@dataclass(frozen=True)
class Frozen:
    number: int
    text: str = "x"


class Named(NamedTuple):
    number: int
    text: str = "x"


Made = namedtuple("Made", "number text", defaults=["x"])
KINDS = [Frozen, Named, Made]


def one_tensor(number):
    return (values(),)


def looked_up(kind):
    table = {kind(1): 2.0, kind(2): 3.0}

    def step(x):
        return x * table[kind(1)] + table.get(kind(2), 9.0) + (kind(3) in table)

    return step, one_tensor, lambda: [*table.items()], table


def counted(kind):
    counts = {kind(1): 0}

    def step(x):
        counts[kind(1)] += 1
        return x + 1

    return step, one_tensor, lambda: [*counts.items()], counts


def counted_by_a_counter(kind):
    counts = Counter()

    def step(x):
        counts[kind(1)] += 1
        return x + 1

    return step, one_tensor, lambda: [*counts.items()], counts


def counted_by_default(kind):
    counts = defaultdict(int)

    def step(x):
        counts[kind(len(x))] += 2
        return x + 1

    return step, one_tensor, lambda: [*counts.items()], counts


def kept(kind):
    cache: dict[Any, Any] = {}

    def step(x):
        key = kind(x.shape[0])
        if key not in cache:
            cache[key] = torch.full((3,), 5.0)
        return x * cache[key]

    return step, one_tensor, lambda: [*cache.items()], cache


def made_in_the_call(kind):
    def step(x):
        table = {kind(1): x, kind(2): x * 2, kind(1): x * 3}
        return table[kind(1)] + len({kind(1), kind(1)}), table

    return step, one_tensor, tuple, {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "program",
    [looked_up, counted, counted_by_a_counter, counted_by_default, kept, made_in_the_call],
)
def test_keys_by_value(program, kind):
    fast = beside_eager(lambda: program(kind), 8)
    assert is_whole(fast) and captures(fast) <= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["value", "absent", "appears", "cleared"])
def test_what_is_there_is_guarded(kind, what):
    def change(number, world):
        if number == 3:
            table = world[3]
            if what == "value":
                table[kind(1)] = 7.0
            elif what == "absent":
                del table[kind(2)]
            elif what == "appears":
                table[kind(3)] = 1.0
            else:
                table.clear()
                table[kind(1)] = 6.0

    assert is_whole(beside_eager(lambda: looked_up(kind), 6, change))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_arguments(kind):
    def make():
        table = {kind(1): 2.0, kind(2): 3.0}
        return lambda x, key: x * table[key], lambda number: (values(), kind(1 + number % 2)), tuple

    fast = beside_eager(make, 8)
    assert is_whole(fast) and captures(fast) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_dicts_of_arguments(kind):
    def make():
        def step(x, table):
            return x * table[kind(1)]

        return step, lambda number: (values(), {kind(1): number // 3, kind(2): 0}), tuple

    assert is_whole(beside_eager(make, 8))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_an_iteration_are_the_ones_that_are_there(kind):
    table = {kind(1): 2.0, kind(2): 3.0}

    def step(x):
        return [(key, x * value + key.number) for key, value in table.items()]

    fast = compiled(step)
    for number in range(6):
        if number == 3:  # equal keys that are others
            table.update({kind(3): table.pop(kind(2)), kind(1): table.pop(kind(1))})
        found, expected = fast(values()), step(values())
        assert str(found) == str(expected)
        assert all(x[0] is y[0] for x, y in zip(found, expected))


def test_equal_keys_of_other_types():
    def make():
        table = {Frozen(1): 2.0, (1, "x"): 3.0}

        def step(x):
            return x * table[Frozen(1.0)] + table[Named(True)]

        return step, one_tensor, tuple, table

    def change(number, world):
        if number == 3:
            world[3].update({Frozen(True): 5.0, Made(1.0): 6.0})

    assert is_whole(beside_eager(make, 6, change))


def test_a_frozen_key_that_is_changed_by_force():
    def make():
        table, key = {Frozen(1): 2.0, Frozen(2): 3.0}, Frozen(1)
        return lambda x: x * table[key], one_tensor, tuple, key

    def change(number, world):
        if number == 3:
            object.__setattr__(world[3], "number", 2)

    beside_eager(make, 6, change)


def _gets_another_hash(cls):
    cls.__hash__ = lambda self: 77


def _hashes_by_other_code(cls):
    cls.__hash__.__code__ = (lambda self: 77).__code__


@pytest.mark.parametrize("changed", [_gets_another_hash, _hashes_by_other_code])
def test_a_class_whose_hash_changes(changed):
    def make():
        @dataclass(frozen=True)
        class Own:
            number: int

        table = {Own(1): 2.0}
        return lambda x: x * table.get(Own(1), 0.0), one_tensor, tuple, Own

    def change(number, world):
        if number == 3:
            changed(world[3])

    beside_eager(make, 6, change)


@dataclass(frozen=True)
class Partly:
    number: int
    note: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Own:
    number: int

    def __hash__(self):
        return 3


@pytest.mark.parametrize("make_key", [lambda i: Partly(1, i), Own])
def test_keys_whose_fields_do_not_say_all(make_key):
    def make():
        table = {make_key(1): 2.0}
        return lambda x: x * table[make_key(1)], one_tensor, tuple, table

    def change(number, world):
        if number == 3:
            world[3][make_key(1)] = 7.0

    beside_eager(make, 6, change)


class Momentum:
    """State by parameter, as optimizers have it."""

    def __init__(self):
        self.layer = nn.Linear(3, 3)
        for number, each in enumerate(self.layer.parameters()):
            nn.init.constant_(each, number + 1.0)
        self.state = defaultdict(dict)

    @torch.no_grad()
    def step(self, x):
        for parameter in self.layer.parameters():
            state = self.state[parameter]
            if not state:
                state["steps"], state["average"] = 0, torch.zeros_like(parameter)
            state["steps"] += 1
            state["average"].mul_(0.5).add_(parameter)
        return self.layer(x)


def test_state_by_parameter():
    def make():
        it = Momentum()
        return it.step, one_tensor, lambda: [*it.state.values()], it

    def change(number, world):
        it = world[3]
        if number == 6:
            it.state[it.layer.weight]["average"] = torch.ones(3, 3)
        if number == 8:
            del it.state[it.layer.bias]

    fast = beside_eager(make, 11, change)
    assert is_whole(fast)


def test_names_by_module_and_sets_of_modules_and_functions():
    def make():
        layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
        names, skipped, weights = {each: i for i, each in enumerate(layers)}, {layers[1]}, {abs: 2}

        def step(x):
            for each in layers:
                if each not in skipped:
                    x = each(x) * (names[each] + weights[abs])
            return x

        return step, one_tensor, tuple, (layers, names, skipped, weights)

    def change(number, world):
        layers, names, skipped, weights = world[3]
        if number == 3:
            skipped.add(layers[0])
        if number == 5:
            names[layers[2]] = 9
        if number == 7:
            weights[abs] = 3

    assert is_whole(beside_eager(make, 9, change))


def test_sets_of_parameters():
    def make():
        layer = nn.Linear(3, 3)
        nn.init.ones_(layer.weight), nn.init.ones_(layer.bias)
        frozen = {layer.bias}

        def step(x):
            return x.sum() + sum(each.sum() for each in layer.parameters() if each not in frozen)

        return step, one_tensor, tuple, (layer, frozen)

    def change(number, world):
        layer, frozen = world[3]
        if number == 3:
            frozen.add(layer.weight)

    assert is_whole(beside_eager(make, 6, change))
