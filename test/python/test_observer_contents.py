# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: C reads more of containers than their items: pairs that a dict is made of,
and all that is formatted as text."""

import collections
import itertools

import pytest
import torch
from observing import compiled, is_without_breaks

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

ONE, FORMAT, NAMED, BRACES, ITEM = "%s", "%s and %s", "%(a)s", "{} {}", "{0[0]}"


class Dict(dict):
    pass


class Ordered(collections.OrderedDict):
    pass


class Mapping:
    def __init__(self, pairs):
        self.pairs = pairs

    def keys(self):
        return [key for key, _ in self.pairs]

    def __getitem__(self, key):
        return [value for each, value in self.pairs if each == key][0]


class Items:
    """Iterating over it gives the lists themselves, by no code of Python's."""

    def __init__(self, pairs):
        self.pairs = pairs

    def __iter__(self):
        return iter(self.pairs)


def updated(made, pairs):
    made.update(pairs)
    return made


def added(made, pairs):
    made |= dict(pairs)
    return made


READS = {
    "dict": lambda pairs: dict(pairs),
    "with more by keyword": lambda pairs: dict(pairs, c=2.0),
    "ordered": lambda pairs: collections.OrderedDict(pairs),
    "default": lambda pairs: collections.defaultdict(list, pairs),
    "update": lambda pairs: updated({}, pairs),
    "update of an ordered one": lambda pairs: updated(collections.OrderedDict(), pairs),
    "update by keyword too": lambda pairs: updated({"a": 0}, pairs),
    "a class of Python's": lambda pairs: Dict(pairs),
    "an ordered class of Python's": lambda pairs: Ordered(pairs),
    "or": lambda pairs: {} | dict(pairs),
    "or in place": lambda pairs: added({}, pairs),
    "a new list": lambda pairs: dict([pairs[0]]),
    "a tuple": lambda pairs: dict((pairs[0], pairs[1])),
    "a deque": lambda pairs: dict(collections.deque(pairs)),
    "a generator": lambda pairs: dict(pair for pair in pairs),
    "map": lambda pairs: dict(map(lambda pair: pair, pairs)),
    "filter": lambda pairs: dict(filter(lambda pair: True, pairs)),
    "reversed": lambda pairs: dict(reversed(pairs)),
    "an iterator": lambda pairs: dict(iter(pairs)),
    "chain": lambda pairs: dict(itertools.chain(pairs)),
    "islice": lambda pairs: dict(itertools.islice(pairs, 2)),
    "cycle": lambda pairs: dict(itertools.islice(itertools.cycle(pairs), 3)),
    "a mapping": lambda pairs: dict(Mapping(pairs)),
    "an object that iterates": lambda pairs: dict(Items(pairs)),
    "a comprehension": lambda pairs: {key: value for key, value in pairs},
}
SAYS = {
    "percent": lambda pairs: ONE % pairs,
    "percent of a tuple": lambda pairs: FORMAT % (pairs, 2),
    "percent of a dict": lambda pairs: NAMED % {"a": pairs},
    "bytes": lambda pairs: b"%a" % pairs,
    "format": lambda pairs: BRACES.format(pairs, 2),
    "an item": lambda pairs: ITEM.format(pairs),
    "from a map": lambda pairs: "{a}".format_map({"a": pairs}),
    "f-string": lambda pairs: f"{pairs}",
    "str": lambda pairs: str(pairs),
    "repr": lambda pairs: repr((pairs, 2)),
    "join": lambda pairs: ",".join(map(str, pairs)),
    "join of a generator": lambda pairs: ",".join(str(each) for each in pairs),
}


def check(read, from_outside):
    """Whether a call that was captured sees that an inner list has changed since."""
    pairs = [["a", 1.0], ["b", 2.0]]
    if from_outside:
        fast, arguments = compiled(lambda x: read(x, pairs)), ()
    else:
        fast, arguments = compiled(read), (pairs,)
    x = torch.arange(3.0) + 1
    for change in (None, None, (0, 5.0), (0, 5.0), (1, 7.0), (1, 7.0), (0, 1.0)):
        if change:
            pairs[change[0]][1] = change[1]
        found, expected = fast(x, *arguments), read(x, pairs)
        assert str(found) == str(expected), change
    return fast


@pytest.mark.sampled(2)
@pytest.mark.parametrize("from_outside", [True, False])
@pytest.mark.parametrize("name", READS)
def test_pairs_of_a_dict(name, from_outside):
    make = READS[name]
    check(lambda x, pairs: x * sum(make(pairs).values()), from_outside)


@pytest.mark.parametrize("from_outside", [True, False])
@pytest.mark.parametrize("name", SAYS)
def test_what_is_formatted(name, from_outside):
    say = SAYS[name]
    check(lambda x, pairs: {say(pairs): x * 2}, from_outside)


@pytest.mark.parametrize("name", ["dict", "ordered", "update", "a generator", "map", "a mapping"])
def test_dicts_of_pairs_are_captured(name):
    make = READS[name]
    fast = check(lambda x, pairs: x * make(pairs)["a"], True)
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] > 0
