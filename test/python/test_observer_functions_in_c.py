# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions and callables that C calls for each item, and getters that go through several
attributes: functions in Python are called in their place."""

import functools
import itertools
import operator
import struct
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from observing import beside_eager, is_without_breaks, values
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


@dataclass
class Pair:
    first: object
    second: object = 1


def world(step, **state):
    def make():
        kept = SimpleNamespace(
            items=[values(), values() * 2],
            pairs=[(values(), 2.0), (values() * 3, 4.0)],
            numbers=[1.0, 2.0, 3.0],
            scale=Scale(2.0),
            layer=nn.Linear(3, 3),
            part=functools.partial(torch.add, alpha=2),
            inner=SimpleNamespace(scale=Scale(3.0)),
        )
        torch.nn.init.ones_(kept.layer.weight)
        torch.nn.init.ones_(kept.layer.bias)
        return lambda x: step(kept, x), lambda number: (values() + number,), tuple, kept

    return make


STEPS = {
    "map of a product": lambda of, x: sum(map(operator.mul, of.items, of.items), x),
    "map of an operation": lambda of, x: list(map(torch.relu, [x, *of.items])),
    "map that draws": lambda of, x: list(map(torch.rand_like, of.items)),
    "map that writes": lambda of, x: list(map(torch.relu_, [x, x * 2])),
    "map of a method": lambda of, x: max(map(torch.Tensor.sum, of.items)),
    "map of a module": lambda of, x: torch.stack(list(map(of.layer, of.items))),
    "map of an object": lambda of, x: sum(map(of.scale, [x, x * 2])),
    "map of a partial": lambda of, x: list(map(of.part, of.items, of.items)),
    "map of a class": lambda of, x: [each.first for each in map(Pair, [x, *of.items])],
    "map of a getter": lambda of, x: sum(map(operator.itemgetter(0), of.pairs), x),
    "map of getters": lambda of, x: list(map(operator.attrgetter("factor"), [of.scale, of.scale])),
    "starmap": lambda of, x: list(itertools.starmap(torch.mul, of.pairs)),
    "filter": lambda of, x: list(filter(operator.itemgetter(1), of.pairs)),
    "reduce of a generator": lambda of, x: functools.reduce(
        operator.add, (each * 2 for each in of.items)
    ),
    "accumulated tensors": lambda of, x: list(itertools.accumulate(of.items, operator.mul)),
    "accumulated numbers": lambda of, x: x * sum(itertools.accumulate(of.numbers, operator.mul)),
    "attributes of attributes": lambda of, x: x * operator.attrgetter("inner.scale.factor")(of),
    "several attributes": lambda of, x: operator.attrgetter("scale.factor", "numbers")(of),
    "parameters": lambda of, x: x @ operator.attrgetter("layer.weight")(of),
    "groups of types": lambda of, x: [
        (kind.__name__, list(group)) for kind, group in itertools.groupby(of.numbers, key=type)
    ],
    "packed": lambda of, x: x * struct.unpack("<d", struct.pack("<d", of.numbers[1]))[0],
    "method": lambda of, x: operator.methodcaller("clamp", 1.5, max=3.5)(x),
    "methods": lambda of, x: list(map(operator.methodcaller("sum", 0), of.items)),
}


def change(number, made):
    if len(made) < 4:
        return
    kept = made[3]
    if number == 3:
        kept.scale.factor = 5.0
        kept.inner.scale = Scale(7.0)
    if number == 4:
        kept.numbers[1] = 9.0
        kept.items.append(values() * 4)
    if number == 5:
        kept.layer.register_forward_hook(lambda module, given, result: result * 2)
        kept.part = functools.partial(torch.add, alpha=3)
        kept.pairs[0] = (values() * 5, 0.0)
    if number == 6:
        kept.items[0] = values().requires_grad_()


@pytest.mark.parametrize("name", STEPS)
def test_what_c_calls(name):
    fast = beside_eager(world(STEPS[name]), 9, change)
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] > 0


def test_a_map_keeps_its_own_function():
    def step(x):
        return map(torch.relu, [x])

    fast = weft.compile(step, capture="observe", backend="eager")
    for _ in range(3):
        assert torch.equal(next(fast(values())), values())
    assert weft.stats(fast)["breaks"]


def test_errors_of_what_c_calls():
    def step(x, name):
        try:
            return operator.attrgetter(f"missing.{name}")(SimpleNamespace(x=x))
        except AttributeError as error:
            return str(error)

    def make():
        return step, lambda number: (values(), "ab"[number % 2]), tuple

    beside_eager(make, 6)


def test_addresses_of_what_the_program_holds():
    def make():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model.append(model[0])

        def step(x):
            seen = set()
            for each in model:
                if id(each) in seen:
                    x = x * 2
                seen.add(id(each))
            return x * len({id(each): each for each in model.parameters()}), len(seen)

        return step, lambda number: (values(),), tuple, model

    def replace(number, made):
        if number == 3:
            made[3][2] = nn.Linear(3, 3)
        if number == 5:
            made[3][1].weight = made[3][0].weight

    assert is_without_breaks(beside_eager(make, 8, replace))


def test_addresses_of_arguments_stay_unknown():
    def step(x, first, second):
        return x * len({id(first), id(second)})

    fast = weft.compile(step, capture="observe", backend="eager")
    for number in range(6):
        one, other = SimpleNamespace(), SimpleNamespace()
        other = one if number % 2 else other
        assert torch.equal(fast(values(), one, other), step(values(), one, other))
