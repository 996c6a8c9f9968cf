# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: lists that grow with each call. What a call puts behind a list's items does
not depend on these, and no call may be taken for another one because of that."""

import pytest
import torch
from list_programs import PROGRAMS, Counting, List, Shifted, World
from observing import compiled, is_without_breaks

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def contents(w):
    return str((w.list, w.other, list(w.deque), w.count, w.list is w.alias))


def grow(w):
    w.list.append(7.0)


def shrink(w):
    del w.list[1:]


def empty(w):
    w.list.clear()


def put(w):
    w.list[:] = [3.0, 4.0]


def replace(w):
    w.list = [8.0, 9.0]


def become_one(w):
    w.other = w.list


def part(w):
    w.other = [1.0, 2.0]


def count(w):
    w.count += 1


CHANGES = [None, None, grow, None, shrink, None, empty, None, put, None, replace, None, become_one,
           None, part, count, count, None]  # fmt: skip


def outcome(call, *args):
    try:
        return str(call(*args))
    except Exception as error:
        return f"{type(error).__name__}"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", [list, List, Counting, Shifted], ids=lambda each: each.__name__)
@pytest.mark.parametrize("from_outside", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_growing_lists(name, from_outside, kind):
    function, world, twin = PROGRAMS[name], World(kind), World(kind)
    if from_outside:
        fast = compiled(lambda x: function(world, x))
    else:
        whole = compiled(function)
        fast = lambda x: whole(world, x)  # noqa: E731
    for number, change in enumerate(CHANGES):
        if change is not None:
            change(world)
            change(twin)
        x = torch.arange(3.0) + number
        assert outcome(fast, x) == outcome(function, twin, x), (number, change)
        assert contents(world) == contents(twin), (number, change)


ONE_PROGRAM = ["last", "last_of_two", "through_an_alias", "by_a_kept_method", "by_a_method",
               "in_a_closure", "in_a_comprehension", "extends", "adds", "is_what_it_appended",
               "last_by_property"]  # fmt: skip


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_what_a_call_appends_needs_no_program_of_its_own(name):
    world = World()
    fast = compiled(lambda x: PROGRAMS[name](world, x))
    for number in range(6):
        fast(torch.arange(3.0) + number)
    assert is_without_breaks(fast)
    assert weft.stats(fast)["graphs"] == 1 and weft.stats(fast)["hits"] == 5


def test_two_arguments_that_are_one_list():
    def f(x, one, other):
        one.append(x * 2)
        other.append(x * 3)
        other.pop()
        return one[-1]

    fast, x = compiled(f), torch.arange(3.0)
    for same in (False, False, True, True, False):
        pair = ([], []) if not same else ([],) * 2
        expected = ([], []) if not same else ([],) * 2
        assert torch.equal(fast(x, *pair), f(x, *expected)) and str(pair) == str(expected)


def test_a_list_that_is_an_argument_and_the_programs_own():
    kept = [1.0]

    def f(x, given):
        given.append(x * 2)
        kept.append(x * 3)
        kept.pop()
        return given[-1]

    def expected(x, given):
        given.append(x * 2)
        return given[-1]

    fast, x = compiled(f), torch.arange(3.0)
    for given in ([], [], kept, [], kept):
        assert torch.equal(fast(x, given), expected(x, list(given)))


def test_a_list_is_extended_by_what_a_generator_gives():
    def program(history, outside):
        def f(x):
            history.extend(x * i + outside[0] for i in range(2))
            history.extend(map(lambda each: each * 2, (x, x + 1)))
            history.extend(range(2))
            return history[-3] + 1

        return f

    lists, outside = ([], []), [1]
    fast, twin = compiled(program(lists[0], outside)), program(lists[1], outside)
    for i in range(6):
        if i == 4:
            outside[0] = 5
        x = torch.arange(3.0) + i
        assert str(fast(x)) == str(twin(x)) and str(lists[0]) == str(lists[1])
    assert weft.stats(fast)["hits"] >= 3 and not weft.stats(fast)["breaks"], weft.stats(fast)


@pytest.mark.parametrize("what", ["length", "last", "appends", "clears", "raises"])
def test_a_generator_that_meets_the_list_it_extends(what):
    def program(history):
        def items(x):
            for i in range(2):
                if what == "appends":
                    history.append(i)
                if what == "clears" and i:
                    history.clear()
                if what == "raises" and i:
                    raise ValueError
                yield x * len(history) if what == "length" else x + i
                if what == "last":
                    yield history[-1] * 2

        def f(x):
            try:
                history.extend(items(x))
            except ValueError:
                history.append(x)
            return history[-1] + 1

        return f

    lists = [], []
    fast, twin = compiled(program(lists[0])), program(lists[1])
    for i in range(6):
        x = torch.arange(3.0) + i
        assert str(fast(x)) == str(twin(x)) and str(lists[0]) == str(lists[1])
        if i == 3:
            for each in lists:
                each.insert(0, 7)


def test_a_list_that_grows_and_is_read_as_a_whole_is_given_up_early():
    rows = []

    def step(x):
        rows.append(x.sum() / x.sum())
        return x * torch.stack(rows).sum()

    fast, x = compiled(step), torch.ones(2)
    for number in range(12):
        assert torch.equal(fast(x), x * (number + 1))
    assert weft.stats(fast)["captures"] <= 8
    assert "len(rows) ==" in weft.stats(fast)["breaks"][0]
