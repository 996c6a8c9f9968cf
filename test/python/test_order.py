# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting and searching: ties, NaN, zeros, every dim and dtype, short and long rows, threads."""

import math

import frontend_cases
import pytest
import torch
from compiled_cases import check
from counting import latest

import weft

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]

SORTS = [
    lambda x: x.sort(stable=True),
    lambda x: x.sort(dim=0, descending=True, stable=True),
    lambda x: x.sort(dim=1, stable=True, descending=True).values,
    lambda x: x.argsort(dim=1, stable=True),
    lambda x: x.argsort(dim=2, descending=True, stable=True),
    lambda x: x.msort(),
    lambda x: x[0, 0, 0].sort(stable=True),
    lambda x: x[:, :0].sort(dim=1, stable=True),
    lambda x: x[:, :1].sort(dim=1, stable=True),
]


def ties(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    x = torch.randint(-9, 9, shape)
    if dtype == torch.bool:
        return x > 0
    return (x if dtype.is_signed else x.abs()).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("function", SORTS)
def test_graph(function, dtype):
    torch.manual_seed(0)
    frontend_cases.check(function, ties((2, 5, 40), dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_stable(dtype):
    torch.manual_seed(1)
    check(SORTS, ties((3, 5, 130), dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 300])
def test_bools_are_partitioned(size):
    torch.manual_seed(size)
    sorts = [
        lambda x: x.sort(stable=True),
        lambda x: x.sort(dim=1, descending=True, stable=True),
        lambda x: x[0].argsort(descending=True, stable=True),
        lambda x: x.T.sort(dim=-1, stable=True),
        lambda x: x[..., None].sort(dim=1, stable=True),
    ]
    for share in (0.0, 0.4, 1.0):
        check(sorts, torch.rand(3, size) < share)


def same_values(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(found.nan_to_num(9e9), expected.nan_to_num(9e9))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", [1, 2, 17, 64, 65, 100, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_top(size, dtype):
    """The values by the program; of the places, where there are equal elements, PyTorch's own."""
    torch.manual_seed(size)
    x = ties((7, size), dtype)
    if dtype.is_floating_point:
        x[:, ::7] = math.nan
        x[:, 1::5] = -0.0
    for count in sorted({1, min(5, size), min(63, size), size // 2 + 1, size}):
        for largest in (True, False):
            compiled = weft.compile(lambda x: x.topk(count, 1, largest).values)  # noqa: B023
            with_places = weft.compile(lambda x: x.topk(count, 1, largest))  # noqa: B023
            with torch.no_grad():
                values, (_, indices) = compiled(x), with_places(x)
            assert not compiled.eager_reasons, compiled.eager_reasons
            expected = x.topk(count, 1, largest)
            same_values(values, expected.values)
            assert torch.equal(indices, expected.indices)


def test_worst_order_for_the_list():
    x = torch.arange(5000.0).repeat(3, 1)
    functions = [
        lambda x: x.topk(50).values,
        lambda x: x.topk(50, largest=False).values,
        lambda x: x.topk(50, sorted=False).values,
        lambda x: x.topk(1),
    ]
    check(functions, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_long_rows_gather_candidates(dtype):
    """In any order of a row: random, with ties, better and better, all the same, all NaN."""
    torch.manual_seed(2)
    size = 3207
    rows = [torch.randn(size) * 1000, ties((size,), torch.float32), torch.arange(float(size))]
    x = torch.stack([*rows, -rows[2], torch.ones(size), torch.full((size,), math.nan)])
    x[0, ::50] = math.nan
    x = (x if dtype.is_floating_point else x.nan_to_num(7)).to(dtype)
    counts = [33, 120, 200]
    for largest in (True, False):
        compiled = weft.compile(lambda x: [x.topk(n, 1, largest).values for n in counts])  # noqa: B023
        with torch.no_grad():
            found = compiled(x)
        assert not compiled.eager_reasons, compiled.eager_reasons
        expected = x.sort(dim=1, descending=largest, stable=True).values
        for count, values in zip(counts, found):
            same_values(values, expected[:, :count])


def test_nan_and_zeros():
    x = torch.tensor([0.0, math.nan, -0.0, math.inf, -math.inf, -math.nan, 1e-45, -1e-45, 0.0])
    for dtype in FLOATS:
        for size in (9, 90):
            y = x.to(dtype).repeat(size // 9)
            compiled = weft.compile(
                lambda y: (y.sort(stable=True), y.sort(dim=0, descending=True, stable=True))
            )
            with torch.no_grad():
                found = compiled(y)
            for (values, indices), descending in zip(found, (False, True), strict=True):
                expected = y.sort(descending=descending, stable=True)
                assert torch.equal(indices, expected.indices)
                same_values(values, expected.values)
                # Zeros keep their signs.
                zeros = expected.values == 0
                assert torch.equal(values.signbit()[zeros], expected.values.signbit()[zeros])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_order_statistics(dtype):
    x = torch.randperm(3 * 5 * 101).view(3, 5, 101).to(dtype)
    check(
        [
            lambda x: x.kthvalue(7).values,
            lambda x: x.kthvalue(3, 1, keepdim=True).values,
            lambda x: x.kthvalue(101).values,
            lambda x: x.median(),
            lambda x: x.median(1).values,
            lambda x: x.median(2, keepdim=True).values,
            lambda x: x.nanmedian(1).values,
            lambda x: x[0, 0, 0].median(),
            lambda x: x.median(0).values + x[0],
        ],
        x,
    )


def test_median_of_nan():
    x = torch.randn(4, 9)
    x[1, 3] = x[1, 5] = x[2, 8] = math.nan
    check([lambda x: x.median(1)[0], lambda x: x.median(0)[0], lambda x: x.median()], x)
    check([lambda x: x.median(1), lambda x: x.nanmedian(1)], x, native=False)


def test_threads_make_no_difference():
    torch.manual_seed(4)
    x = ties((37, 1500), torch.float32)
    compiled = check(lambda x: (x.sort(stable=True), x.sort(dim=0, stable=True), x.topk(9)[0]), x)
    before, results = weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            with torch.no_grad():
                results.append(torch.utils._pytree.tree_leaves(compiled(x)))
    finally:
        weft.set_num_threads(before)
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))


def test_sampling():
    """What generation does with logits."""

    def nucleus(logits):
        ordered, indices = logits.sort(descending=True, stable=True)
        beyond = ordered.softmax(-1).cumsum(-1) > 0.9
        beyond[..., 1:] = beyond[..., :-1].clone()
        beyond[..., 0] = False
        return logits.masked_fill(beyond.scatter(1, indices, beyond), -math.inf)

    torch.manual_seed(6)
    check(nucleus, torch.randn(3, 700))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 100])
def test_searches(size, dtype):
    torch.manual_seed(size)
    boundaries = torch.randint(0, 30, (3, size)).sort(1)[0].to(dtype)
    x = torch.arange(-3, 36).repeat(3, 1).to(dtype)
    if dtype.is_floating_point:
        x[:, 4], x[:, 5] = math.nan, math.inf
    functions = [
        lambda s, x: torch.searchsorted(s, x),
        lambda s, x: torch.searchsorted(s, x, side="right", out_int32=True),
        lambda s, x: torch.searchsorted(s[0], x, right=True),
        lambda s, x: torch.searchsorted(s[0], 5),
        lambda s, x: torch.searchsorted(s.flip(1), x, sorter=s.flip(1).argsort(dim=1, stable=True)),
        lambda s, x: torch.bucketize(x, s[1]),
        lambda s, x: torch.bucketize(x[0, 9], s[1], right=True),
        lambda s, x: torch.bucketize(x, s[1, :0]),
    ]
    check(functions, boundaries, x)
    for function in functions:
        frontend_cases.check(function, boundaries, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("size", [1, 2, 7, 16, 33])
def test_searches_look_at_the_same_elements(size, dtype):
    """Which matters where rows hold NaN, or are not sorted."""
    x = torch.randn(6, size).mul(3).to(dtype)
    sequence = x.sort(1)[0]
    if dtype.is_floating_point:
        sequence[1::2, size // 2 :] = torch.nan
        sequence[2, 0] = x[0, 0] = torch.nan
    compiled = weft.compile(
        lambda s, x: (torch.searchsorted(s, x), torch.searchsorted(s, x, right=True))
    )
    for rows in (sequence, x.flip(1).contiguous()):
        for _ in range(3):
            expected = torch.searchsorted(rows, x), torch.searchsorted(rows, x, right=True)
            for got, want in zip(compiled(rows, x), expected, strict=True):
                assert torch.equal(got, want)
    assert not compiled.eager_reasons


def test_places_of_equal_elements():
    """PyTorch's kernels order them in their own way, unless they are few, or only one is asked."""
    x = torch.randint(0, 3, (50, 128))
    check([lambda x: x[:16].sort(0), lambda x: x[:, :16].argsort(), lambda x: x.topk(1)], x)
    functions = [
        *(lambda x: x.kthvalue(7), lambda x: x.kthvalue(30, 0), lambda x: x.sort()),
        *(lambda x: x.argsort(0), lambda x: x.topk(5), lambda x: x[:, :9].topk(1, 0)),
        *(lambda x: x.median(1), lambda x: x.float().nanmedian(0)),
        lambda x: x.topk(60, sorted=False).values,
    ]
    for function in functions:
        check(function, x, native=False)


def _of_ties(x):
    """The first six find as many equal elements in each row as kernels order in their own way."""
    return (
        *(x.sort(1).values, x.sort(0, descending=True).values, x.msort(), x.kthvalue(9).values),
        *(x.topk(5).values, x.amax(2).topk(2).values, x.flatten(1).median(1).values),
    )


def test_gradients_of_equal_elements_go_where_eager_kernels_find_them(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.randint(0, 4, (18, 40, 9)).float().requires_grad_()
    found, expected = weft.compile(_of_ties)(x), _of_ties(x)
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        weights = torch.arange(1.0, mine.numel() + 1).view(mine.shape)
        slopes = (torch.autograd.grad(each, x, weights, True)[0] for each in (mine, theirs))
        assert torch.equal(*slopes), number


def test_elements_of_no_dims():
    x = torch.tensor(3.0)
    check(lambda x: (*x.topk(0), *x.topk(1), *x.sort(), x.msort()), x, native=True)


MODES = [
    lambda x: x.mode(1),
    lambda x: x.mode(0, keepdim=True),
    lambda x: x[0, 0, 0].mode(),
    lambda x: x.mode(),
]


@pytest.mark.parametrize("size", [1, 2, 5, 16])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_mode(size, dtype):
    """Of values that stand equally often the least, and its last place."""
    torch.manual_seed(size)
    check(MODES, ties((3, size, 6), dtype))


def test_modes_that_pytorch_finds():
    """Of long rows the place is that of PyTorch's sort, which is not stable, and so is the order of
    NaNs."""
    torch.manual_seed(0)
    x = ties((3, 60, 4), torch.int64)
    for mode in (lambda x: x.mode(1), lambda x: x.mode(1)[0], lambda x: x.float().mode(0)):
        compiled = check(mode, x, native=False)
        assert latest(compiled).lowered.fallbacks
