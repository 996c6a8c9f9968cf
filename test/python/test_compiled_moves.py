# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views, joins, indexing and scans, compiled, at sizes that do not fit the vectors."""

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check

MOVES = [
    lambda x, i: torch.cat([x, x[:, :5], x * 2], 1),
    lambda x, i: torch.cat([x.sum(1, keepdim=True), x], 1),
    lambda x, i: torch.stack([x, x + 1, x], 2),
    lambda x, i: x[1:, 2:-3:2] + 1,
    lambda x, i: x.flip(0, 1) * 2,
    lambda x, i: x.roll(3, 1),
    lambda x, i: F.pad(x, (3, 70)).softmax(1),
    lambda x, i: F.pad(x, (-2, 4, 1, -1)),
    lambda x, i: x[i].sum(-1),
    lambda x, i: x[:, i % 7],
    lambda x, i: F.embedding(i, x) + x[0],
    lambda x, i: x.gather(0, i[:, None].expand(-1, x.shape[1])),
    lambda x, i: x.index_select(0, i).t(),
    lambda x, i: [part * 2 for part in x.split(4, 1)],
    lambda x, i: x.chunk(3, 1),
    lambda x, i: x.tril(2) + x.triu(-1),
    lambda x, i: x.repeat(2, 3),
    lambda x, i: x.t().reshape(-1)[: x.shape[1]] + x[0],
    lambda x, i: x.t().reshape(x.shape) + x,
    lambda x, i: torch.where(x > 0, x, x.t()[:, :1].t()),
    lambda x, i: x.masked_fill(torch.arange(x.shape[1]) > 5, 0.0),
    lambda x, i: (x.sum(1), x.sum(0), x * 2, x.amax()),
    lambda x, i: F.one_hot(i, 9).sum(0),
]

JOINS = [
    lambda x, i: (half := x / 2, torch.cat([half, x, half.softmax(1), x[i]])),
    lambda x, i: torch.cat([x.t().reshape(x.shape), x.sum(1, keepdim=True), x.cumsum(1)], 1),
    lambda x, i: torch.stack([x[i] * 2, F.embedding(i, x), x.flip(1)[:5]], 1),
    lambda x, i: torch.stack([x, -x, x * x], -1),
    lambda x, i: torch.cat([x, x], 1) + 1,
    lambda x, i: torch.cat([x, x[:, :1], x[:, 1:3] * 2, x], 1).relu() * 3,
    lambda x, i: x * 2 + torch.cat([-x[:, 1:], x[:, :1]], 1),
    lambda x, i: F.pad(torch.cat([x[:, 1:], x], 1), (1, 2)).flip(1) + 1,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_joins(dtype):
    for size in (3, 17, 130, 2500):
        check(JOINS, torch.randn(8, size, dtype=dtype), torch.tensor([0, 7, 3, 3, 1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_joined_column_is_read_again(dtype):
    def with_sums(x):
        return torch.cat([x, x.sum(-1, keepdim=True)], -1).softmax(-1)

    check(lambda x: with_sums(with_sums(x)), torch.randn(4, 5, dtype=dtype))


@pytest.mark.parametrize("rows", [1, 3])
def test_an_operand_of_a_join_is_also_read_behind_padding(rows):
    """Of one row nothing but the padding is left. Blocks and the ones before them."""

    def with_the_row_before(x):
        return torch.cat([F.pad(x, (0, 0, 1, 0))[:, :-1], x], 2)

    check(with_the_row_before, torch.randn(2, rows, 4))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [7, 17, 65, 130])
def test_moves(size):
    check(MOVES, torch.randn(8, size), torch.tensor([0, 7, 3, 3, 1]))


def test_moves_of_other_types():
    i = torch.tensor([0, 7, 3, 3, 1])
    for dtype in (torch.float64, torch.bfloat16):
        check(MOVES, torch.randn(8, 19, dtype=dtype), i)
    integers = [MOVES[n] for n in (0, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 19, 20, 22)]
    for dtype in (torch.int64, torch.uint8):
        check(integers, torch.randint(0, 9, (8, 19)).to(dtype), i)


SCANS = [
    lambda x: x.cumsum(0),
    lambda x: x.cumsum(1),
    lambda x: x.cumsum(2) * 2,
    lambda x: x.cumprod(1),
    lambda x: (x > 0).cumsum(2),
    lambda x: x.softmax(-1).cumsum(-1),
    lambda x: x.cumsum(0).reshape(-1),
    lambda x: (x.cumsum(1) * 2).reshape(-1, x.shape[0]),
    lambda x: x.cumsum(2).reshape(x.shape[0], -1)[:, 1:],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scans(dtype):
    check(SCANS, torch.randn(2, 5, 67, dtype=dtype))
    check(SCANS[:3], torch.randint(0, 5, (3, 1, 4)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(33, 77), (16, 16), (5, 100), (3, 40, 50), (1000,)])
def test_scans_of_many_lines(shape):
    x = torch.randn(shape)
    x.view(-1)[x.numel() // 3] = torch.nan
    for dim in range(x.dim()):
        scans = [
            lambda x, dim=dim: tuple(x.cummax(dim)),
            lambda x, dim=dim: (x.cumsum(dim) * 2, (x * 2).cumprod(dim)),
            lambda x, dim=dim: x.cumsum(dim).cumsum(0),
            lambda x, dim=dim: x.transpose(0, -1).cumsum(dim),
            lambda x, dim=dim: x.cumsum(dim).transpose(0, -1).contiguous(),
            lambda x, dim=dim: x.cumsum(dim) + x.cumsum(dim).flip(0),
            lambda x, dim=dim: x.nan_to_num().mul(9).long().cumsum(dim),
        ]
        check(scans, x)


def test_in_place():
    def program(x, y):
        x.mul_(2).add_(y)
        y[:, 1:3] = x[:, 1:3]
        return x.sum(1), y

    check(program, torch.randn(4, 19), torch.randn(4, 19))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), (1, 1)),
        ((1, 1), ()),
        ((0, 3), (3, 0)),
        ((2, 3, 4), (4, 6)),
        ((6, 4), (4, 6)),
        ((1, 300, 4), (25, 12, 4)),
        ((4, 3, 5), (2, 6, 5)),
        ((2, 3, 1, 4), (3, 2, 1, 4)),
        ((1, 4, 1, 3), (2, 1, 6, 1)),
    ],
)
def test_reshapes(before, after):
    x = torch.randn(before)
    functions = [lambda x: (x * 2).reshape(after) + 1]
    if x.dim() > 1:
        functions.append(lambda x: (x * 2).transpose(0, -1).reshape(after) + 1)
    check(functions, x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pad", [(1, 1), (0, 3), (2, 0), (1, 2, 0, 3), (0, 0, 1, 1)])
def test_padded_rows(pad):
    for shape in ((2, 3, 28, 28), (3, 130), (4, 1), (2, 3, 64, 16)):
        x = torch.randn(shape)
        pads = [
            lambda x: F.pad(x, pad, value=2.5),
            lambda x: (F.pad(x.exp(), pad, value=-1), x + 1),
            lambda x: F.pad(x.softmax(-1), pad),
            lambda x: F.pad(x.cumsum(-1), pad),
            lambda x: F.pad(x.transpose(0, -1), pad) * 2,
        ]
        check(pads, x)
        check(lambda x: F.pad(x > 0, pad, value=True), x)


@pytest.mark.parametrize("shape", [(64, 64), (33, 17), (9, 100)])
def test_tensors_beside_transposes(shape):
    def updated(x, y, z):
        x = x.clone()
        x += y.T
        return x * 2

    beside = [
        lambda x, y, z: (x * 2 + y.T) * z - y.T.exp(),
        lambda x, y, z: torch.where(y.T > 0, x, z),
        lambda x, y, z: (x + y.T).sum(0),
        lambda x, y, z: F.pad(x, (1, 1, 1, 1)) + F.pad(y, (1, 1, 1, 1)).T,
        lambda x, y, z: torch.cat([x, y.T], 0) + torch.cat([y.T, x], 0),
        lambda x, y, z: x[:, :8] + y.T[:, :8] + y.T[:, -8:],
        updated,
    ]
    x, y, z = torch.randn(shape), torch.randn(shape[::-1]), torch.randn(shape)
    check(beside, x, y, z)
    check(beside[:2], *(each.to(torch.bfloat16) for each in (x, y, z)))
