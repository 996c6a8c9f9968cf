# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at tensors of indices: duplicates, negative and wrong indices, threads, effects."""

import copy

import frontend_cases
import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check

import weft

FLOATS = [torch.float32, torch.float64, torch.bfloat16]
DTYPES = [*FLOATS, torch.int64, torch.int32, torch.uint8]


def tensor(shape, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 9, shape).to(dtype)


SCATTER = [
    lambda x, i, s: x.scatter(1, i, s),
    lambda x, i, s: x.scatter(-1, i[:3, :2], s),
    lambda x, i, s: x.scatter(0, i.clamp(max=4), 3),
    lambda x, i, s: x.scatter_add(1, i, s),
    lambda x, i, s: x.scatter_add(0, i.clamp(max=4), s),
    lambda x, i, s: x.scatter_add(0, i[:, :1].clamp(max=4).expand(5, 6), s),
    lambda x, i, s: x.scatter_add(1, i[:0], s),
    lambda x, i, s: x[0, 0].scatter_add(0, i[0, 0].clamp(max=0), s[0, 0]),
]
REDUCE = [
    lambda x, i, s, kind=kind, own=own: x.scatter_reduce(1, i, s, kind, include_self=own)
    for kind in ("sum", "prod", "amax", "amin", "mean")
    for own in (True, False)
]
SLICES = [
    lambda x, i, s: x.index_add(1, i[0], s, alpha=2),
    lambda x, i, s: x.index_add(0, i[:, 0].clamp(max=4), x),
    lambda x, i, s: x.index_add(0, i[0, 0].clamp(max=4), x[:1]),
    lambda x, i, s: x.index_copy(0, i[:, 0].clamp(max=4), x * 2),
    lambda x, i, s: x.index_fill(1, i[0] - 7, 2),
    lambda x, i, s: x.index_fill(0, i[0, :0], x[0, 0]),
    lambda x, i, s: x.index_reduce(0, i[:, 0].clamp(max=4), x, "amax"),
    lambda x, i, s: x.index_reduce(0, i[:, 0].clamp(max=4), x, "mean", include_self=False),
    lambda x, i, s: x.put(i[0] * 5, s[0], accumulate=True),
]
PUT = [
    lambda x, i, s: torch.ops.aten.index_put(x, (None, i[0] - 7), s),
    lambda x, i, s: x.index_put((i[:, 0] - 7 + 2,), s[0, 0]),
    lambda x, i, s: x.index_put((i[:, 1].clamp(max=4), i[:, 2]), s[:, 0], accumulate=True),
    lambda x, i, s: x.index_put((i[:, :1].clamp(max=4), i[:, 2]), s[:, 0], accumulate=True),
    lambda x, i, s: x.index_put((i.clamp(max=4),), s[0, 0], accumulate=True),
    lambda x, i, s: x.index_put((i[:0, 0],), s[:0, 0:1]),
    lambda x, i, s: x.index_put((x > 0,), s[0, 0]),
    lambda x, i, s: x.index_put((x > 0,), s[0, :1], accumulate=True),
    lambda x, i, s: x.index_put((x[:, 0] > 0,), x[0]),
    lambda x, i, s: torch.ops.aten.index_put(x, (None, x[0] > 0), x[:, :1]),
    lambda x, i, s: x.masked_scatter(x > 0, torch.cat([s, s], 1)),
    lambda x, i, s: x.masked_scatter(x[0] > 0, torch.cat([s, s], 1)),
    lambda x, i, s: x.diagonal_scatter(s[0, :5], 1),
    lambda x, i, s: x[:, None].diagonal_scatter(s[:1, :5], -1, 2, 0),
    lambda x, i, s: x.slice_scatter(s[:, :3], 1, 1, 6, 2),
    lambda x, i, s: x.slice_scatter(s, 1, -6),
]


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(3)
    return tensor((5, 7), dtype), torch.randint(0, 7, (5, 6)), tensor((5, 6), dtype)


# What torch defines on bools.
BOOLEAN = [*SCATTER[:2], *SCATTER[3:], *REDUCE[:8], *PUT]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "function, dtype",
    [
        *((f, torch.float32) for f in [*SCATTER, *REDUCE, *SLICES, *PUT]),
        *((f, torch.int64) for f in [*SCATTER, *REDUCE, *SLICES, *PUT]),
        *((f, torch.uint8) for f in REDUCE),
        *((f, torch.bool) for f in BOOLEAN),
    ],
)
def test_graph(function, dtype):
    frontend_cases.check(function, *operands(dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("functions", [[*SCATTER, *REDUCE], [*SLICES, *PUT]], ids=["one", "many"])
def test_compiled(functions, dtype):
    check(functions, *operands(dtype))


def test_compiled_bools():
    check(BOOLEAN, *operands(torch.bool))


def test_nan_is_the_greatest_and_the_least():
    source = torch.tensor([1.0, float("nan"), 2.0, float("nan")])
    index = torch.tensor([0, 0, 1, 2])
    check(
        [
            lambda x, i, s: x.scatter_reduce(0, i, s, "amax"),
            lambda x, i, s: x.scatter_reduce(0, i, s, "amin", include_self=False),
        ],
        *(torch.arange(5.0), index, source),
    )


# Enough work for several threads: rows and columns of every kind of axis, with tails.

LARGE = [
    lambda x, i, s: x.index_add(0, i, s),
    lambda x, i, s: x.index_add(1, i[:130] % 130, x),
    lambda x, i, s: x.index_put((i, (i * 7) % 130), s[:, 0], accumulate=True),
    lambda x, i, s: x.scatter_add(0, i[:, None].expand(900, 130), s),
    lambda x, i, s: x.scatter_add(1, (i[:300, None] + i[:130]) % 130, s),
    lambda x, i, s: x.view(-1).index_add(0, i * 3, s[:, 5]),
    lambda x, i, s: x.view(300, 2, 65).index_add(0, i, s.view(900, 2, 65)),
    lambda x, i, s: x.view(2, 150, 130).index_add(1, i[:450] % 150, s.view(2, 450, 130)),
]


def large() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(5)
    return torch.randn(300, 130), torch.randint(0, 300, (900,)), torch.randn(900, 130)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", LARGE)
def test_threads_make_no_difference(function):
    x, index, source = large()
    compiled = check(function, x, index, source)
    before, results = weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            with torch.no_grad():
                results += compiled(x, index, source)
    finally:
        weft.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results[1:])


def test_sums_go_in_the_order_of_the_indices():
    x, index, source = large()
    expected = x.clone()
    for row, place in enumerate(index.tolist()):
        expected[place] += source[row]
    with torch.no_grad():
        assert torch.equal(weft.compile(LARGE[0])(x, index, source), expected)


WRONG = [
    lambda x, i: x.scatter(0, i[:, None], 1.0),
    lambda x, i: x.index_put((i,), x[0]),
    lambda x, i: x.index_add(0, i, x[:2]),
    lambda x, i: x.index_copy(0, i, x[:2]),
    lambda x, i: x.index_fill(0, i, 1.0),
    lambda x, i: x.put(i * 7, x[0, :2]),
]


@pytest.mark.parametrize("wrong", [-6, 5])
@pytest.mark.parametrize("function", WRONG)
def test_indices_out_of_range(function, wrong):
    x, index = torch.randn(5, 7), torch.tensor([1, 2])
    compiled = weft.compile(function)
    with torch.no_grad():
        assert torch.equal(compiled(x, index), function(x, index))
        index[1] = wrong
        with pytest.raises((IndexError, RuntimeError)) as expected:
            function(x, index)
        with pytest.raises(expected.type, match="out of (bounds|range)"):
            compiled(x, index)


def test_a_source_that_is_too_short():
    compiled = weft.compile(lambda x, mask, source: x.masked_scatter(mask, source))
    x, mask = torch.zeros(4), torch.tensor([True, False, True, False])
    with torch.no_grad():
        assert compiled(x, mask, torch.ones(2)).tolist() == [1, 0, 1, 0]
        mask[1] = True
        with pytest.raises(RuntimeError, match="Number of elements of source"):
            compiled(x, mask, torch.ones(2))


# In place


def into_input(x, index, source):
    x.index_add_(0, index, source)
    x[index[:2]] = 3.0
    return x.sum()


def into_view(x, index, source):
    x[1:].scatter_(1, index[None, :3], source[:1, :3])
    x[:, 2][index] = source[:, 0]
    x[x > 2] = 0
    return x[1:]


def into_result(x, index, source):
    y = x * 2
    y[index] += source
    y.view(-1).scatter_add_(0, index, source[:, 1])
    y[:, ::2] = 7
    return y


class Memory(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(5, 4))

    def forward(self, x, index, source):
        self.table[:, 1:].index_copy_(0, index, source[:, 1:])
        self.table[0].index_fill_(0, index, 2.5)
        return x + self.table


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [into_input, into_view, into_result, Memory()])
def test_in_place(function):
    x, index = torch.randn(5, 4), torch.tensor([3, 0, 2])
    check(copy.deepcopy(function), x, index, torch.randn(3, 4))


# Bags


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode, dtype):
    torch.manual_seed(2)
    weight = torch.randn(50, 9).to(dtype)
    index, offsets = torch.randint(0, 50, (40,)), torch.tensor([0, 3, 3, 17, 40])
    check(
        [
            lambda w, i, o: F.embedding_bag(i, w, o, mode=mode),
            lambda w, i, o: F.embedding_bag(i, w, o[:3], mode=mode),
            lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, include_last_offset=True),
            lambda w, i, o: F.embedding_bag(i.view(8, 5), w, mode=mode),
            lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, padding_idx=7),
            lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, padding_idx=-3),
        ],
        *(weight, index, offsets),
    )


def test_largest_of_bags_with_nan():
    """Only a bag whose first row has NaN keeps it."""
    rows = [[1.0, 2.0], [float("nan"), 3.0], [5.0, float("nan")], [float("-inf"), 1.0]]
    index, offsets = torch.tensor([0, 1, 2, 1, 0, 3, 1, 3]), torch.tensor([0, 3, 3, 5])
    check(
        [
            lambda w, i, o: F.embedding_bag(i, w, o, mode="max"),
            lambda w, i, o: F.embedding_bag(i, w, o, mode="max", padding_idx=1),
        ],
        *(torch.tensor(rows), index, offsets),
    )


def test_weighted_bags_and_wrong_indices():
    def function(w, i, o, scale):
        return F.embedding_bag(i, w, o, mode="sum", per_sample_weights=scale)

    weight, index, offsets = torch.randn(9, 3), torch.randint(0, 9, (6,)), torch.tensor([0, 2])
    compiled = check(function, weight, index, offsets, torch.randn(6))
    index[3] = 9
    with torch.no_grad(), pytest.raises(RuntimeError):
        compiled(weight, index, offsets, torch.randn(6))
