# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools of Python's library that a call makes and lets go: groups, comparisons, matches, views of
dicts, generators of random numbers, loggers, copies."""

import copy
import functools
import itertools
import logging
import operator
import random
import re
from collections import OrderedDict, namedtuple

import pytest
import torch
from observing import beside_eager, compiled, is_whole, values
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

PAIRS = [("a", 1.0), ("a", 2.0), ("b", 3.0), ("a", 4.0)]


def one_tensor(number):
    return (values(),)


def grouped_by_a_function(x, pairs):
    for key, group in itertools.groupby(pairs, key=lambda each: each[0]):
        x = x * (2 if key == "a" else 3) + sum(value for _, value in group)
    return x


def grouped_by_items(x, pairs):
    groups = itertools.groupby(sorted(pairs), operator.itemgetter(0))
    return {key: x * len(list(group)) for key, group in groups}


def grouped_alone(x, pairs):
    return [(key, x + len([*group])) for key, group in itertools.groupby(each[0] for each in pairs)]


def grouped_tensors(x, pairs):
    tensors = [(key, x * value) for key, value in pairs]
    return [
        sum(each for _, each in group) for _, group in itertools.groupby(tensors, lambda p: p[0])
    ]


def branched(x, pairs):
    first, second = itertools.tee(x * value for _, value in pairs)
    next(second, None)
    return [one + other for one, other in zip(first, second)]


def compared(x, pairs):
    def falling(left, right):
        return right[1] - left[1]

    key = functools.cmp_to_key(falling)
    ordered, copied = sorted(pairs, key=key), [*pairs]
    copied.sort(key=key)
    return x * ordered[0][1] + copied[-1][1] + min(pairs, key=key)[1]


def by_length(x, pairs):
    rows = [x[: int(value) % 3] for _, value in pairs]
    return [*sorted(rows, key=len)], sorted(["ccc", "a"], key=len), sorted([(1, 2), ()], key=len)


def of_the_frame(x, pairs):
    count = len(pairs)
    found = locals()
    return found["x"] * found["count"], sorted(found)


@pytest.mark.parametrize(
    "program",
    [
        grouped_by_a_function,
        grouped_by_items,
        grouped_tensors,
        branched,
        compared,
        by_length,
        of_the_frame,
    ],
)
def test_what_is_read_is_guarded(program):
    def make():
        pairs = [*PAIRS]
        return lambda x: program(x, pairs), one_tensor, tuple, pairs

    def change(number, world):
        if number == 2:
            world[3].append(("b", 5.0))
        if number == 4:
            world[3][1] = ("b", 2.0)
        if number == 6:
            del world[3][2:]

    fast = beside_eager(make, 8, change)
    assert is_whole(fast)


def test_variables_of_outer_functions_are_among_the_locals():
    def make():
        scale, kept = 2.0, [1.0]

        def change_it(value):
            nonlocal scale
            scale = value
            kept.append(value)

        def step(x):
            if x is None:
                return scale, kept
            found = locals()
            return x * found["scale"] + len(found["kept"])

        return step, one_tensor, tuple, change_it

    def change(number, world):
        if number == 3:
            world[3](5.0)

    assert is_whole(beside_eager(make, 6, change))


def test_groups_of_what_is_not_plain_are_the_interpreters():
    beside_eager(lambda: lambda x: grouped_alone(x, PAIRS), 4)

    def by_tensor(x):
        return [x + len([*group]) for _, group in itertools.groupby([x, x], lambda t: t.sum())]

    beside_eager(lambda: by_tensor, 4)


def test_a_comparison_that_follows_from_data():
    def make():
        def step(x):
            def order(left, right):
                return left.sum().item() - right.sum().item()

            return torch.stack(sorted([x, -x, x * 2], key=functools.cmp_to_key(order)))

        return step, lambda number: (values() * (1 if number % 2 else -1),), tuple

    beside_eager(make, 6)


def test_matches():
    def make():
        texts = ["a1b22"]

        def step(x):
            for each in re.finditer(r"([a-z])(\d+)", texts[0]):
                x = x * int(each[2]) + each.start() + len(each.group())
            return x, [each.span() for each in re.compile("b").finditer(texts[0])]

        return step, one_tensor, tuple, texts

    def change(number, world):
        if number == 3:
            world[3][0] = "c3d4b5"

    assert is_whole(beside_eager(make, 6, change))


def test_views_that_are_given_and_kept():
    def make():
        settings, kept = {"a": 1.0}, {}

        def step(x):
            own = OrderedDict(a=x, b=x * 2)
            plain = {"c": x}
            kept["items"] = plain.items()
            return (
                own.keys(),
                own.values(),
                plain,
                plain.values(),
                settings.keys(),
                settings.items(),
            )

        return step, one_tensor, lambda: kept, settings

    def change(number, world):
        if number == 3:
            world[3]["b"] = 2.0

    assert is_whole(beside_eager(make, 6, change))


def test_a_view_that_is_given_shows_the_dict_itself():
    settings = {"a": 1.0}
    fast = compiled(lambda x: (x + 1, settings.values()))
    for _ in range(3):
        _, shown = fast(values())
    settings["b"] = 2.0
    assert [*shown] == [1.0, 2.0]


def test_views_from_outside():
    settings = [{"a": 2.0, "b": 3.0}]

    def make():
        class Holder:
            shown = settings[0].keys()

        holder = Holder()

        def step(x, shown, pairs):
            for key, value in pairs:
                x = x * value + (key in holder.shown) + len(shown)
            return x + sum(shown) + len(holder.shown)

        def arguments(number):
            table = {"a": values() * number, "b": values()}
            pairs = {"a": 1.0 * (number // 3), "c": 2.0}
            return values(), table.values(), pairs.items()

        return step, arguments, tuple, holder

    def change(number, world):
        if number == 5:
            settings[0]["c"] = 4.0

    assert is_whole(beside_eager(make, 8, change))


def test_generators_that_a_call_seeds():
    def make():
        def step(x, seed):
            own = random.Random(seed)
            order = [0, 1, 2]
            own.shuffle(order)
            return (
                x[order] * own.random() + own.randint(0, 9),
                own.choice("abc"),
                own.sample("ab", 2),
            )

        return step, lambda number: (values(), number // 3), lambda: random.getstate()[1][-1]

    assert is_whole(beside_eager(make, 8))


def test_a_generator_without_a_seed_is_the_interpreters():
    fast = compiled(lambda x: x * random.Random().random())
    assert len({fast(values()).sum().item() for _ in range(6)}) == 6


def test_loggers_by_name(caplog):
    def make():
        def step(x):
            log = logging.getLogger("weft.test.tools")
            log.debug("sum %s", x.sum().item())
            log.warning("loss %.3f", x.mean().item())
            return x * 2

        return step, lambda number: (values() * number,), lambda: sorted(caplog.messages)[:0]

    def change(number, world):
        logging.getLogger("weft.test.tools").setLevel(logging.DEBUG if number > 3 else logging.INFO)

    fast = beside_eager(make, 7, change)
    assert is_whole(fast)
    told = [each for each in caplog.messages if each.startswith(("sum", "loss"))]
    assert told.count("loss 12.000") == 2 and told.count("sum 30.0") == 2
    assert len(told) == 2 * (7 + 3)


def test_shallow_copies_of_tensors():
    def make():
        layer = nn.Linear(3, 3)
        nn.init.ones_(layer.weight)

        def step(x):
            shared, weight = copy.copy(x), copy.copy(layer.weight)
            shared.add_(1)
            return shared, x, weight, weight.requires_grad, type(weight) is nn.Parameter

        return step, one_tensor, tuple, layer

    def change(number, world):
        if number == 3:
            world[3].weight.requires_grad_(False)

    assert is_whole(beside_eager(make, 6, change))


def test_a_shallow_copy_of_a_tensor_with_attributes():
    fast = compiled(lambda x: copy.copy(x))
    for number in range(6):
        x = values()
        if number > 2:
            x.note = number
        found = fast(x)
        assert found is not x and found.data_ptr() == x.data_ptr()
        assert getattr(found, "note", None) == (number if number > 2 else None)


Pair = namedtuple("Pair", "first second")


def test_named_tuples_of_what_a_generator_gives():
    def make():
        def doubled(tree):
            if isinstance(tree, tuple):
                return type(tree)(*(doubled(each) for each in tree))
            return tree * 2

        return doubled, lambda number: (Pair(values(), Pair(values(), 1.0 * (number // 3))),), tuple

    assert is_whole(beside_eager(make, 6))
