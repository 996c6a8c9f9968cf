# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases that stand for all in `make test`."""

from types import SimpleNamespace

import pytest
from chosen_cases import MOST, chosen

NAMES = ["a", "b", "c"]
DTYPES = ["f32", "f64"]
SHAPES = [(1, 2), (2, 1)]  # given together, as are two sizes of a matrix


def item(name, params=None, *marks):
    """What pytest collects, as far as it is looked at."""
    return SimpleNamespace(
        name=name,
        originalname=name,
        path="file",
        callspec=params and SimpleNamespace(params=params),
        iter_markers=lambda wanted: [mark.mark for mark in marks if mark.name == wanted],
        get_closest_marker=lambda wanted: next(
            (mark.mark for mark in marks if mark.name == wanted), None
        ),
    )


def product(*marks):
    parametrize = [
        pytest.mark.parametrize("name", NAMES),
        pytest.mark.parametrize(("rows", "columns"), SHAPES),
    ]
    return [
        item(
            "test_product",
            {"name": name, "rows": rows, "columns": columns, "dtype": dtype},
            *parametrize,
            *marks,
        )
        for name in NAMES
        for rows, columns in SHAPES
        for dtype in DTYPES  # a fixture's
    ]


def test_each_value_occurs():
    left = chosen(product())
    assert len(left) == 3
    params = [each.callspec.params for each in left]
    assert {each["name"] for each in params} == set(NAMES)
    assert {(each["rows"], each["columns"]) for each in params} == set(SHAPES)
    assert {each["dtype"] for each in params} == set(DTYPES)


def test_one_in_n_of_those():
    assert len(chosen(product(pytest.mark.sampled(2)))) == 2


def test_tests_without_parameters():
    short, long = item("test_short"), item("test_long", None, pytest.mark.at_length)
    assert chosen([short, long]) == [short]


def listed(count, *marks):
    names = [str(number) for number in range(count)]
    mark = pytest.mark.parametrize("name", names)
    return [item("test_list", {"name": name}, mark, *marks) for name in names]


def test_lists():
    assert chosen(short := listed(MOST)) == short
    assert chosen(long := listed(2 * MOST + 1)) == long[::3]
    assert chosen(whole := listed(2 * MOST, pytest.mark.sampled(1))) == whole
