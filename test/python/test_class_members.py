# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What classes hold, and what methods of C are bound to, is state as what objects hold is."""

import collections
import functools
import itertools
import types

import numpy
import pytest
import torch
from agreeing import called
from torch import nn

import weft

pytestmark = [
    pytest.mark.usefixtures("verified"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]
table = {"a": 2.0}
look_up = table.get


def scaled(x, by, plus):
    return x * by + plus


class Settings:
    names = types.SimpleNamespace(by=2.0)
    ordered = collections.OrderedDict(by=2.0)
    counted = collections.Counter(by=2)
    default = collections.defaultdict(float, by=2.0)
    chained = collections.ChainMap({"by": 2.0})
    array = numpy.array([2.0, 3.0])
    memory = bytearray(b"\x02\x03")
    scale = functools.partial(scaled, by=2.0, plus=1.0)
    item = [2.0, 3.0].__getitem__
    length = [2.0, 3.0].__len__

    class Inner:
        by = 2.0


CHANGES = {
    "namespace": lambda by: setattr(Settings.names, "by", by),
    "ordered dict": lambda by: Settings.ordered.update(by=by),
    "counter": lambda by: Settings.counted.__setitem__("by", int(by)),
    "defaultdict": lambda by: Settings.default.update(by=by),
    "chain map": lambda by: Settings.chained.update(by=by),
    "array": lambda by: Settings.array.__setitem__(0, by),
    "memory": lambda by: Settings.memory.__setitem__(0, int(by)),
    "partial": lambda by: Settings.scale.keywords.update(by=by),
    "method of a list": lambda by: Settings.item.__self__.__setitem__(0, by),
    "method in a slot": lambda by: Settings.length.__self__.__setitem__(
        slice(2, 3), [1.0] * (by > 2)
    ),
    "inner class": lambda by: setattr(Settings.Inner, "by", by),
    "method of a dict": lambda by: table.update(a=by),
}


def read(x):
    x = x * Settings.names.by * Settings.ordered["by"] * Settings.counted["by"]
    x = x + Settings.default["by"] + Settings.chained["by"] + float(Settings.array[0])
    x = Settings.scale(x) + Settings.memory[0] + Settings.item(0) + Settings.length()
    return x * Settings.Inner.by + look_up("a")


@pytest.mark.usefixtures("no_grad")
def test_what_a_class_holds_is_watched():
    x = torch.randn(3)
    compiled = called(read, x)
    assert not weft.stats(compiled)["breaks"]
    for kind, change in CHANGES.items():
        assert weft.why_miss(compiled, x) is None, kind
        change(3.0)
        assert weft.why_miss(compiled, x) is not None, kind
        change(2.0)
    for change in CHANGES.values():
        change(3.0)
    torch.testing.assert_close(compiled(x), read(x))


def letters():
    yield from "abc" * 20


def moving():
    class Moving(nn.Module):
        count = itertools.count(1)
        letters = letters()
        recent = collections.deque([1.0, 2.0], maxlen=2)

        def forward(self, x, which):
            if which == "count":
                return x * next(self.count)
            if which == "letters":
                return x * (2 if next(self.letters) == "a" else 3)
            return x * self.recent[0]

    return Moving()


@pytest.mark.usefixtures("no_grad")
@pytest.mark.parametrize("which", ["count", "letters", "recent"])
def test_what_a_class_holds_may_have_no_guard(which):
    x, module, twin = torch.ones(2), moving(), moving()
    compiled = weft.compile(module)
    for step in range(4):
        assert torch.equal(compiled(x, which), twin(x, which))
        for each in (module, twin):
            each.recent.append(float(step))


def test_one_tensor_read_at_two_places_has_one_gradient():
    weight = nn.Parameter(torch.ones(3))

    def f(x):
        with torch.no_grad():
            target = x * weight
        return target, (x * weight - target + 1).pow(2).sum()

    x = torch.randn(2, 3)
    compiled = weft.compile(f)
    for _ in range(3):
        weight.grad = None
        compiled(x)[1].backward()
        found, weight.grad = weight.grad, None
        f(x)[1].backward()
        torch.testing.assert_close(found, weight.grad)
    assert not weft.stats(compiled)["breaks"] and weft.stats(compiled)["hits"] > 0
