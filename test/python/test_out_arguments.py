# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`out=`: the tensor given is written and given back; what PyTorch would resize or refuse, PyTorch
runs."""

import pytest
import torch
from counting import programs
from torch.utils import _pytree as pytree

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.mark.parametrize(
    ("function", "outs"),
    [
        (lambda x, out: torch.erf(x, out=out), [torch.float32]),
        (lambda x, out: torch.add(x, 1, out=out), [torch.float32]),
        (lambda x, *out: torch.sort(x, dim=0, out=out), [torch.float32, torch.int64]),
        (lambda x, *out: torch.max(x, 1, out=out), [torch.float32, torch.int64]),
    ],
)
def test_given_back(function, outs):
    x = torch.randn(3, 5)
    shape = pytree.tree_leaves(function(x, *_zeros(outs, 0)))[0].shape
    compiled = weft.compile(function)
    for _ in range(2):
        mine, theirs = _zeros(outs, shape), _zeros(outs, shape)
        found, expected = compiled(x, *mine), function(x, *theirs)
        assert type(found) is type(expected)
        for each, out in zip(pytree.tree_leaves(found), mine, strict=True):
            assert each is out
        for each, out in zip(mine, theirs, strict=True):
            torch.testing.assert_close(each, out)
    assert programs(compiled) == 1


def _zeros(dtypes, shape):
    return [torch.zeros(shape, dtype=dtype) for dtype in dtypes]


@pytest.mark.parametrize(
    ("function", "out", "reason"),
    [
        (
            lambda x, out: torch.exp(x, out=out),
            lambda: torch.empty(0),
            "another number of dimensions in place",
        ),
        # Torch's functional program does not write it.
        (
            lambda x, out: torch.linalg.matrix_rank(x, out=out),
            lambda: torch.empty((), dtype=torch.int64),
            "no rule for the out=",
        ),
        # PyTorch's own kernel takes it for contiguous.
        (
            lambda x, out: torch.narrow_copy(x, 0, 0, 2, out=out),
            lambda: torch.zeros(2, 10)[:, ::2],
            "not contiguous",
        ),
        # PyTorch makes it a matrix on the way, which has no room for gaps.
        (
            lambda x, out: torch.nn.functional.linear(x[0], x, x[:, 0], out=out),
            lambda: torch.empty(6)[::2],
            "no rule for the out=",
        ),
        (lambda x, out: torch.normal(x, 1.0, out=out), lambda: torch.empty(3, 5), "random numbers"),
    ],
)
def test_by_pytorch(function, out, reason):
    x = torch.randn(3, 5)
    compiled = weft.compile(function, capture="export")
    for _ in range(2):
        mine, theirs = out(), out()
        torch.manual_seed(1)
        found = compiled(x, mine)
        torch.manual_seed(1)
        torch.testing.assert_close(found, function(x, theirs))
        assert found is mine and mine.stride() == theirs.stride()
    (why,) = weft.stats(compiled)["breaks"]
    assert reason in why


@pytest.mark.parametrize(
    ("function", "shape", "reason"),
    [
        (lambda x, *out: torch.unbind_copy(x, out=out), (5,), "may give its out= another shape"),
        (lambda x, *out: torch.split_copy(x, 1, out=out), (1, 5), "no rule for the out="),
    ],
)
def test_lists_that_no_call_gives_back(function, shape, reason):
    x, types = torch.randn(2, 5), [torch.float32] * 2
    compiled = weft.compile(function, capture="export")
    for _ in range(2):
        mine, theirs = _zeros(types, shape), _zeros(types, shape)
        assert compiled(x, *mine) is None and function(x, *theirs) is None
        torch.testing.assert_close(mine, theirs)
    (why,) = weft.stats(compiled)["breaks"]
    assert reason in why


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.aminmax(x, dim=0, out=(torch.empty(5), torch.empty(5).double())),
        lambda x: torch.cat([torch.empty(0), x], out=x),
    ],
)
def test_refused(function):
    compiled = weft.compile(function)
    for _ in range(2):
        with pytest.raises(RuntimeError) as expected:
            function(torch.randn(3, 5))
        with pytest.raises(RuntimeError) as found:
            compiled(torch.randn(3, 5))
        assert str(found.value) == str(expected.value)


def test_running_statistics_that_the_schema_does_not_tell_of():
    def function(x, mean, variance):
        return torch.native_batch_norm(x, None, None, mean, variance, True, 0.5, 1e-5)[0]

    x = torch.randn(6, 4)
    compiled = weft.compile(function)
    for _ in range(2):
        mine, theirs = ([torch.ones(4), torch.ones(4)] for _ in range(2))
        torch.testing.assert_close(compiled(x, *mine), function(x, *theirs))
        torch.testing.assert_close(mine, theirs)
    assert programs(compiled) == 1
