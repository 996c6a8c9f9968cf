# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: members of enumerations as keys, what sorts compare, hashes."""

import collections
import enum
import operator
import sys

import pytest
import torch
from observing import agree, answers, compiled, values

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_members_of_enumerations_are_keys():
    table, held, levels = {Mode.SUM: 2.0}, {Mode.SUM}, {1: 3.0, Level.HIGH: 4.0}

    def f(mode, x):
        made = {Mode.SUM: x, Mode.MEAN: x * 2}
        scale = table.get(mode, 5.0) * levels[Level.LOW]
        return made[mode] * scale, mode in table, mode in held, mode in Mode, list(levels)

    fast, x = compiled(f), values()
    for change in (
        lambda: None,
        lambda: table.update({Mode.MEAN: 7.0}),
        lambda: held.add(Mode.MEAN),
        lambda: levels.update({Level.LOW: 6.0}),
        lambda: table.pop(Mode.SUM),
    ):
        change()
        agree(fast, f, Mode.SUM, x)
        agree(fast, f, Mode.MEAN, x)
    assert answers(fast)


def test_entries_of_members_are_set():
    class State:
        def __init__(self):
            self.kept, self.sums = {}, {Mode.SUM: torch.zeros(3)}

    def f(state, mode, x):
        state.kept[mode] = x.sum()
        state.sums[Mode.SUM] = 0.5 * state.sums[Mode.SUM] + x
        return x * 2 if x.sum() < 20 else x * state.kept[mode]

    own, twin = State(), State()
    fast = compiled(lambda mode, x: f(own, mode, x))
    for number, mode in enumerate((Mode.SUM, Mode.SUM, Mode.MEAN, Mode.MEAN, Mode.SUM, Mode.SUM)):
        x = values() + (10 if number == 4 else number)  # leaves the program half way
        assert torch.equal(fast(mode, x), f(twin, mode, x))
        assert str(own.kept) == str(twin.kept) and str(own.sums) == str(twin.sums)
    assert answers(fast)


def test_a_member_that_hashes_otherwise_is_no_key():
    class Own(enum.Enum):
        ONE = 1

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    fast = compiled(lambda table, x: x * table[Own.ONE])
    assert torch.equal(fast({1: 2.0}, values()), values() * 2)
    assert torch.equal(fast({1: 3.0}, values()), values() * 3)
    assert not weft.stats(fast)["graphs"]


def test_guards_look_for_members_without_their_methods():
    fast, table = compiled(lambda table, x: x * table[Mode.SUM]), {Mode.SUM: 2.0}
    fast(table, values())
    hashed = []

    def notes(frame, event, _):
        if event == "call" and frame.f_code is enum.Enum.__hash__.__code__:
            hashed.append(frame)

    before = weft.stats(fast)["hits"]
    sys.setprofile(notes)
    try:
        fast(table, values())
    finally:
        sys.setprofile(None)
    assert weft.stats(fast)["hits"] == before + 1 and not hashed


def test_tensors_are_not_sorted_unobserved():
    def f(some):
        return sorted(some, key=None)[0] * 2

    fast = compiled(f)
    for order in ((1.0, 2.0), (1.0, 2.0), (2.0, 1.0), (3.0, 0.0)):
        some = [torch.tensor(each) for each in order]
        assert torch.equal(fast(some), f(some))


def test_names_of_tensors_are_sorted():
    def f(table, x):
        for name in sorted(table):
            x = x * 2 + table[name]
        return x, sorted(table, reverse=True)

    fast = compiled(f)
    for names in ("ab", "ab", "ba", "abc"):
        agree(fast, f, {name: values() * ord(name) for name in names}, values())
    assert answers(fast)


def test_what_getters_take_is_compared():
    first = operator.itemgetter(0)

    def f(pairs):
        mine = list(pairs)
        mine.sort(key=first, reverse=True)
        return sorted(pairs, key=first)[0][1] * 2, max(pairs, key=first)[1], mine[-1][1]

    fast = compiled(f)
    for numbers in ((1, 2), (1, 2), (2, 1), (1, 2), (2, 1)):
        agree(fast, f, [(number, values() * number) for number in numbers])
    assert answers(fast)
    for numbers in ((1.0, 2.0), (2.0, 1.0)):  # tensors are compared by their data
        some = [(torch.tensor(each), values() * each) for each in numbers]
        assert torch.equal(fast(some)[0], f(some)[0])


def test_sorts_by_what_lookups_and_functions_give():
    scores, order = {"a": 2, "b": 1, "c": 3}, ["c", "a", "b"]

    def f(some, x):
        items = sorted(scores.items(), key=lambda pair: pair[1])
        pairs = sorted(zip(some, [x, x * 2], strict=True), key=lambda pair: pair[0])
        drawn = max(((number, x * number) for number in some), key=lambda pair: -pair[0])
        listed = max(scores, key=scores.get), sorted(scores, key=order.index), min(items)
        return pairs[0][1] + drawn[1], items, listed, max(scores.items(), key=lambda pair: pair[1])

    fast = compiled(f)
    for change in (
        lambda: None,
        lambda: scores.update(b=7),
        lambda: order.reverse(),
        lambda: scores.pop("c"),
    ):
        change()
        agree(fast, f, [1, 2], values())
        agree(fast, f, [2, 1], values())
    assert answers(fast)
    for kind in (lambda t: t.sum(), lambda t: t.sum().item()):  # by their data
        by_data = compiled(lambda some, kind=kind: sorted((t * 2 for t in some), key=kind)[0])
        for factor in (1.0, 1.0, -2.0, 1.0):
            some = [values() * factor, values() * 0]
            assert torch.equal(by_data(some), min((t * 2 for t in some), key=kind))


def test_the_most_common_and_named_tuples():
    Pair = collections.namedtuple("Pair", "first second")

    def f(words, pair, x):
        counted = collections.Counter(words)
        return x * counted.most_common(1)[0][1], counted.most_common(), pair == Pair(1, "a")

    fast = compiled(f)
    for words, first in (("abca", 1), ("abca", 1), ("bbb", 1), ("abca", 2)):
        agree(fast, f, words, Pair(first, "a"), values())
    assert answers(fast)


def test_hashes_of_objects_are_those_of_their_methods():
    class Key:
        def __init__(self, a):
            self.a = a

        def __hash__(self):
            return hash((self.a, "key"))

    key = Key(1)
    fast = compiled(lambda x: (x * 2, hash(key), hash("a")))
    for each in (1, 1, 5):
        key.a = each
        assert fast(values())[1:] == (hash((each, "key")), hash("a"))
    assert answers(fast)
    by_address = compiled(lambda x: (x * 2, hash(float("nan"))))
    by_address(values())
    assert not weft.stats(by_address)["graphs"]
