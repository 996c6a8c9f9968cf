# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: context variables, and functions of the library that call others."""

import collections
import functools
import heapq
import operator
import re
from contextvars import ContextVar

import pytest
import torch
from observing import compiled, is_without_breaks

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def test_context_variables_are_read_and_put_back():
    scale, within = ContextVar("scale", default=2), ContextVar("within")

    def f(x):
        token = within.set({"out": []})
        try:
            within.get()["out"].append(x)
            return x * scale.get() + len(within.get()["out"])
        finally:
            within.reset(token)

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2
    token = scale.set(5)
    assert torch.equal(fast(x), f(x))
    scale.reset(token)
    assert torch.equal(fast(x), x * 2 + 1)
    assert within.get(None) is None


def test_a_context_variable_left_set_is_not_captured():
    kept = ContextVar("kept", default=0)

    def f(x):
        kept.set(kept.get() + 1)
        return x * kept.get()

    fast = compiled(f)
    assert [fast(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]
    assert weft.stats(fast)["graphs"] == 0


def test_keys_of_sorts_are_observed():
    def by_length(x, lists):
        return x + sorted(lists, key=len)[0][0]

    fast, x = compiled(by_length), torch.ones(3)
    for lists in ([[1], [2, 2]], [[1, 1, 1], [2, 2]], [[1], [2, 2]], [[1, 1, 1], [2, 2]]):
        assert torch.equal(fast(x, lists), by_length(x, lists))


def test_functions_are_given_to_functions():
    pattern, table = re.compile(r"(\w)(\d)"), [3, 1, 2]

    def f(x, parts):
        x = functools.reduce(lambda left, right: left * right, parts, x)
        x = x + functools.reduce(operator.add, table) + operator.itemgetter(1)(parts)
        x = x + sum(map(lambda each: each * 2, parts)) + any(map(lambda each: each > 2, table))
        x = x + len(list(filter(lambda each: each > 1, table))) + sum(map(len, ["a", "bc"]))
        found = pattern.match("a4")
        heap = list(table)
        heapq.heapify(heap)
        return x * int(found.group(2)) + heapq.heappop(heap)

    fast, x = compiled(f), torch.ones(3)
    parts = [torch.full((3,), 2.0), torch.full((3,), 3.0)]
    for _ in range(3):
        assert torch.equal(fast(x, parts), f(x, parts))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2
    table[0] = 0
    assert torch.equal(fast(x, parts), f(x, parts))


def gives_named_results(x):
    found = torch.topk(x, 2)
    return found, found.values * 2, x.max(0)


def joins_what_a_generator_gives(x):
    return x * len(",".join(str(each) for each in x.shape)), x.permute(*range(x.dim()))


def sorts_and_asks(x):
    numbers = [3, 1, 2]
    numbers.sort(reverse=True)
    try:
        raise ValueError("of", len(numbers))
    except ValueError as error:
        return x * numbers[0] * error.args[1], hasattr(tuple, "_fields")


def takes_the_most_by_a_key(x):
    return max([x, x * 2], key=lambda each: each.dim()), max({"a": 2, "b": 3}, key=len)


@pytest.mark.parametrize(
    "function",
    [
        gives_named_results,
        joins_what_a_generator_gives,
        sorts_and_asks,
        takes_the_most_by_a_key,
    ],
)
def test_what_libraries_in_c_give(function):
    fast = compiled(function)
    for size in (3, 3, 3, 4):
        x = torch.arange(float(size)) + size
        found, expected = fast(x), function(x)
        assert type(found[0]) is type(expected[0]) and str(found) == str(expected)
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] >= 2


class Sum:
    def __init__(self):
        self.all = None

    def __iadd__(self, x):
        self.all = x if self.all is None else self.all + x
        return self

    def __mul__(self, x):
        return self.all * x


def test_operators_and_methods_by_their_names():
    total, seen = Sum(), collections.Counter()
    kept, text = {"steps": [0, 0]}, []

    def f(x):
        nonlocal total
        total += x
        seen.update(["all", "all", x.dim()])
        operator.setitem(kept, "last", total * x)
        try:
            raise ValueError("no", kept["steps"].__len__())
        except ValueError as error:
            text[:] = [str(error)]
        return total.all, seen["all"], text

    fast, expected = compiled(f), torch.zeros(2)
    for step in range(6):
        x = torch.full((2,), float(step))
        found, count, said = fast(x)
        expected = expected + x
        assert torch.equal(found, expected) and torch.equal(kept["last"], expected * x)
        assert count == seen["all"] == 2 * step + 2 and seen[1] == step + 1
        assert said is text and text == ["('no', 2)"]
    assert is_without_breaks(fast)


def test_what_a_held_method_is_bound_to_may_change():
    kept = [1.0, 2.0]
    length, item, table = kept.__len__, kept.__getitem__, {"a": 1.0}
    get = table.get
    for f in (lambda x: x * length(), lambda x: x * item(0), lambda x: x * get("a")):
        fast, x = compiled(f), torch.ones(2)
        for step in range(4):
            assert torch.equal(fast(x), f(x))
            kept.append(1.0)
            kept[0] = table["a"] = float(step)
