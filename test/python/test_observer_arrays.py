# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of NumPy from outside that a call writes to."""

import numpy
import pytest
import torch
from observing import beside_eager, captures, compiled, is_whole, values

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def by_number(number):
    return (values() * (number % 3 + 1),)


def items(x, array):
    array[0] = 5
    array[1] += 1
    array[-1] = array[1] * 2
    return x + float(array[2])


def whole(x, array):
    array *= 0.5
    array[:] = array + x.numpy()
    return x + torch.from_numpy(array.copy())


def views(x, array):
    part = array[1:]
    part[0] = x.sum().item()
    part += 1
    return x + part.sum()


def methods(x, array):
    array.fill(x.sum().item())
    numpy.add(array, [2.0, 0.0, 1.0], out=array)
    numpy.copyto(array[:2], array[1:] * 2)
    array.sort()
    return x + array.mean()


def around_a_branch(x, array):
    array[0] += 1
    if x.sum() > 15:
        array[1] = 5
        return x * 2
    return x + array[0]


def in_memory_of_a_tensor(x, array):
    shared = torch.from_numpy(array)
    before = shared * 2
    array[0] += 1
    return before, shared * 3, x + shared


@pytest.mark.parametrize(
    "program", [items, whole, views, methods, around_a_branch, in_memory_of_a_tensor]
)
def test_arrays_that_the_program_holds(program):
    def make():
        array = numpy.zeros(3)
        return lambda x: program(x, array), by_number, lambda: array, array

    def change(number, world):
        if number == 6:
            world[3][:] = [7.0, 8.0, 9.0]

    fast = beside_eager(make, 10, change)
    assert is_whole(fast) and captures(fast) <= 3


@pytest.mark.parametrize("program", [items, whole, views, methods])
def test_compiled_calls_leave_what_eager_execution_leaves(program):
    found, expected = numpy.zeros(3), numpy.zeros(3)
    fast = weft.compile(lambda x: program(x, found))
    for number in range(7):
        result = fast(*by_number(number))
        assert torch.allclose(result, program(*by_number(number), expected))
        assert numpy.allclose(found, expected)
    assert not weft.stats(fast)["breaks"] and weft.stats(fast)["hits"] > 2


def test_arguments_that_are_one_array():
    def make():
        def step(x, first, second):
            first[0] = second[1] + 1
            second[1] = first[0] * 2
            return x + first[0] + second[1]

        def arguments(number):
            first = numpy.arange(3.0) + number
            return values(), first, first if number % 3 == 2 else numpy.arange(3.0)

        return step, arguments, tuple

    beside_eager(make, 9)


def test_a_tensor_from_outside_that_shares_memory():
    def make():
        array = numpy.zeros(3, numpy.float32)
        tensor = torch.from_numpy(array)

        def step(x):
            before = tensor * 2
            array[0] += 1
            array[1:] = array[:2] + 1
            return x + before + tensor

        return step, by_number, lambda: (array, tensor)

    fast = beside_eager(make, 8)
    assert is_whole(fast)


def test_a_table_of_counts():
    def make():
        counts = numpy.zeros((3, 3), numpy.int64)

        def step(found, wanted):
            for each, other in zip(wanted.tolist(), found.tolist()):
                counts[each, other] += 1
            return counts.sum() - counts[0, 0]

        def arguments(number):
            return torch.tensor([0, 1, number // 2 % 2]), torch.tensor([0, 2, 1])

        return step, arguments, lambda: counts

    fast = beside_eager(make, 12)
    assert is_whole(fast) and weft.stats(fast)["hits"] > 5


def test_a_ring_of_rows():
    def make():
        state, rows = {"next": 0}, numpy.zeros((4, 3))

        def step(x):
            rows[state["next"] % 4] = x.numpy()
            state["next"] += 1
            return x + torch.from_numpy(rows.mean(0))

        return step, by_number, lambda: (state, rows)

    fast = beside_eager(make, 12)
    assert is_whole(fast) and captures(fast) <= 3


def test_the_memory_of_a_tensor_s_own_array_is_not_written():
    def step(x):
        array = x.numpy()
        array[0] = 9
        return x * 2

    fast = compiled(step)
    for _ in range(6):
        x = values()
        assert torch.equal(fast(x), torch.tensor([18.0, 4.0, 6.0])) and x[0] == 9
