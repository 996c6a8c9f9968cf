# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of classes that a call sets: they are effects, one program for all calls."""

import types

import pytest
import torch
from observing import compiled, whole
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def counts(cls, x):
    cls.calls += 1
    return x * 2


def uses_what_it_counts(cls, x):
    cls.calls = cls.calls + 1
    return x * cls.calls


def by_name(cls, x):
    name = "calls"
    setattr(cls, name, getattr(cls, name) * 2)
    return x - getattr(cls, name)


def keeps_a_tensor(cls, x):
    cls.last = x if cls.last is None else cls.last * 0.5 + x
    return cls.last.sum()


def keeps_what_it_makes(cls, x):
    cls.last = types.SimpleNamespace(x=x, seen=[cls.calls])
    cls.last.seen.append(x.shape)
    return x + 1


def deletes(cls, x):
    cls.tmp = x.shape
    y = x.reshape(cls.tmp[1], cls.tmp[0])
    del cls.tmp
    return y


def of_an_instance(cls, x):
    instance = cls()
    cls.calls += 1
    instance.calls += 10
    return x * instance.calls


def made():
    class Base:
        calls, last = 3, None

    class Derived(Base):
        pass

    return Base, Derived


def state(*classes):
    return [
        {name: str(value) for name, value in vars(each).items() if not name.startswith("__")}
        for each in classes
    ]


@pytest.mark.parametrize(
    "function",
    [
        counts,
        uses_what_it_counts,
        by_name,
        keeps_a_tensor,
        keeps_what_it_makes,
        deletes,
        of_an_instance,
    ],
)
@pytest.mark.parametrize("derived", [False, True])
def test_one_program_for_all_calls(function, derived):
    own, twin = made(), made()
    fast = compiled(lambda x: function(own[derived], x))
    for number in range(7):
        if number == 5:  # from outside
            own[0].calls = twin[0].calls = 40
        x = torch.ones(2, 3) + number
        assert torch.equal(fast(x), function(twin[derived], x))
        assert state(*own) == state(*twin)
    assert weft.stats(fast)["captures"] <= 4
    assert whole(fast, hits=3)


def test_guards_say_in_which_class_a_name_is_found():
    own, twin = made(), made()
    functions = [
        lambda x, cls=cls: x * (uses_what_it_counts(cls[0], x) + cls[1].calls)
        for cls in (own, twin)
    ]
    fast = compiled(functions[0])
    changes = {
        4: lambda cls: setattr(cls[1], "calls", 9),
        5: lambda cls: delattr(cls[1], "calls"),
        6: lambda cls: setattr(cls[0], "calls", 0.5),
        7: lambda cls: setattr(cls[0], "calls", torch.ones(())),
    }
    for number in range(9):
        for each in (own, twin):
            changes.get(number, lambda cls: None)(each)
        x = torch.ones(2) + number
        assert torch.equal(fast(x), functions[1](x))
        assert state(*own) == state(*twin)


class Meta(type):
    def __setattr__(cls, name, value):
        super().__setattr__(name, value + 1)


def test_what_changes_code_is_left_to_the_interpreter():
    def of_a_metaclass(cls, x):
        cls.calls = 5
        return x * cls.calls

    def of_a_method(cls, x):
        cls.value = lambda self: 2
        return x * cls().value()

    for function, cls in ((of_a_metaclass, Meta("Kind", (), {})), (of_a_method, made()[0])):
        fast = compiled(lambda x, f=function, cls=cls: f(cls, x))
        for number in range(3):
            assert torch.equal(fast(torch.ones(2)), function(cls, torch.ones(2))), number
        assert any("sets the attribute" in each for each in weft.stats(fast)["breaks"])


def test_what_is_left_half_way_is_put_back():
    cls = made()[0]

    def function(x):
        cls.calls += 1
        cls.new = 1
        if x.sum() > 10:
            raise ValueError(cls.calls)
        return x * 2

    fast = compiled(function)
    for value, calls in ((1.0, 4), (1.0, 5), (1.0, 6)):
        assert torch.equal(fast(torch.full((2,), value)), torch.full((2,), 2 * value))
        assert cls.calls == calls
    for calls in (7, 8):
        with pytest.raises(ValueError, match=str(calls)):
            fast(torch.full((2,), 20.0))
        assert cls.calls == calls


settings = types.ModuleType("settings")


def test_names_of_modules():
    def function(x):
        settings.calls += 1
        settings.last = settings.last * 0.5 + x
        return settings.last * settings.calls

    fast = compiled(function)
    settings.calls, settings.last, last = 0, torch.zeros(2), torch.zeros(2)
    for number in range(1, 8):
        last = last * 0.5 + number
        assert torch.equal(fast(torch.full((2,), float(number))), last * number)
        assert settings.calls == number and torch.equal(settings.last, last)
    assert whole(fast, hits=3)


class Counted(nn.Module):
    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return x * 2


def test_reasons_have_the_line_that_changes_the_class():
    fast = weft.compile(Counted(), capture="export")
    with torch.no_grad():
        for _ in range(4):
            fast(torch.ones(2))
    line = Counted.forward.__code__.co_firstlineno + 1
    (reason,) = weft.stats(fast)["breaks"]
    assert f"{__file__}:{line} (forward)" in reason
