# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What eager PyTorch raises is raised, on every call, and nothing else is."""

import pickle

import pytest
import torch
import torch.nn.functional as F

import weft
from weft import errors

pytestmark = pytest.mark.usefixtures("no_grad")

INTEGERS = torch.randint(1, 9, (2, 3, 8, 8))
ONES = torch.ones(3)


def outcome(function, args):
    """The result, or the type of what is raised."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def check(function, *calls):
    """Every call against eager, three times in turn."""
    compiled = weft.compile(function)
    for args in calls:
        for _ in range(3):
            expected, found = outcome(function, args), outcome(compiled, args)
            if isinstance(expected, type):
                assert found is expected, args
            else:
                torch.testing.assert_close(found, expected, equal_nan=True)
    return compiled


REFUSED = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "var": lambda x: x.var(),
    "std_mean": lambda x: torch.std_mean(x),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, 4),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x, 3),
    "average of ints": lambda x: F.avg_pool2d(x.int(), 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest exactly": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "maximum pooling of bools": lambda x: F.max_pool2d(x > 4, 2),
    "hypot": lambda x: torch.hypot(x, x),
    "hardswish": F.hardswish,
    "glu": F.glu,
    "silu": F.silu,
    "gelu": F.gelu,
    "cross entropy": lambda x: F.cross_entropy(x[0, 0], x[0, 0, 0] % 8),
    "relu of bools": lambda x: torch.relu(x > 4),
    "a product of bools": lambda x: (x > 4) @ (x > 4),
    "a difference of bools": lambda x: (x > 4) - (x > 4),
    "layer norm": lambda x: F.layer_norm(x, (8,)),
    "group norm": lambda x: F.group_norm(x, 1),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "logsumexp of bools": lambda x: torch.tril(x > 4).cumprod(0).logsumexp(0),
    "an index of floats": lambda x: x[x.float()],
    "gather by int8": lambda x: x.gather(0, (x * 0).to(torch.int8)),
    "embedding by floats": lambda x: F.embedding(x.float(), torch.ones(9, 2)),
    "classes of type int32": lambda x: F.nll_loss(x[0, 0].float(), x[0, 0, 0].int() % 8),
    "in place": lambda x: (x + 1).clamp_(max=1e300).sigmoid_(),
    "unread": lambda x: (x.softmax(-1), x + 1)[1],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", REFUSED)
def test_types(name):
    check(REFUSED[name], (INTEGERS,))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: torch.softmax(x, 3), ONES),
        (lambda x: 1 - x, ONES),
        (lambda x: True - x, ONES),
        (lambda x: x.max(), torch.zeros(0, 3)),
        (lambda x: x.argmin(1), torch.zeros(3, 0)),
        (lambda x: x.sum() + x.amax(1).sum(), torch.zeros(3, 0)),
    ],
)
def test_dims_and_sizes(function, x):
    check(function, (x,))


def test_results_that_are_no_dense_tensors():
    compiled = weft.compile(lambda x: x.to_sparse())
    for _ in range(3):
        assert torch.equal(compiled(ONES).to_dense(), ONES)
    assert "layout" in str(compiled.eager_reasons)


def test_results_of_lists_of_tensors():
    def function(x):
        counts, edges = torch.histogramdd(x, bins=[2, 3])
        return counts * 2, edges[1] + 1

    check(function, (torch.randn(6, 2),))


# Scalars beyond the largest element: some kernels take them, as infinity, and others do not.
BEYOND = [
    lambda x, s: x * s,
    lambda x, s: s - x,
    lambda x, s: x + s,
    lambda x, s: x / s,
    lambda x, s: x < s,
    lambda x, s: x == s,
    lambda x, s: x**s,
    lambda x, s: x % s,
    lambda x, s: torch.add(x, x, alpha=s),
    lambda x, s: x.clamp(max=s),
    lambda x, s: x.clamp(-s, s),
    lambda x, s: torch.where(x > 0, x, s),
    lambda x, s: x.masked_fill(x > 0, -s),
    lambda x, s: F.pad(x, (1, 1), value=s),
    lambda x, s: F.threshold(x, s, s),
    lambda x, s: F.hardtanh(x, -s, s),
    lambda x, s: F.leaky_relu(x, s),
    lambda x, s: torch.full((2,), s, dtype=x.dtype) * x[0],
    lambda x, s: x.index_fill(0, torch.tensor([0]), s),
    lambda x, s: x.nan_to_num(posinf=s),
    lambda x, s: torch.addcmul(x, x, x, value=s),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(len(BEYOND)))
@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [(torch.float32, 1e300), (torch.float16, 1e6), (torch.bfloat16, 1e39), (torch.uint8, 300)],
)
def test_scalars_that_no_element_holds(number, dtype, scalar):
    check(BEYOND[number], (torch.tensor([1, 2, 0]).to(dtype), scalar))


def test_small_calls_do_not_refuse_what_eager_takes():
    big = torch.randn(2, 64, 30, 30)
    functions = [
        lambda x: F.conv2d(x, torch.ones(64, 1, 7, 7), groups=64, padding=3),
        lambda x: F.group_norm(x, 32),
        lambda x: F.layer_norm(x, (64, 30, 30)),
        lambda x: F.avg_pool2d(x, 7, 3, 3),
        lambda x: F.pixel_shuffle(x, 4),
        lambda x: F.pad(x, (9, 9, 9, 9), mode="reflect"),
        lambda x: x.roll(5, 2).flatten(1) @ torch.ones(64 * 900, 2),
        lambda x: x[:, :, torch.arange(30).int()],
    ]
    for function in functions:
        compiled = weft.compile(function)
        compiled(big), compiled(big)
        assert not any("refuses" in reason for reason in compiled.eager_reasons)


MATRIX, VECTOR, WEIGHTS = torch.randn(2, 5), torch.randn(2), torch.randn(4, 5)
# Of indices: two, into what they index.
INDEXED = {
    "one_hot": lambda i: F.one_hot(i, 5),
    "nll_loss": lambda i: F.nll_loss(MATRIX, i),
    "nll_loss but for one": lambda i: F.nll_loss(MATRIX, i, ignore_index=-1),
    "cross_entropy": lambda i: F.cross_entropy(MATRIX, i),
    "cross_entropy smoothed": lambda i: F.cross_entropy(MATRIX, i, label_smoothing=0.1),
    "multi_margin_loss": lambda i: F.multi_margin_loss(MATRIX, i),
    "searchsorted": lambda i: torch.searchsorted(VECTOR, VECTOR, sorter=i),
    "max_unpool1d": lambda i: F.max_unpool1d(VECTOR.view(1, 1, 2), i.view(1, 1, 2), 2),
    "max_unpool2d": lambda i: F.max_unpool2d(VECTOR.view(1, 1, 1, 2), i.view(1, 1, 1, 2), 2),
    "max_unpool3d": lambda i: F.max_unpool3d(VECTOR.view(1, 1, 1, 1, 2), i.view(1, 1, 1, 1, 2), 2),
    "embedding": lambda i: F.embedding(i, WEIGHTS, padding_idx=1),
    "embedding_bag": lambda i: F.embedding_bag(i, WEIGHTS, torch.tensor([0])),
    "take_along_dim": lambda i: torch.take_along_dim(VECTOR, i, 0),
    "unread": lambda i: (VECTOR[i], VECTOR + 1)[1],
    "unread, before a write": lambda i: (VECTOR[i], VECTOR.clone().t_().add_(1))[1],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", INDEXED)
def test_indices_out_of_range(name):
    good = (torch.tensor([0, 1]),)
    check(INDEXED[name], good, (torch.tensor([0, 99]),), good, (torch.tensor([0, -1]),))
    check(INDEXED[name], good, (torch.tensor([0, -99]),), good)


def test_an_unread_result_before_a_write_to_an_argument():
    def function(x, i):
        x[i]
        return x.add_(1)

    compiled = weft.compile(function)
    for i in ([0, 1], [0, 1], [0, 1], [0, 9]):
        expected, found = torch.zeros(3), torch.zeros(3)
        outcome(function, (expected, torch.tensor(i)))
        outcome(compiled, (found, torch.tensor(i)))
        assert torch.equal(found, expected)
    with pytest.raises(IndexError):
        compiled(torch.zeros(3), torch.tensor([0, 9]))


PORTIONS = [
    lambda x: F.binary_cross_entropy(x, torch.ones(2)),
    lambda x: F.binary_cross_entropy(torch.full((2,), 0.5), x, reduction="none"),
    lambda x: F.binary_cross_entropy(x.double(), torch.ones(2).double(), torch.ones(2).double()),
    lambda x: torch.quantile(torch.arange(5.0), x),
    lambda x: torch.nanquantile(torch.arange(5.0), x),
]


@pytest.mark.parametrize("number", range(len(PORTIONS)))
@pytest.mark.parametrize("bad", [1.5, -0.5, float("nan")])
def test_portions_out_of_range(number, bad):
    good = (torch.tensor([0.5, 0.25]),)
    check(PORTIONS[number], good, (torch.tensor([0.5, bad]),), good)


def test_bags_out_of_order():
    def function(offsets):
        return F.embedding_bag(torch.tensor([0, 1, 2]), WEIGHTS, offsets)

    good = (torch.tensor([0, 1, 2]),)
    check(function, good, (torch.tensor([0, 2, 1]),), good)


def test_a_miss_has_a_reason_a_line_and_an_op():
    def function(x):
        return torch.bincount(x.long())

    compiled = weft.compile(function, fullgraph=True, capture="export")
    with pytest.raises(errors.CaptureError) as caught:
        compiled(torch.ones(3))
    miss = caught.value
    assert isinstance(miss, errors.NotCompiledError)
    assert miss.op == "aten.bincount.default" and miss.op in miss.reason
    line = function.__code__.co_firstlineno + 1
    assert miss.location == f"{__file__}:{line} (function)"
    assert str(miss) == f"{miss.reason} ({miss.location})"


def test_a_miss_for_its_arguments_has_no_op():
    compiled = weft.compile(lambda x: x + 1, fullgraph=True, capture="export")
    with pytest.raises(errors.NotCompiledError) as caught:
        compiled(torch.ones(3).to_sparse())
    assert "layout" in caught.value.reason
    assert caught.value.op is None and caught.value.location is None


def test_all_reasons_why_pytorch_runs_a_call_are_of_one_kind():
    from weft.capture.signature import Declined
    from weft.frontend import Unsupported

    for kind in (Declined, Unsupported, errors.NotCompiledError):
        error = pickle.loads(pickle.dumps(kind("a reason", "there.py:3", op="aten.add.Tensor")))
        assert isinstance(error, errors.CaptureError)
        assert (error.reason, error.location, error.op) == (
            "a reason",
            "there.py:3",
            "aten.add.Tensor",
        )
        assert str(error) == "a reason (there.py:3)"
