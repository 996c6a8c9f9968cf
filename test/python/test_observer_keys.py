# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: members of enumerations as keys, what sorts compare, hashes."""

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
