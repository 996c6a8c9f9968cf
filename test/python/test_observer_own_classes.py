# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes that a call makes: what they do is observed, what they derive from is guarded, and none
of them leaves the call."""

import abc
import collections
import dataclasses

import pytest
import torch
from observing import beside_eager, captures, compiled, is_whole, values
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def one_tensor(number):
    return (values() * (number % 3 - 0.5),)


def with_methods(x, scale):
    class Local:
        """What a class may have."""

        factor: float = scale
        count = 0

        def __init__(self, x):
            self._x = x
            type(self).count += 1

        @property
        def doubled(self):
            return self._x * 2 * self.factor

        @classmethod
        def made(cls, x):
            return cls(x)

        @staticmethod
        def shifted(x):
            return x + 1

    first, second = Local.made(x), Local(x * 3)
    return Local.shifted(first.doubled) + second.doubled, Local.count, sorted(Local.__annotations__)


def with_a_closure(x, scale):
    total = x.sum()

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ReLU()

        def forward(self, y):
            return self.inner(y) * total * scale

    return Layer()(x)


def with_an_error(x, scale):
    class Refused(Exception):
        pass

    try:
        if x.sum() > 0:
            raise Refused("too much")
        return x * scale
    except Refused as error:
        return x + len(str(error))


def by_a_call_of_type(x, scale):
    made = type("Made", (), {"scale": scale, "of": lambda self, y: y * self.scale})
    return made().of(x), made.__name__, isinstance(made(), made)


def by_namedtuple(x, scale):
    kind = collections.namedtuple("Kind", "first second", defaults=[1.0])
    pair = kind(x)._replace(second=scale)
    first, second = pair
    return first * second + pair.second + len(kind._fields), pair._asdict()["first"]


def by_a_dataclass(x, scale):
    @dataclasses.dataclass
    class State:
        x: torch.Tensor
        scale: float = 2.0
        kept: list = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(frozen=True)
    class Key:
        number: float

    state = State(x, scale)
    state.kept.append(state.x * state.scale)
    return state.kept[0], {Key(1): 2}[Key(1)], repr(Key(scale)), Key(1) == Key(2)


def as_keys(x, scale):
    class First:
        pass

    class Second(First):
        pass

    table = {First: scale, Second: 3.0}
    return x * table[First] + table[Second], issubclass(Second, First)


PROGRAMS = [
    with_methods,
    with_a_closure,
    with_an_error,
    by_a_call_of_type,
    by_namedtuple,
    by_a_dataclass,
    as_keys,
]


@pytest.mark.parametrize("backend", ["eager", "weft"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_classes_read_is_guarded(program, backend):
    def make():
        settings = {"scale": 2.0}
        return lambda x: program(x, settings["scale"]), one_tensor, tuple, settings

    def change(number, world):
        if number == 4:
            world[3]["scale"] = 5.0

    if backend == "eager":
        fast = beside_eager(make, 9, change)
        assert is_whole(fast) and captures(fast) <= 4
        return
    (function, _, _, settings), fast = make(), None
    fast = weft.compile(function)
    for number in range(7):
        change(number, (None, None, None, settings))
        found, expected = fast(*one_tensor(number)), function(*one_tensor(number))
        for one, other in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
            assert torch.allclose(one, other) if isinstance(one, torch.Tensor) else one == other
    assert not weft.stats(fast)["breaks"]


class Base:
    scale = 2.0

    def scaled(self, x):
        return x * self.scale


def test_a_base_from_outside_that_changes():
    def step(x):
        class Local(Base):
            def both(self, x):
                return super().scaled(x) + self.scaled(x)

        return Local().both(x)

    fast, kept = compiled(step), Base.scaled
    try:
        for number in range(9):
            if number == 3:
                Base.scale = 5.0
            if number == 5:
                Base.scaled = lambda self, x: x - self.scale
            if number == 7:
                Base.more = 1
            assert torch.equal(fast(values()), step(values()))
    finally:
        Base.scale, Base.scaled = 2.0, kept
    assert is_whole(fast)


def test_hooks_of_bases_and_of_descriptors():
    def make():
        class Hooked:
            factor = 2.0

            def __init_subclass__(cls, scale=1.0):
                super().__init_subclass__()
                cls.scale = scale * Hooked.factor

        class Named:
            def __set_name__(self, owner, name):
                self.name = name

            def __get__(self, owner, kind=None):
                return len(self.name) * owner.scale

        def step(x):
            class Local(Hooked, scale=3.0):
                value = Named()

            return x * Local().value

        return step, one_tensor, tuple, Hooked

    def change(number, world):
        if number == 3:
            world[3].factor = 4.0
        if number == 5:
            world[3].__init_subclass__ = classmethod(lambda cls, scale: setattr(cls, "scale", 7.0))

    assert is_whole(beside_eager(make, 8, change))


def test_a_hook_that_registers_classes():
    def make():
        seen = []

        class Registering:
            def __init_subclass__(cls):
                seen.append(cls)

        def step(x):
            class Local(Registering):
                pass

            return x + len(seen)

        return step, one_tensor, lambda: [each.__name__ for each in seen]

    beside_eager(make, 6)


def given(x):
    class Local:
        pass

    return Local


def an_instance(x):
    class Local:
        pass

    made = Local()
    made.x = x
    return made


def a_named_tuple(x):
    return collections.namedtuple("Kind", "first")(x)


def in_a_list(x):
    return [type("Local", (), {})]


def a_function_of_it(x):
    class Local:
        def method(self):
            return __class__

    return Local.method


@pytest.mark.parametrize(
    "program", [given, an_instance, a_named_tuple, in_a_list, a_function_of_it]
)
def test_classes_that_leave_the_call_are_others_in_each(program):
    fast = compiled(program)
    found = [fast(values()) for _ in range(6)]

    def kind(each):
        each = each[0] if type(each) is list else each
        each = each(None) if program is a_function_of_it else each
        return each if isinstance(each, type) else type(each)

    assert len({kind(each) for each in found}) == 6


def test_classes_that_are_kept_are_others_in_each():
    kept = []

    def step(x):
        class Local:
            pass

        kept.append(Local)
        return x

    fast = compiled(step)
    for _ in range(6):
        fast(values())
    assert len(set(kept)) == 6


def by_a_metaclass(x):
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def method(self): ...

    class Local(Abstract):
        def method(self):
            return 2

    return x * Local().method()


def of_an_inherited_dataclass(x):
    @dataclasses.dataclass
    class Local(Outer):
        own: int = 2

    return x * Local().own * Local().number


@dataclasses.dataclass
class Outer:
    number: int = 3


@pytest.mark.parametrize("program", [by_a_metaclass, of_an_inherited_dataclass])
def test_other_ways_of_making_classes_are_the_interpreters(program):
    beside_eager(lambda: program, 5)
