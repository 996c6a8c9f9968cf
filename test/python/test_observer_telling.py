# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What observed calls print of objects, and warnings that they keep to themselves."""

import warnings

import pytest
import torch
from observing import compiled, is_whole, whole
from torch import nn

import weft
from weft.errors import WeftWarning

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Loss:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"


def test_texts_of_objects_are_those_of_the_moment(capsys):
    loss, net, kept = Loss("first"), nn.Linear(2, 1), {"rows": [1]}

    def step(x):
        mean = x.mean().item()
        print("mean", [mean, x[:1]], {"mean": (mean,)}, loss, Loss(mean), kept, sep="|")
        kept["rows"] = [2]
        print(net, kept)
        return x + 1

    fast = compiled(step)
    for number in range(6):
        if number == 3:
            loss.name, net.in_features = "second", 5
        x, printed = torch.full((3,), float(number)), []
        for function in (fast, step):
            kept["rows"] = [number // 4]
            assert torch.equal(function(x), x + 1)
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1]
    assert whole(fast)


def test_an_object_whose_text_has_its_address_is_not_printed_by_a_program(capsys):
    fast = compiled(lambda x: print([object()]) or x * 2)
    for _ in range(3):
        fast(torch.ones(2))
    assert weft.stats(fast)["graphs"] == 0 and capsys.readouterr().out.count("0x") == 3


def quiet(x, told="quiet"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(told, stacklevel=1)
        y = x * 2 if x.sum() > 0 else x * 3
    warnings.warn("loud", stacklevel=1)
    return y


def told_by(function, x):
    """The default filter tells of a line once, until filters change."""
    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        inside = list(warnings.filters)
        values = [function(x) for _ in range(2)]
        assert warnings.filters == inside
    assert warnings.filters == filters
    heard = [str(each.message) for each in told if each.category is not WeftWarning]
    return [each.tolist() for each in values], heard


def test_filters_of_warnings_are_set_by_each_call():
    fast = compiled(quiet)
    for sign in (1, 1, -1, -1, 1):
        x = torch.ones(3) * sign
        found, expected = told_by(fast, x), told_by(quiet, x)
        assert found == expected and expected[1] == ["loud", "loud"]
    assert is_whole(fast) and weft.stats(fast)["hits"] >= 4


def some(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.warn("heard", stacklevel=1)
        return x * 2


def recorded(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.warn("heard", stacklevel=1)
        return x * len(told)


@pytest.mark.parametrize("program", [some, recorded])
def test_warnings_that_pass_what_the_call_sets_end_the_capture(program):
    fast = compiled(program)
    for _ in range(2):
        assert told_by(fast, torch.ones(2)) == told_by(program, torch.ones(2))
    assert weft.stats(fast)["graphs"] == 0


def test_filters_that_stay_set_end_the_capture():
    def step(x):
        warnings.simplefilter("always")
        return x * 2

    fast = compiled(step)
    with warnings.catch_warnings():
        for _ in range(2):
            assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert weft.stats(fast)["graphs"] == 0
