# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls reach the right program, and what comes back has the structure of eager's."""

import collections
import dataclasses

import pytest
import torch
from counting import programs
from threads import in_threads

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected)
    assert actual.stride() == expected.stride()


def test_function_and_module():
    linear = torch.nn.Linear(3, 4)
    x = torch.randn(5, 3)
    assert_same(weft.compile(linear)(x), linear(x))
    assert_same(weft.compile(lambda v: v * 2 + 1)(x), x * 2 + 1)


def test_one_program_for_each_shape_dtype_and_stride():
    compiled = weft.compile(lambda x: x + x)
    for x in (torch.ones(2, 3), torch.ones(4), torch.ones(2, 3, dtype=torch.int64)):
        assert_same(compiled(x), x + x)
        assert_same(compiled(x + 1), x + 1 + x + 1)
    assert programs(compiled) == 3
    transposed = torch.arange(6.0).view(3, 2).t()
    assert_same(compiled(transposed), transposed + transposed)
    assert programs(compiled) == 4


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(24.0).view(4, 6)[:, ::2],
        torch.arange(24.0)[3:11],
        torch.arange(3.0).expand(4, 3),
        torch.empty(0, 3),
        torch.tensor(2.5),
        torch.frombuffer(bytearray(range(33)), dtype=torch.uint8)[1:].view(4, 8),
        torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ],
    ids=["strided", "offset", "expanded", "empty", "scalar", "unaligned", "permuted", "last"],
)
def test_layouts_of_inputs(x):
    def function(v):
        return v * 3, v.sum()

    actual, expected = weft.compile(function)(x), function(x)
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e)


def test_non_tensor_arguments_select_a_program():
    compiled = weft.compile(lambda x, n, flag=True: x * n if flag else x - n)
    x = torch.ones(3)
    assert_same(compiled(x, 2), x * 2)
    assert_same(compiled(x, 3), x * 3)
    assert_same(compiled(x, 3.0), x * 3.0)
    assert_same(compiled(x, 3, flag=False), x - 3)
    assert_same(compiled(x, True), x * True)
    assert programs(compiled) == 5


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Box:
    content: torch.Tensor
    label: str = "box"


def test_pytrees_in():
    def function(pair, table, *rest, scale):
        return pair.left + pair.right + table["a"][0] * scale + sum(rest)

    compiled = weft.compile(function)
    x = torch.ones(2)
    arguments = (Pair(x, 2 * x), {"a": [3 * x]}, x, x)
    assert_same(compiled(*arguments, scale=2), function(*arguments, scale=2))
    assert_same(compiled(*arguments, scale=2), function(*arguments, scale=2))
    assert programs(compiled) == 1


def test_dataclass_in_and_out():
    compiled = weft.compile(lambda box: Box(box.content + 1, box.label))
    for _ in range(2):
        result = compiled(Box(torch.ones(2), "b"))
        assert type(result) is Box and result.label == "b"
        assert_same(result.content, torch.full((2,), 2.0))


def test_pytrees_out():
    def function(x):
        y = x + 1
        return {"y": y, "again": [y, (y * 2, None, 7, "s")], "pair": Pair(y - 1, x)}

    compiled = weft.compile(function)
    x = torch.ones(2)
    for _ in range(2):
        result = compiled(x)
        assert list(result) == ["y", "again", "pair"]
        assert result["y"] is result["again"][0]
        assert result["again"][1][1:] == (None, 7, "s")
        assert type(result["pair"]) is Pair and result["pair"].right is x
        assert_same(result["pair"].left, torch.ones(2))


def test_model_output():
    modeling = pytest.importorskip("transformers.modeling_outputs")

    def function(x):
        return modeling.BaseModelOutput(last_hidden_state=x * 2)

    result = weft.compile(function)(torch.ones(2))
    assert type(result) is modeling.BaseModelOutput
    assert_same(result.last_hidden_state, torch.full((2,), 2.0))


def test_identity_of_arguments_counts():
    compiled = weft.compile(lambda x, y: x + 1 if x is y else x + 2)
    x, y = torch.ones(2), torch.ones(2)
    assert_same(compiled(x, y), x + 2)
    assert_same(compiled(x, x), x + 1)
    assert_same(compiled(x, y), x + 2)


def test_method_and_decorator():
    class Model:
        @weft.compile
        def double(self, x):
            return x * 2

    # `self` is no pytree: PyTorch would run it, so a static function stands in.
    assert Model.double is Model.__dict__["double"]
    assert callable(Model().double)

    @weft.compile(threads=1)
    def triple(x):
        return x * 3

    assert_same(triple(torch.ones(2)), torch.full((2,), 3.0))
    assert triple.__name__ == "triple"


def test_attributes_are_those_of_the_module():
    linear = torch.nn.Linear(3, 4)
    compiled = weft.compile(linear)
    assert compiled.weight is linear.weight
    assert compiled.in_features == 3


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_results_are_tensors_like_any_other(mode):
    compiled = weft.compile(lambda x: (x + 1, x.t() * 2, x.sum() > 0))
    x = torch.randn(3, 5)
    with mode():
        for result, expected in zip(compiled(x), (x + 1, x.t() * 2, x.sum() > 0), strict=True):
            assert_same(result, expected)
            assert type(result) is torch.Tensor
            assert result.stride() == expected.stride()
            assert result.is_inference() == expected.is_inference()
            assert not result.requires_grad
            assert result.untyped_storage().nbytes() == expected.untyped_storage().nbytes()


def test_threads():
    linear = torch.nn.Linear(64, 64)
    compiled = weft.compile(linear)
    inputs = [torch.randn(16, 64) for _ in range(4)]
    expected = [linear(x) for x in inputs]

    def work(number):
        for _ in range(50):
            torch.testing.assert_close(compiled(inputs[number]), expected[number])

    in_threads(4, work)
    assert programs(compiled) == 1
