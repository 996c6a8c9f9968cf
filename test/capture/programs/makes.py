# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that a call makes by ways of their own, and code that it goes through to others."""

import collections
import copy
import functools
import types
import typing

import torch
import torch.utils.checkpoint
from torch import nn, randn

from capture.corpus import Case, call, program

FORMAT = "%s"


def three():
    return call(randn(3))


class Doubling:
    factor = 2

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return self if owner is None else getattr(owner, self.name, 0) * self.factor

    def __set__(self, owner, value):
        setattr(owner, self.name, value * self.factor)


class Described:
    value = Doubling()


class Meta(type):
    extra = 1

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.extra = cls.extra
        return made


class Made(metaclass=Meta):
    def __init__(self, value):
        self.value = value


class Pair(typing.NamedTuple):
    a: torch.Tensor
    b: int = 2


@functools.singledispatch
def chosen(by, x):
    return x * 2


@chosen.register
def _(by: int, x):
    return x * 3


@program
def pairs_of_a_dict():
    pairs = [["a", 2.0], ["b", 3.0]]
    return Case(lambda x: x * dict(pairs)["a"], three)


@program
def pairs_of_an_update():
    pairs = (["a", 2.0], ["b", 3.0])

    def f(x):
        made = collections.OrderedDict(c=1.0)
        made.update(pair for pair in pairs)
        return x * sum(made.values())

    return Case(f, three)


@program
def formatted_text():
    pairs = [["a", 2.0], ["b", 3.0]]
    return Case(lambda x: {FORMAT % pairs: x * 2}, three)


@program
def deep_copy():
    table = {"a": [1.0, (2.0, [3.0])]}

    def f(x):
        made, other = copy.deepcopy([x, table])
        return made * other["a"][1][1][0], made.add_(1)

    return Case(f, three)


@program
def deep_copy_of_a_parameter():
    layer = nn.Linear(3, 3)

    def f(x):
        return x @ copy.deepcopy(layer.weight) + len(layer.weight)

    return Case(f, three)


@program
def given_closure():
    scale = [2.0]

    def f(x):
        y = x * scale[0]

        def add(z, more=1):
            return z + y + more

        return add(x), add

    return Case(f, three)


@program
def inference_mode():
    modes = {"enabled": True}

    def f(x):
        with torch.inference_mode(modes["enabled"]):
            y = x * 2
        return y, y.is_inference()

    return Case(f, three)


@program
def single_dispatch():
    values = [2]
    return Case(lambda x: chosen(values[0], x), three)


@program
def checkpoint():
    layer, scale = nn.Linear(3, 3), [2.0]

    def block(x):
        return layer(x) * scale[0]

    def f(x):
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    return Case(f, three)


@program
def descriptor_that_sets():
    values = [3]

    def f(x):
        made = Described()
        made.value = values[0]
        return x * made.value

    return Case(f, three)


@program
def metaclass_call():
    return Case(lambda x: x * Made(3).value * Made(2).extra, three)


@program
def replaced_fields():
    def f(x):
        pair = Pair(x, 3)
        return pair._replace(b=4).b * x, Pair._make([x, 5]).b

    return Case(f, three)


@program
def counter():
    items = [1, 1, 2]

    def f(x):
        made = collections.Counter(items)
        return x * made[1] + len(made)

    return Case(f, three)


@program
def namespace():
    attributes = {"a": 2, "b": 3}

    def f(x):
        made = types.SimpleNamespace(**attributes)
        made.c = x * made.a
        return made

    return Case(f, three)


@program
def several_outputs():
    where = [0]

    def f(x):
        most, place = torch.empty(()), torch.empty((), dtype=torch.long)
        torch.max(x, where[0], out=(most, place))
        return most, place

    return Case(f, three)


@program
def last_of_a_growing_list():
    history, alias = [1.0], []

    def f(x):
        history.append(x * 2)
        alias.append(history)
        return history[-1] + len(alias[-1][-1])

    return Case(f, three, state=(history,))
