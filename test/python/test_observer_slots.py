# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes in `__slots__` that an observed call sets."""

import copy
import dataclasses
import types

import pytest
import torch
from observing import compiled, whole

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class State:
    __slots__ = ("number", "last")

    def __init__(self, number=0.0):
        self.number = number


def contents(state):
    return {each: getattr(state, each) for each in State.__slots__ if hasattr(state, each)}


def agree(step, calls, backend="eager"):
    """calls: makes, twice the same, the arguments of each call, tensors last."""
    fast = compiled(step, backend)
    for mine, others in zip(calls(), calls()):
        torch.testing.assert_close(fast(*mine), step(*others))
        for state, other in zip(mine, others):
            if isinstance(state, State):
                torch.testing.assert_close(contents(state), contents(other))
    return fast


@pytest.mark.usefixtures("verified")
def test_a_slot_that_is_empty_at_first():
    def step(state, x):
        if hasattr(state, "last"):
            return x + state.last
        state.last = x * 2
        return x - 1

    def calls():
        kept = State()
        for number in range(3):
            for state in (kept, State()):
                yield state, torch.full((3,), float(number))

    assert whole(agree(step, calls), 4)


def test_what_is_set_is_read_again():
    def step(state, x):
        state.number = state.number * 0.5 + 1
        y = x * state.number
        state.last = y
        state.number += 2.0
        return state.last + state.number

    def calls():
        state = State(3.0)
        for number in range(4):
            yield state, torch.full((3,), float(number))
        yield State(3.0), torch.ones(3)

    agree(step, calls)


def test_objects_that_are_one_or_two():
    def step(state, other, x):
        state.number = 2.0
        y = x * other.number
        other.number = 5.0
        return y + state.number

    def calls():
        for _ in range(2):
            one = State(1.0)
            yield State(1.0), State(1.0), torch.ones(3)
            yield one, one, torch.ones(3)

    agree(step, calls)


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_slot_is_put_back_where_data_came_out_otherwise(backend):
    """The branch is asked behind the effect, and its other side needs what was there."""

    def step(state, x):
        before, state.number = state.number, 7.0
        state.last = x * 2
        if x.sum() > 0:
            return x * 3
        return x * before

    def calls():
        for sign in (1.0, 1.0, -1.0, 1.0, -1.0):
            yield State(2.0), torch.full((3,), sign)

    assert whole(agree(step, calls, backend), 2)


def test_classes_that_answer_for_their_slots():
    class Doubling(State):
        __slots__ = ()

        def __setattr__(self, name, value):
            super().__setattr__(name, value * 2)

    class Property(State):
        __slots__ = ()
        number = property(lambda self: 4.0, lambda self, value: None)

    def step(state, x):
        state.number += 1.0
        return x * 2

    fast = compiled(step)
    for kind in (State, Doubling, Property, State):
        for _ in range(3):
            mine, other = kind(1.0), kind(1.0)
            assert torch.equal(fast(mine, torch.ones(2)), step(other, torch.ones(2)))
            assert mine.number == other.number
    State.number, kept = property(lambda self: 1.0, lambda self, value: None), State.number
    try:
        mine = State(1.0)
        kept.__set__(mine, 3.0)
        fast(mine, torch.ones(2))
        assert kept.__get__(mine) == 3.0
    finally:
        State.number = kept


def test_a_copy_has_what_was_set():
    def step(state, x):
        state.number += 1.0
        other = copy.copy(state)
        return x * other.number

    def calls():
        state = State(1.0)
        for _ in range(4):
            yield state, torch.ones(3)

    agree(step, calls)


def test_a_slot_that_is_deleted_leaves_the_call_to_the_interpreter():
    def step(state, x):
        del state.number
        return x * 2

    def calls():
        for _ in range(3):
            yield State(1.0), torch.ones(3)

    assert not weft.stats(agree(step, calls))["graphs"]


# Objects with slots that the call makes.


class Slots:
    __slots__ = ("last", "number", "others")

    def __init__(self, last, number):
        self.last, self.number = last, number


class More(Slots):
    __slots__ = ("__dict__",)


@dataclasses.dataclass(slots=True)
class Entry:
    last: torch.Tensor
    number: float = 1.0
    others: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True, frozen=True)
class Frozen:
    last: torch.Tensor
    number: float = 1.0


def told(made):
    if isinstance(made, (list, tuple)):
        return [told(each) for each in made]
    if isinstance(made, torch.Tensor):
        return str(made)
    slots = [each for kind in type(made).__mro__ for each in getattr(kind, "__slots__", ())]
    held = {each: getattr(made, each, None) for each in slots if each != "__dict__"}
    return type(made).__name__, str(held), sorted(map(str, getattr(made, "__dict__", {}).items()))


def slots(x):
    return Slots(x * 2, 3)


def attributes_too(x):
    made = More(x * 2, 3)
    made.text = "a"
    return made


def one_that_is_deleted(x):
    made = Slots(x * 2, 3)
    del made.number
    return made


def records(x):
    made = Entry(x * 2, others=[x])
    return made, made, dataclasses.replace(made, number=2.0), Frozen(x + 1)


def copied(x):
    made = Slots(x * 2, [1])
    again, deep = copy.copy(made), copy.deepcopy(made)
    again.number.append(2)
    deep.last.add_(1)
    return made, again, deep


@pytest.mark.parametrize("step", [slots, attributes_too, one_that_is_deleted, records, copied])
def test_objects_that_are_made(step):
    fast = compiled(step)
    for number in range(4):
        x = torch.ones(3) + number
        found, expected = fast(x), step(x)
        assert told(found) == told(expected)
    if step is records:
        assert found[0] is found[1]
    assert whole(fast)


def test_objects_that_are_made_and_kept():
    kept = []

    def step(x):
        made = Slots(x * 2, 3)
        kept.append(made)
        made.number = x.sum()
        kept[-1].others = [made.last]
        return made

    fast = compiled(step)
    for number in range(4):
        made = fast(torch.ones(3) + number)
        assert made is kept[-1] and made.others[0] is made.last
        assert float(made.number) == 3 * (1 + number)
    assert whole(fast)


@pytest.mark.parametrize("make", [Slots, More, Entry, types.SimpleNamespace])
@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy])
def test_copies_of_arguments(make, copies):
    def step(given, x):
        made = copies(given)
        made.last = made.last + x
        return made, given.last

    def arguments():
        for number, each in enumerate((1, 1, 2.5, 2.5, None, "a", [1], [1], [2])):
            given = make(last=torch.ones(3) * number, number=each)
            if number % 3 == 1:
                given.others = [number // 3]
            yield given, torch.ones(3)

    fast = compiled(step)
    for mine, others in zip(arguments(), arguments()):
        found, expected = fast(*mine), step(*others)
        assert told(found[0]) == told(expected[0]) and torch.equal(found[1], expected[1])
        if isinstance(mine[0].number, list):
            assert (found[0].number is mine[0].number) == (copies is copy.copy)
    assert not weft.stats(fast)["breaks"]
