# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs ask about tensors and sizes as Python objects: their class, whether two are one.

The first input takes both ways to the same value, so that comparing results tells nothing."""

import copy
import functools
import json
import math
import numbers

import pytest
import torch
from counting import programs
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

SHARED = torch.ones(3)
SCALES = {torch.Tensor: torch.relu, nn.Parameter: torch.neg}


class Layer(nn.Module):
    def __init__(self, questions):
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.ones(3)), torch.ones(3)
        self.register_buffer("table", torch.ones(3))
        self.pair = [torch.ones(3), torch.ones(3)]
        self.questions = questions

    def forward(self, x):
        return [torch.relu(x) if asks(self, x) else x * 1 for asks in self.questions]


CLASSES = (
    lambda layer, x: type(x) is torch.Tensor,
    lambda layer, x: x.__class__ is torch.Tensor,
    lambda layer, x: f"{type(x).__module__}.{x.__class__.__qualname__}" == "torch.Tensor",
    lambda layer, x: type(x + 1) in (torch.Tensor, nn.Parameter),
    lambda layer, x: type(layer.weight) is nn.Parameter,
    lambda layer, x: type(layer.table) is torch.Tensor,
    lambda layer, x: {type(each) for each in layer.parameters()} == {nn.Parameter},
    lambda layer, x: SCALES[type(x)] is torch.relu,
    lambda layer, x: type(x).__mro__[0] is torch.Tensor,
    lambda layer, x: type(torch.zeros(2).sum()) is type(x),
    lambda layer, x: type(nn.Parameter(x)) is nn.Parameter,
    lambda layer, x: not torch.overrides.has_torch_function((x, layer.weight)),
    lambda layer, x: not torch.overrides.has_torch_function_unary(x),
    lambda layer, x: type(type(x)) is type(torch.Tensor) and type(int) is type,
    lambda layer, x: getattr(x, "__class__") is torch.Tensor,  # noqa: B009
    lambda layer, x: next(map(type, [x])) is functools.partial(type, x)() is torch.Tensor,
    lambda layer, x: sorted([x], key=type)[0].shape == x.shape and isinstance(type, type),
)


def test_classes_are_those_of_an_ordinary_call(compiled_only):
    layer = Layer(CLASSES)
    compiled = weft.compile(layer)
    compiled(torch.ones(3))
    for expected, own in zip(layer(-torch.ones(3)), compiled(-torch.ones(3)), strict=True):
        assert torch.equal(expected, own)


ASKED_UNHEARD = (
    lambda layer, x: type(*[x]) is torch.Tensor,
    lambda layer, x: not vars(x),
    lambda layer, x: not x.__dict__,
)


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("question", ASKED_UNHEARD)
def test_what_a_fake_tensor_would_answer_is_asked_again(question):
    compiled = weft.compile(lambda x: torch.relu(x) if question(None, x) else x * 1)
    for x in (torch.ones(3), torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), torch.relu(x))


def array_of(x):
    try:
        return x.numpy().sum() < 0
    except RuntimeError:
        return False


def looked_at(x):
    try:
        return bool(x.sum() < 0)
    except Exception:  # what tracing raises here is no class of Python's
        return False


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("asks", [array_of, looked_at])
def test_errors_of_tracing_that_the_call_handles(asks):
    compiled = weft.compile(lambda x: torch.relu(x) if asks(x) else x * 1)
    for x in (torch.ones(3), torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), torch.relu(x))


GREATEST = (
    lambda x: max(x[0], x[1]),
    lambda x: max(x[0], 0.5),
    lambda x: torch.ones(2, dtype=torch.int64) * math.pow(2, 2),
)


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("function", GREATEST)
def test_functions_of_python_that_export_replaces(function):
    compiled = weft.compile(function)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([0.0, torch.nan]), torch.tensor([0.0, 1.0])):
        expected, own = function(x), compiled(x)
        assert type(own) is type(expected) and str(own) == str(expected)


def text_of(n):
    try:
        return json.dumps(n) == "7"
    except TypeError:
        return False


def test_errors_of_sizes_that_the_call_handles(automatic_sizes):
    compiled = weft.compile(lambda x: torch.relu(x) if text_of(x.shape[0]) else x * 1)
    for size in (4, 5, 6):
        compiled(torch.ones(size))
    assert torch.equal(compiled(-torch.ones(7)), torch.zeros(7))


IDENTITIES = {
    "an argument": (lambda layer, x: x is SHARED, lambda layer: SHARED),
    "a buffer": (lambda layer, x: x is layer.table, lambda layer: layer.table),
    "an attribute": (lambda layer, x: layer.other is x, lambda layer: layer.other),
    "an item": (lambda layer, x: any(x is own for own in layer.pair), lambda layer: layer.pair[0]),
    "an address": (lambda layer, x: id(x) == id(SHARED), lambda layer: SHARED),
    "a key": (lambda layer, x: {SHARED: True}.get(x), lambda layer: SHARED),
    "memory": (lambda layer, x: x.is_set_to(SHARED), lambda layer: SHARED),
}


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("question", IDENTITIES)
def test_identity_is_asked_again(question):
    asks, find = IDENTITIES[question]
    layer = Layer((asks,))
    compiled, same = weft.compile(layer), find(layer)
    for first in (same, torch.ones(3)):
        compiled(first), compiled(first)
    other = -torch.ones(3)
    with torch.no_grad():
        same.neg_()
    try:
        assert torch.equal(compiled(other)[0], other)
        assert torch.equal(compiled(same)[0], torch.zeros(3))
    finally:
        same.neg_()


def test_two_attributes_that_become_one():
    layer = Layer((lambda layer, x: layer.other is layer.table,))
    compiled, other = weft.compile(layer), -torch.ones(3)
    compiled(torch.ones(3)), compiled(torch.ones(3))
    layer.other = layer.table
    assert torch.equal(compiled(other)[0], torch.zeros(3))
    layer.table = copy.copy(layer.table)
    assert torch.equal(compiled(other)[0], other)


SIZES = (
    lambda x: type(x.shape[0]) is int and x.shape[0].__class__ is int,
    lambda x: isinstance(x.shape[0], int) and isinstance(x.numel(), numbers.Integral),
    lambda x: not isinstance(x.shape[0], torch.SymInt),
    lambda x: type(x.shape[0] / 2) is float and isinstance(x.shape[0] * 2, int),
    lambda x: isinstance(x.shape[0] > 3, bool),
    lambda x: len(x) == x.shape[0],
)


def test_sizes_are_numbers_in_programs_for_ranges(automatic_sizes, compiled_only):
    def function(x):
        return [torch.relu(x) if asks(x) else x * 1 for asks in SIZES]

    compiled = weft.compile(function)
    for size in (4, 7, 9):
        compiled(torch.ones(size))
    for own in compiled(-torch.ones(11)):
        assert torch.equal(own, torch.zeros(11))
    assert programs(compiled) == 2


TEXTS = (
    lambda n: f"{n}" == "7",
    lambda n: f"{n:02d}" == "07",
    lambda n: str(n) == "7",
    lambda n: "{}".format(n) == "7",  # noqa: UP032
    lambda n: hasattr(n, "bit_count"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("question", TEXTS)
def test_sizes_that_become_text_are_known(automatic_sizes, question):
    compiled = weft.compile(lambda x: torch.relu(x) if question(x.shape[0]) else x * 1)
    for size in (4, 7, 9):
        compiled(torch.ones(size))
    for size in (7, 8):
        x = -torch.ones(size)
        assert torch.equal(compiled(x), torch.relu(x) if question(size) else x)
