# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: `items += whatever can be iterated over`, which extends a list."""

from collections import deque

import pytest
import torch
from observing import compiled
from torch import nn

import weft

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
PROGRAMS = []


class Iterable:
    def __iter__(self):
        for i in range(3):
            yield torch.ones(2) * i


class AddsItself:
    def __radd__(self, other):
        return [*other, 5]


@PROGRAMS.append
def generators_and_maps(x):
    items = []
    items += (row * 2 for row in x.unbind(0))
    items += map(torch.relu, x.unbind(1))
    return items


@PROGRAMS.append
def views_of_dicts(x):
    items = [x]
    items += {"a": x, "b": x * 2}.values()
    items += net._modules.values()
    return items[:3], items[3](x)


@PROGRAMS.append
def containers(x):
    items = [x]
    items += "ab"
    items += {1: 2}
    items += range(3)
    items += deque([x * 2])
    items += zip([x], [1])
    return items


@PROGRAMS.append
def objects(x):
    items = [x]
    items += Iterable()
    items += AddsItself()
    return items


@PROGRAMS.append
def parameters(x):
    items = []
    items += net.named_parameters()
    return [parameter.sum() * x for _, parameter in items]


@PROGRAMS.append
def the_list_stays_itself(x):
    items = other = [x]
    items += (each for each in (x * 3, x))
    items += items
    other.append(x * 4)
    return items, other is items


@PROGRAMS.append
def errors(x):
    items = [x]
    try:
        items += 3
    except TypeError as error:
        return str(error), x * 2, items


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_list_is_extended(program):
    fast = compiled(program)
    for _ in range(3):
        x = torch.randn(4, 4)
        assert str(fast(x)) == str(program(x))
    stats = weft.stats(fast)
    assert (stats["graphs"], stats["hits"]) == (1, 2) and not stats["breaks"]
