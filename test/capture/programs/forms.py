# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of Python that hold what a program reads in a less usual place: copies, modules in hand,
properties, classes in tables, views, generators within generators."""

import collections
import contextlib
import copy
import dataclasses
import functools
import types

import torch
from torch import nn, randn

from capture.corpus import Case, call, program

SETTINGS = types.ModuleType("settings")
SETTINGS.scale, SETTINGS.inner = 2.0, types.SimpleNamespace(shift=1.0)
FACTOR = 3.0


def three():
    return call(randn(3))


@program
def a_copied_module():
    layer = nn.Linear(3, 3)

    def f(x):
        made = copy.deepcopy(layer)
        with torch.no_grad():
            made.weight.mul_(2)
        return made(x) + layer(x)

    return Case(f, three, state=(layer,))


@program
def copied_settings():
    class Held:
        def __init__(self):
            self.names, self.rates = {"a", "b"}, collections.deque([1.0, 2.0], maxlen=3)
            self.table = collections.OrderedDict(a=1.0, b=[2.0])

    held = Held()

    def f(x):
        made = copy.deepcopy(held)
        made.rates.append(3.0)
        made.table["b"].append(len(made.names))
        return x * sum(made.rates) + sum(made.table["b"]) * made.table["a"]

    return Case(f, three, state=(held,))


@program
def a_module_in_a_closure():
    settings = SETTINGS

    def f(x):
        return x * settings.scale + settings.inner.shift

    return Case(f, three)


@program
def a_module_in_an_attribute():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.settings, self.listed = SETTINGS, [SETTINGS]

        def forward(self, x):
            return x * self.settings.scale + self.listed[0].inner.shift

    return Case(Model(), three)


@program
def a_function_in_a_namespace():
    held = types.SimpleNamespace(table={"f": [lambda x: x * FACTOR]})

    def f(x):
        return held.table["f"][0](x)

    return Case(f, three)


@program
def a_property_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self._rate, self.state = 0.5, torch.zeros(3)

        @property
        def rate(self):
            return self._rate

        @rate.setter
        def rate(self, value):
            self._rate = value * 0.5 + 1.0

        def forward(self, x):
            self.rate = self.rate
            self.state = self.state * self.rate + x
            return self.state * 2

    model = Model()
    return Case(model, three, state=(model,))


@program
def attributes_as_a_dict():
    class Held:
        def __init__(self):
            self.a, self.bb = 1.0, 2.0

    held = Held()

    def f(x):
        for name, value in vars(held).items():
            x = x * value + len(name)
        return x

    return Case(f, three)


@program
def objects_of_a_class_as_attributes():
    class Rate:
        value = 2.0

    class Model:
        rate = Rate()

    model = Model()

    def f(x):
        return x * model.rate.value + Model.rate.value

    return Case(f, three)


@program
def a_partial_with_a_list():
    held = functools.partial(lambda x, items, k: x * items[0] + k, items=[2.0, 3.0], k=1.0)

    def f(x):
        return held(x) + held(x, k=4.0)

    return Case(f, three)


@program
def matched_settings():
    held = {"mode": "scale", "rate": 2.0, "rest": [1.0, 2.0]}

    def f(x):
        match held:
            case {"mode": "scale", "rate": rate, "rest": [first, *others]}:
                return x * rate + first + len(others)
            case {"mode": str(name), **others}:
                return x * len(name) + len(others)
            case _:
                return x

    return Case(f, three)


@program
def nested_generators():
    held = [[1.0, 2.0], [3.0, [4.0]]]

    def flat(items):
        for each in items:
            if isinstance(each, list):
                yield from flat(each)
            else:
                yield each

    def f(x):
        first, *rest = flat(held)
        if (count := len(rest)) > 2:
            x = x * first
        return x + count + max(each for each in rest)

    return Case(f, three)


@program
def suppressed_errors():
    held = {"rate": 2.0}

    def f(x):
        scale = 1.0
        with contextlib.suppress(KeyError):
            scale = held["rate"]
            scale = scale + held["bias"]
        return x * scale

    return Case(f, three)


@program
def frozen_data():
    @dataclasses.dataclass(frozen=True)
    class Step:
        scale: float
        shift: float = 1.0

    class Holder:
        step = Step(2.0)

    def f(x):
        step = dataclasses.replace(Holder.step, shift=3.0)
        return x * step.scale + step.shift + dataclasses.astuple(Holder.step)[1]

    return Case(f, three)


@program
def a_list_extended_by_a_generator():
    history = []

    def f(x):
        history.extend(x * i for i in range(2))
        return history[-1] + FACTOR

    return Case(f, three, state=(history,))


@program
def a_table_of_classes():
    class One:
        rate = 2.0

        def __call__(self, x):
            return x * self.rate

    class Other(One):
        def __call__(self, x):
            return super().__call__(x) + 1

    table = {"one": One, "other": Other}

    def f(x):
        return table["one"]()(x) + table["other"]()(x)

    return Case(f, three)
