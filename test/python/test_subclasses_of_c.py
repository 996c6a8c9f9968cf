# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that code reads may hold more than attributes: what a class in C keeps for them."""

import collections

import pytest
import torch

import weft

pytestmark = [
    pytest.mark.usefixtures("no_grad"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


class Whole(int):
    pass


class Text(str):
    pass


class Bag(set):
    pass


class Row(collections.deque):
    pass


class Numbers(list):
    gain = 2


class Options(dict):
    gain = 2


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()
    gain = 2


class Holder:
    pass


def made():
    """What each has to be read by, and to be changed by."""
    holder = Holder()
    holder.whole, holder.text = Whole(3), Text("sin")
    holder.bag, holder.row, holder.error = Bag([1]), Row([1]), ValueError("a")
    holder.numbers, holder.options = Numbers([1]), Options(a=1)
    holder.ordered, holder.filled = collections.OrderedDict(a=1), collections.defaultdict(int)
    holder.pair = Pair(1, 2)
    holder.numbers.extra = holder.options.extra = holder.ordered.extra = 1
    return holder


CASES = {
    "the number": (lambda h: h.whole + 0, lambda h: setattr(h, "whole", Whole(4))),
    "the text": (lambda h: len(h.text), lambda h: setattr(h, "text", Text("asin"))),
    "entries of a set": (lambda h: len(h.bag), lambda h: h.bag.add(5)),
    "entries of a deque": (lambda h: len(h.row), lambda h: h.row.append(5)),
    "an error's": (lambda h: len(h.error.args), lambda h: setattr(h.error, "args", (1, 2))),
    "a list's attribute": (
        lambda h: h.numbers.extra,
        lambda h: setattr(h.numbers, "extra", 4),
    ),
    "a dict's attribute": (
        lambda h: h.options.extra,
        lambda h: setattr(h.options, "extra", 4),
    ),
    "an ordered dict's attribute": (
        lambda h: h.ordered.extra,
        lambda h: setattr(h.ordered, "extra", 4),
    ),
    "the factory": (
        lambda h: h.filled.default_factory() == 0,
        lambda h: setattr(h.filled, "default_factory", str),
    ),
    "a list's class": (lambda h: h.numbers.gain, lambda h: setattr(Numbers, "gain", 4)),
    "a dict's class": (lambda h: h.options.gain, lambda h: setattr(Options, "gain", 4)),
    "a tuple's class": (lambda h: h.pair.gain, lambda h: setattr(Pair, "gain", 4)),
}


# Of these there is no guard: calls that read them are observed.
UNWATCHED = ("entries of a deque", "an error's")


@pytest.mark.parametrize("options", [{}, {"capture": "observe", "backend": "eager"}])
def test_what_objects_hold_is_watched(options, monkeypatch):
    holder, x = made(), torch.rand(3)
    for kind in (Numbers, Options, Pair):
        monkeypatch.setattr(kind, "gain", 2)  # and back
    for apart in (False, True):
        cases = {name: case for name, case in CASES.items() if (name in UNWATCHED) == apart}

        def total(x, cases=cases):
            return x * sum(reads(holder) for reads, _ in cases.values())

        compiled = weft.compile(total, **options)
        for _ in range(2):
            assert torch.equal(compiled(x), total(x))
        for name, (_, changes) in cases.items():
            changes(holder)
            assert torch.equal(compiled(x), total(x)), name
