# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is kept at a module and read by no call changes without a new program."""

import enum
import operator
from copy import deepcopy as duplicate

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
ask, last_of = getattr, operator.attrgetter("ke" + "pt")


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.epoch, self.child, self.ask = [1.0], 0, None, None


class Plain(Keeps):
    def forward(self, x):
        return x * 2


class Parent(Keeps):
    """Reads what its child keeps."""

    def __init__(self):
        super().__init__()
        self.child = Plain()

    def forward(self, x):
        return self.child(x) * self.child.kept[-1]


class ByName(Keeps):
    def forward(self, x):
        return x * getattr(self, "ke" + "pt")[-1]


class ByOtherName(Keeps):
    def forward(self, x):
        return x * ask(self, "ke" + "pt")[-1]


class ByHeldFunction(Keeps):
    def __init__(self):
        super().__init__()
        self.ask = getattr

    def forward(self, x):
        return x * self.ask(self, "ke" + "pt")[-1]


class ByGetter(Keeps):
    def forward(self, x):
        return x * last_of(self)[-1]


class ByHeldGetter(Keeps):
    def __init__(self):
        super().__init__()
        self.ask = [operator.attrgetter("ke" + "pt")]

    def forward(self, x):
        return x * self.ask[0](self)[-1]


class ByPattern(Keeps):
    def forward(self, x):
        match self:
            case Keeps(kept=[*_, last]):
                return x * last
        return x


class ByFormat(Keeps):
    def forward(self, x):
        return x * len("{.kept}".format(self))  # noqa: UP032


class ByCopy(Keeps):
    def forward(self, x):
        found = [each for name, each in duplicate(self).state().items() if name == "ke" + "pt"]
        return x * found[0][-1]

    def state(self):
        return self.__dict__


class Sets(Keeps):
    def forward(self, x):
        self.epoch = 7
        return x * 2


class Appends(Keeps):
    def forward(self, x):
        self.kept.append(5.0)
        return x * 2


class Pick(enum.Enum):
    LAST = 1

    def of(self, x):
        return x * HELD["model"].kept[-1]


class ByArgument(Keeps):
    def forward(self, x, pick=Pick.LAST):
        return pick.of(x)


HELD = {}


def results(model, call, *args):
    found = []
    for number in range(5):
        HELD["model"] = model
        found.append((call(torch.ones(2), *args).tolist(), list(model.kept), model.epoch))
        for each in filter(None, (model, model.child)):
            each.kept.append(number + 2.0)
        model.epoch = number
        if number == 3:
            model.kept = [9.0]
    return found


def test_it_is_one_program():
    model, twin = Plain(), Plain()
    fast = weft.compile(model)
    assert results(model, fast) == results(twin, twin)
    assert weft.stats(fast)["captures"] <= 2 and weft.stats(fast)["hits"] >= 3


READS = [
    Parent,
    ByName,
    ByOtherName,
    ByHeldFunction,
    ByGetter,
    ByHeldGetter,
    ByPattern,
    ByFormat,
    ByCopy,
    Appends,
    Sets,
]


@pytest.mark.parametrize("kind", READS)
def test_what_calls_read_is_state(kind):
    model, twin = kind(), kind()
    assert results(model, weft.compile(model)) == results(twin, twin)


def test_what_arguments_read_is_state():
    model, twin = ByArgument(), ByArgument()
    expected = results(twin, twin, Pick.LAST)
    assert results(model, weft.compile(model), Pick.LAST) == expected
