# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Iterators from outside, and what a call makes to iterate over, to compare by and to show."""

import copy
import functools
import itertools
import logging
import operator
import random
import re
from collections import namedtuple
from dataclasses import dataclass, field

import numpy
import torch
from torch import nn, randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


class Batches:
    def __init__(self):
        self.data = [randn(3) for _ in range(3)]
        self.iterator = iter(self.data)

    def step(self, x):
        batch = next(self.iterator, None)
        if batch is None:
            self.iterator = iter(self.data)
            batch = next(self.iterator)
        return x * batch


@program
def batches_of_an_object():
    return Case(Batches().step, three)


@program
def numbers_of_a_count():
    numbers = itertools.count(5)
    return Case(lambda x: x * next(numbers), three)


@program
def iterator_as_an_argument():
    def step(x, iterator):
        for each in iterator:
            x = x * each
        return x

    return Case(step, lambda: call(randn(3), iter([2.0, 3.0])))


@program
def groups():
    pairs = [("a", 1.0), ("a", 2.0), ("b", 3.0)]

    def step(x):
        for key, group in itertools.groupby(pairs, key=lambda each: each[0]):
            x = x * sum(value for _, value in group) + (key == "a")
        return x

    return Case(step, three)


@program
def comparison():
    items = [3.0, 1.0, 2.0]
    sign = [1.0]

    def step(x):
        def order(left, right):
            return sign[0] * (left - right)

        return x * sorted(items, key=functools.cmp_to_key(order))[0]

    return Case(step, three)


@program
def matches():
    texts = {"names": "a1b22"}

    def step(x):
        for each in re.finditer(r"\d+", texts["names"]):
            x = x * int(each.group()) + each.start()
        return x

    return Case(step, three)


@program
def views_given():
    settings = {"a": 1.0, "b": 2.0}
    return Case(lambda x: (x * len(settings), settings.keys(), {"c": x}.values()), three)


@program
def seeded_in_the_call():
    seeds = [3]

    def step(x):
        own = random.Random(seeds[0])
        return x * own.random() + own.randint(0, 9)

    return Case(step, three)


@program
def logger_by_name():
    def step(x):
        logging.getLogger("capture.corpus.names").debug("%s", x.sum().item())
        return x * 2

    return Case(step, three)


@program
def shallow_copies():
    layer = nn.Linear(3, 3)

    def step(x):
        shared = copy.copy(x)
        shared.mul_(2)
        return shared, copy.copy(layer.weight).detach() + x

    return Case(step, three)


@program
def array_written():
    array = numpy.zeros(3)

    def step(x):
        array[0] += 1
        array[1:] = x.sum().item()
        return x + float(array.sum())

    return Case(step, three, state=(array,))


class Base:
    factor = 2.0

    def of(self, x):
        return x * self.factor


@program
def local_class():
    settings = {"shift": 1.0}

    def step(x):
        class Local(Base):
            shift = settings["shift"]

            def both(self, x):
                return self.of(x) + self.shift

        return Local().both(x)

    return Case(step, three)


@program
def local_tuple_and_dataclass():
    names = ["first", "second"]

    def step(x):
        @dataclass
        class Kept:
            scale: float = 2.0
            kept: list = field(default_factory=list)

        kind = namedtuple("kind", names)
        pair, kept = kind(x, 3.0), Kept()
        kept.kept.append(pair[0] * pair[1])
        return torch.relu(kept.kept[0]) * kept.scale + len(pair._fields)

    return Case(step, three)


@program
def mapped_by_c():
    layer, pairs = nn.Linear(3, 3), [(torch.ones(3), 2.0), (torch.zeros(3), 3.0)]

    def step(x):
        mapped = sum(map(layer, [x, *map(operator.itemgetter(0), pairs)]))
        return functools.reduce(operator.mul, (each for each, _ in pairs)) + mapped

    return Case(step, three, state=(layer, pairs))


@program
def attributes_by_names():
    layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    getter = operator.attrgetter("0.weight", "1.bias")

    def step(x):
        weight, bias = getter(layers)
        return operator.methodcaller("clamp", min=0.1)(x @ weight + bias)

    return Case(step, three, state=(layers,))


@program
def last_items():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.states = [torch.zeros(3), torch.ones(3)]

        def forward(self, x):
            self.states.append(torch.tanh(self.states[-1] + x))
            return torch.stack(self.states[-3:]).sum(0), len(self.states)

    return Case(Recurrent(), three)
