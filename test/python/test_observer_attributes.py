# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What observed calls read and set of attributes, partial functions and names of classes."""

import functools
import inspect

import pytest
import torch
from observing import agree, answers, compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def test_that_a_class_attribute_is_no_descriptor_is_guarded():
    class Found:
        value = 2

    class Owner:
        found = Found()
        other = Found()

    owner = Owner()
    owner.other = Found()
    owner.other.value = 3

    def f(x):
        return x * owner.found.value * Owner.found.value * owner.other.value

    fast, x = compiled(f), torch.arange(3.0)
    agree(fast, f, x)
    assert answers(fast), weft.stats(fast)
    Found.__get__ = lambda self, owner, kind=None: self
    Found.__set__ = lambda self, owner, value: None  # owner's own attribute is not asked any more
    agree(fast, f, x)
    Found.__get__ = lambda self, owner, kind=None: inspect.Parameter
    inspect.Parameter.value = 7
    try:
        agree(fast, f, x)
    finally:
        del inspect.Parameter.value
    del Found.__get__, Found.__set__
    agree(fast, f, x)


def test_what_sets_an_attribute_is_guarded():
    class Found:
        pass

    class Owner:
        found = Found()

    owner, heard = Owner(), []

    def f(x):
        owner.found = x.sum()
        return x * 2

    fast, x = compiled(f), torch.arange(3.0)
    agree(fast, f, x)
    assert answers(fast), weft.stats(fast)
    Found.__set__ = lambda self, owner, value: heard.append(value)
    fast(x)
    assert heard == [3.0]
    del Found.__set__
    fast(x + 1)
    assert owner.found == 6.0


def test_what_a_partial_function_holds_is_guarded():
    held = functools.partial(torch.add, torch.ones(3))

    def f(x):
        return held(x)

    fast, x = compiled(f), torch.arange(3.0)
    agree(fast, f, x)
    assert answers(fast), weft.stats(fast)
    for state in (
        (torch.mul, (torch.ones(3),), {}, {}),
        (torch.mul, (torch.full((3,), 2.0),), {}, {}),
        (torch.mul, (torch.full((3,), 2.0),), {"out": None}, {}),
    ):
        held.__setstate__(state)
        agree(fast, f, x)


def test_partial_functions_among_the_arguments():
    def f(x, function):
        return function(x)

    def one(x, k, m=1):
        return x * k + m

    def other(x, k, m=1):
        return x - k * m

    fast, x, items = compiled(f), torch.arange(3.0), [2]
    agree(fast, f, x, functools.partial(one, k=2))
    assert answers(fast), weft.stats(fast)
    listed = functools.partial(lambda x, items, c: x * items[0] + c, items=items, c=1)
    for function in (
        functools.partial(one, k=2),
        functools.partial(one, k=3),
        functools.partial(other, k=3),
        functools.partial(other, m=7, k=3),
        functools.partial(torch.mul, torch.full((3,), 2.0)),
        functools.partial(torch.mul, torch.full((3,), 3.0)),
        functools.partial(torch.mul, torch.full((1,), 3.0)),
        listed,
    ):
        agree(fast, f, x, function)
    items[0] = 5
    agree(fast, f, x, listed)
    listed.keywords["c"] = 9
    agree(fast, f, x, listed)


def test_properties_of_modules_are_set():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self._state, self.log = torch.zeros(3), []

        @property
        def state(self):
            return self._state

        @state.setter
        def state(self, value):
            self._state = value + 1
            self.log.append("set")

        def forward(self, x):
            self.state = self.state * 0.5 + x
            return self.state * 2

    model, twin = Model(), Model()
    fast = compiled(model)
    for i in range(5):
        assert str(fast(torch.arange(3.0) + i)) == str(twin(torch.arange(3.0) + i))
    assert model.log == twin.log and answers(fast), weft.stats(fast)
    Model.state = Model.state.setter(lambda self, value: setattr(self, "_state", value * 3))
    for i in range(2):
        assert str(fast(torch.arange(3.0) + i)) == str(twin(torch.arange(3.0) + i))


def test_vars_of_objects():
    class Holder:
        pass

    held = Holder()
    held.a, held.b = 1.0, 2.0

    def f(x, other):
        for name, value in vars(held).items():
            x = x * value + len(name)
        return x + len(vars(other))

    def new(**attributes):
        other = Holder()
        vars(other).update(attributes)
        return other

    fast, x = compiled(f), torch.arange(3.0)
    agree(fast, f, x, new(z=1))
    assert answers(fast), weft.stats(fast)
    agree(fast, f, x, new(z=1, y=2))
    held.long = 3.0
    agree(fast, f, x, new(z=1))
    del held.a
    agree(fast, f, x, new(z=1))
    held.__dict__ = {"b": 5.0}
    agree(fast, f, x, new(z=1))


def test_dtypes_are_compared_by_identity():
    def f(x):
        return x * 2 if x.dtype is torch.float32 else x * 3

    fast = compiled(f)
    for dtype in (torch.float32, torch.float32, torch.float64, torch.float32, torch.float64):
        assert torch.equal(fast(torch.ones(3, dtype=dtype)), f(torch.ones(3, dtype=dtype)))
    assert answers(fast), weft.stats(fast)


def test_what_classes_are_called_and_whether_objects_can_be_called():
    class Kind:
        pass

    held = Kind()

    def f(x):
        return x * len(f"{Kind}") * (2 if callable(held) else 3)

    fast, x = compiled(f), torch.ones(2)
    for change in (
        lambda: None,
        lambda: setattr(Kind, "__qualname__", "another"),
        lambda: setattr(Kind, "__call__", lambda self: None),
    ):
        change()
        for _ in range(2):
            assert fast(x).tolist() == f(x).tolist()
    assert answers(fast)


def test_sets_of_keys():
    left, right = {"a": 1, "b": 2}, {"b": 1, "c": 3}

    def f(x):
        both = len(left.keys() & right.keys()) + len(left.keys() | {"z"})
        return x * both if left.keys() <= {"a", "b"} and ("a", 1) in left.items() else x - both

    fast, x = compiled(f), torch.ones(2)
    for change in (lambda: None, lambda: left.update(c=3), lambda: right.pop("b")):
        change()
        for _ in range(2):
            assert fast(x).tolist() == f(x).tolist()
    assert answers(fast)
