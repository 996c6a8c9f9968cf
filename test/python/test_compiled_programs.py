# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families of ops, compiled: sizes around the vectors' width, every dim, dtype and stride."""

import math

import pytest
import test_frontend_elementwise as elementwise
import test_frontend_numeric as numeric
import test_frontend_shape as shape
import torch
import torch.nn.functional as F
from compiled_cases import check

FLOATS = [torch.float32, torch.float64, torch.bfloat16]
SIZES = [1, 3, 7, 17, 63, 65, 100, 130]


def names(count: int, items: list) -> list:
    """Parts of at most `count` items, for one program each."""
    return [
        pytest.param(items[i : i + count], id=f"{i}-{i + count}")
        for i in range(0, len(items), count)
    ]


# The frontend's own cases, through the whole compiler.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("functions", names(11, elementwise.UNARY))
def test_unary(functions, dtype):
    special = torch.tensor(elementwise.SPECIAL, dtype=dtype)
    check(functions, special, pointwise=True)
    check(functions, torch.randn(10, 13, dtype=dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "x, y",
    [
        (torch.float32, torch.float32),
        (torch.float64, torch.float32),
        (torch.int64, torch.int64),
        (torch.int32, torch.float32),
        (torch.uint8, torch.int16),
    ],
)
def test_binary(x, y):
    lhs = torch.tensor([[7, 3, 9, 12], [8, 1, 0, 5]]).to(x)
    check(elementwise.BINARY, lhs, torch.tensor([2, 3, 4, 5]).to(y))


def test_promotion():
    zero_dim = torch.tensor(2.0, dtype=torch.float64)
    check(elementwise.PROMOTION, torch.randn(3, 4), torch.arange(5), zero_dim)


@pytest.mark.parametrize("functions", names(20, shape.SHAPE))
def test_shape(functions):
    check(functions, torch.randn(2, 3, 4))


def test_index():
    check(shape.INDEX, torch.randn(2, 3, 4), torch.tensor([[0, 1], [3, 2]]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("functions", names(13, numeric.REDUCE))
def test_reduce(functions, dtype):
    if dtype == torch.bfloat16:  # the order of roundings decides which elements differ
        functions = [f for f in functions if f not in (numeric.REDUCE[27],)]
    check(functions, torch.randn(2, 3, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_contract(dtype):
    tensors = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(4)
    check(numeric.CONTRACT, *(t.to(dtype) for t in tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss(dtype):
    check(numeric.LOSSES, torch.randn(4, 5, dtype=dtype), torch.tensor([0, 1, 4, 2]))


# Sizes.

ROWS = [
    lambda x: x * 2 + x.sigmoid(),
    lambda x: x.softmax(-1),
    lambda x: x.softmax(0),
    lambda x: x.log_softmax(1),
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: F.rms_norm(x, x.shape[-1:]),
    lambda x: F.normalize(x, dim=1),
    lambda x: x.sum(-1),
    lambda x: x.sum(0),
    lambda x: x.sum((0, 2)),
    lambda x: x.mean(1),
    lambda x: x.var(1, unbiased=False),
    lambda x: (x - x.mean(-1, keepdim=True)).abs().sum(-1) + x[..., 0],
    lambda x: x.transpose(0, 1) + 1,
    lambda x: x.transpose(1, 2).contiguous() * x.transpose(1, 2),
    lambda x: x.exp().sum(1, keepdim=True) + x,
]
EXTREMES = [
    lambda x: x.amax(-1),
    lambda x: x.amin(0),
    lambda x: x.max(1),
    lambda x: x.min(-1, keepdim=True),
    lambda x: x.argmax(-1),
    lambda x: x.argmin(0),
    lambda x: x.argmax(1),
    lambda x: (x - x.amax(-1, keepdim=True)).exp(),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", SIZES)
def test_rows(size):
    x = torch.randn(3, 5, size)
    check(ROWS + EXTREMES, x)
    check(ROWS + EXTREMES, x.transpose(1, 2).contiguous().transpose(1, 2))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [1, 7, 65, 130])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rows_of_other_floats(size, dtype):
    check(ROWS + EXTREMES, torch.randn(2, size, 9, dtype=dtype))


def test_rows_without_elements():
    empty = torch.zeros(0, 4)
    check([lambda x: x + 1, lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.softmax(1)], empty)
    check([lambda x: x.sum(0), lambda x: x.prod(0), lambda x: x.any(0), lambda x: x.all()], empty)
    check([lambda x: torch.cat([x, x[:0]]), lambda x: x @ x.new_ones(4, 3), lambda x: x.t()], empty)
    check(lambda x: x @ x.new_ones(0, 3), torch.zeros(2, 0))
    check(ROWS[:1] + ROWS[7:9] + ROWS[13:15], torch.zeros(3, 5, 0))


def test_scalars():
    functions = [
        lambda x: x * 2,
        lambda x: x.exp().sum(),
        lambda x: x.softmax(0),
        lambda x: x.amax(),
        lambda x: x.expand(3, 4) + 1,
        lambda x: x.reshape(1, 1) @ x.reshape(1, 1),
        lambda x: torch.stack([x, x]),
        lambda x: x > 0,
    ]
    check(functions, torch.randn(()))
    check(functions, torch.randn((), dtype=torch.float64))


INTEGERS = [
    lambda x: x + 1,
    lambda x: x * x,
    lambda x: x.sum(),
    lambda x: x.sum(1),
    lambda x: x.prod(1),
    lambda x: x.amax(1),
    lambda x: x.amin(0),
    lambda x: x.argmax(1),
    lambda x: (x > 2).any(1),
    lambda x: (x > 2).all(0),
    lambda x: x.bool(),
    lambda x: x.float() / 3,
    lambda x: x.to(torch.int32) - x.to(torch.int64),
    lambda x: x.to(torch.uint8),
    lambda x: torch.where(x > 2, x, -x.long()),
    lambda x: x.t().contiguous(),
    lambda x: torch.cat([x, x.flip(0)], 1),
    lambda x: x == x.t()[:1].t(),
    lambda x: x // 3,
    lambda x: x % 3,
    lambda x: x.clamp(1, 3),
    lambda x: x.double().mean(0),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
)
def test_integers(dtype):
    functions = INTEGERS
    if dtype == torch.bool:
        functions = [INTEGERS[i] for i in (2, 3, 8, 9, 10, 11, 12, 13, 15, 16, 17, 21)]
        functions = [f for f in functions if f is not INTEGERS[8] and f is not INTEGERS[9]]
        functions += [
            lambda x: x.any(1),
            lambda x: x.all(),
            lambda x: x & ~x[:1],
            lambda x: x ^ x.flip(1),
            lambda x: torch.where(x, 1.5, -1.0),
            lambda x: x.float().masked_fill(x, -math.inf),
        ]
    elif dtype.is_signed:
        functions = [*INTEGERS, lambda x: -x, lambda x: x.abs() - 7, lambda x: x.sign()]
    check(functions, torch.randint(0, 6, (5, 67)).to(dtype))


STRIDED = [
    lambda x: x + 1,
    lambda x: x.softmax(-1),
    lambda x: x.sum(0),
    lambda x: x.reshape(-1) * 2,
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: x.transpose(0, -1) @ x.transpose(0, -1).mT,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(0, 2),
        lambda x: x.permute(1, 2, 0),
        lambda x: x[:, 1:],
        lambda x: x[:, :, ::2],
        lambda x: x[:, :1].expand(-1, 7, -1),
        lambda x: x.unfold(2, 3, 1)[..., 0],
        lambda x: x[..., :3],
    ],
)
def test_inputs_that_are_views(view):
    check(STRIDED, view(torch.randn(4, 7, 18)))


def test_vmap():
    def masked(x, weight):
        ahead = torch.vmap(lambda row: torch.vmap(lambda element: element > row[0])(row))(x)
        return x.masked_fill(ahead, 0.0) + torch.vmap(lambda column: column @ weight, in_dims=1)(x)

    check(masked, torch.randn(5, 5), torch.randn(5, 5))
