# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of classes in C that hold what no attribute tells: each is another program."""

import contextvars
import functools
import operator
import typing
from collections import defaultdict, deque
from types import SimpleNamespace

import numpy
import pytest
import torch
from observing import beside_eager, is_without_breaks, values

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


@torch.jit.script
def doubled(x: torch.Tensor):
    return x * 2


@torch.jit.script
def tripled(x: torch.Tensor):
    return x * 3


FIRST, SECOND = operator.itemgetter(0), operator.itemgetter(1)
PAIRS = [(1.0, 5.0), (2.0, 4.0)]
NAMED = SimpleNamespace(a=2.0, b=3.0)
OPERATORS = [torch.ops.aten.relu.default, torch.ops.aten.sin.default]
CASES = {
    "item": (lambda x, of: x * of([2.0, 3.0]), [FIRST, SECOND]),
    "items": (
        lambda x, of: x * sum(of([1.0, 2.0, 3.0])),
        [operator.itemgetter(0, 1), operator.itemgetter(1, 2)],
    ),
    "attribute": (
        lambda x, of: x * of(NAMED),
        [operator.attrgetter("a"), operator.attrgetter("b")],
    ),
    "key of sorted": (lambda x, of: x * sorted(PAIRS, key=of)[0][0], [FIRST, SECOND]),
    "key of max": (lambda x, of: x * max(PAIRS, key=of)[0], [FIRST, SECOND]),
    "overload": (lambda x, of: of(x), OPERATORS),
    "packet": (lambda x, of: of(x), [torch.ops.aten.relu, torch.ops.aten.sin]),
    "scripted": (lambda x, of: of(x), [doubled, tripled]),
    "ufunc": (lambda x, of: x * float(of(0.5)), [numpy.sin, numpy.cos]),
    "ufunc of an array": (
        lambda x, of: x * float(of(numpy.arange(3.0)).sum()),
        [numpy.sin, numpy.cos],
    ),
    "context variable": (
        lambda x, of: x * of.get(),
        [contextvars.ContextVar("a", default=1), contextvars.ContextVar("b", default=2)],
    ),
    "typing": (
        lambda x, of: x * (2 if typing.get_origin(of[int]) is typing.Final else 3),
        [typing.Final, typing.ClassVar],
    ),
    "union": (lambda x, of: x * (isinstance(3, of) + 1), [int | str, float | str]),
    "partial": (
        lambda x, of: of(x),
        [functools.partial(torch.clamp, min=2.0), functools.partial(torch.clamp, min=3.0)],
    ),
    "cache": (
        lambda x, of: x * of(3),
        [functools.lru_cache(lambda k: k * 2), functools.lru_cache(lambda k: k * 3)],
    ),
    "within an object": (
        lambda x, of: of.operator(x) * of.key([1.0, 2.0]),
        [
            SimpleNamespace(operator=OPERATORS[0], key=FIRST),
            SimpleNamespace(operator=OPERATORS[1], key=FIRST),
            SimpleNamespace(operator=OPERATORS[1], key=SECOND),
        ],
    ),
    "within a dict": (lambda x, of: x * of["key"](PAIRS[0]), [{"key": FIRST}, {"key": SECOND}]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_argument_holds(name):
    function, given = CASES[name]

    def make():
        return function, lambda number: (values(), given[number % len(given)]), tuple

    fast = beside_eager(make, 3 * len(given))
    assert is_without_breaks(fast) and weft.stats(fast)["graphs"] == len(given)


def test_how_many_items_a_deque_holds():
    def make():
        def step(x, items):
            items.append(3)
            return x * len(items), items.maxlen, items

        return (
            step,
            lambda number: (values(), deque([1, 2], maxlen=(None, 2, 3)[number % 3])),
            tuple,
        )

    fast = beside_eager(make, 9)
    assert is_without_breaks(fast) and weft.stats(fast)["graphs"] == 3


def test_what_a_copied_dict_makes():
    def make():
        def step(x, entries):
            return x * entries.copy()["absent"], entries

        return step, lambda number: (values(), defaultdict((int, float, bool)[number % 3])), tuple

    beside_eager(make, 9)
