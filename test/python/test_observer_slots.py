# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes in `__slots__` that an observed call sets."""

import copy

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
