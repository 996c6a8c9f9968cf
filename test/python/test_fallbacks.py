# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops without a lowering run by PyTorch's kernels inside the program, between native ones."""

import inspect
import io
import json

import pytest
import torch
import torch.nn.functional as F
from counting import latest
from threads import in_threads
from torch.utils import _pytree as pytree

import weft
import weft.frontend.ops  # noqa: F401 (fills the table)
from weft.frontend.table import TABLE

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only", "without_lowerings")

nn = torch.nn


@pytest.fixture
def without_lowerings(monkeypatch):
    """The ops of these tests fall back, whether or not they have a lowering by now."""
    for name in ("sort.default", "topk.default", "logcumsumexp.default"):
        monkeypatch.delitem(TABLE, f"aten.{name}", raising=False)


def calls(compiled) -> list[str]:
    manifest = json.loads(latest(compiled).build.artifact.manifest)
    found = manifest["entries"]["main"]["calls"]
    return [call["target"] if "fallback" in call else "native" for call in found]


def sorted_rows(x):
    return (x * 2 + 1).sort(-1).values * 3


def sorted_order(x):
    values, order = (x + 1).sort(dim=0, descending=True)
    return values - 1, order * 2


def topmost(x):
    return torch.topk(x.exp(), 3, dim=-1)[0].sum(-1)


def cumulative_log(x):
    return torch.logcumsumexp(x * 2, 0) + x


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        (sorted_rows, (4, 8)),
        (sorted_order, (5, 3)),
        (topmost, (4, 8)),
        (cumulative_log, (6, 2)),
    ],
    ids=["sort", "sort-two-results", "topk", "logcumsumexp"],
)
def test_fallback_between_native_ops(target, shape):
    compiled = weft.compile(target)
    for _ in range(3):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), target(x))
    run = calls(compiled)
    assert "native" in run and any(call.startswith("aten.") for call in run)


def test_report_names_the_op_its_line_and_the_way():
    compiled = weft.compile(sorted_rows)
    compiled(torch.randn(4, 8))
    text = io.StringIO()
    compiled.report(text)
    line = inspect.getsourcelines(sorted_rows)[1] + 1
    report = " ".join(text.getvalue().split())
    assert f"aten.sort.default test_fallbacks.py:{line} dispatcher" in report


def test_random_numbers_come_in_program_order():
    def function(x):
        first = torch.nn.functional.dropout(x * 2, 0.5, training=True)
        noise = torch.randn_like(x)
        return torch.nn.functional.dropout(first + noise, 0.25, training=True), torch.rand(3)

    compiled = weft.compile(function)
    x = torch.randn(16, 4)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected, after = function(x), torch.get_rng_state()
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)
        assert torch.equal(torch.get_rng_state(), after)


def test_fallback_that_raises_leaves_everything_usable():
    # The check is inside the kernel: only real values fail it.
    def function(x):
        return torch.linalg.cholesky(x * 2) + 1

    compiled = weft.compile(function)
    good, bad = torch.eye(3), -torch.eye(3)
    for _ in range(2):
        torch.testing.assert_close(compiled(good), function(good))
    with pytest.MonkeyPatch.context() as patch:
        # Such a call is PyTorch's to refuse.
        patch.setattr(
            "weft.compiled.compiled.Compiled._failed", lambda self, why, a, k, *_: self.original(*a)
        )
        with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
            compiled(bad)
    torch.testing.assert_close(compiled(good), function(good))


def test_loaded_artifact_with_fallback():
    compiled = weft.compile(sorted_rows)
    x = torch.randn(4, 8)
    compiled(x)
    torch.testing.assert_close(weft.load(compiled.artifact_path)(x)[0], sorted_rows(x))


def test_several_threads():
    compiled = weft.compile(sorted_rows)
    compiled(torch.randn(64, 128))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(64, 128, generator=generator)
            torch.testing.assert_close(compiled(x), sorted_rows(x))

    in_threads(4, work)


G = torch.tensor([[[[torch.nan, 0.0], [1e20, 0.0], [-torch.inf, 0.0], [0.3, -0.4]]]])
IMAGE = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("target", "args"),
    [
        # The last NaN counts, and no padding does.
        (lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), (IMAGE * -torch.inf,)),
        (lambda x: F.max_pool2d(x, 2, 1, return_indices=True), (IMAGE * torch.nan,)),
        (lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True), (IMAGE,)),
        (
            lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=False),
            (IMAGE.double(), G.double()),
        ),
        (
            lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
            (IMAGE.bfloat16(), G.bfloat16()),
        ),
        (torch.ldexp, (torch.full((3,), 1e-40), torch.tensor([140, 150, 160]))),
        (lambda x: torch.logspace(-3.3, 2.7, 9) + x[0, 0, 0, 0], (IMAGE,)),
        (lambda x: torch.linspace(3, 70, 12, dtype=torch.int64) + x[0, 0, 0, 0], (IMAGE,)),
        (
            lambda x: torch.linspace(-3.3, 7.7, 129, dtype=x.dtype) + x[0, 0, 0, 0],
            (IMAGE.bfloat16(),),
        ),
    ],
)
def test_other_algorithms_than_eager_are_not_used(target, args):
    """What a rule declines goes through a decomposition of torch only where that has the values of
    PyTorch's kernel."""
    compiled = weft.compile(target)
    for _ in range(3):
        for got, want in zip(*map(pytree.tree_leaves, (compiled(*args), target(*args)))):
            assert torch.equal(got.nan_to_num(7), want.nan_to_num(7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_decompositions_that_are_used(dtype):
    """They stay in the program."""
    x, y = (torch.randn(7, 33) * 3).to(dtype), torch.randn(7, 33).to(dtype)
    functions = [
        lambda x, y: torch.addcmul(x, x, y, value=2),
        lambda x, y: torch.lerp(x, y, 0.3),
        lambda x, y: F.mse_loss(x, y),
        lambda x, y: torch.logaddexp(x, y),
        lambda x, y: torch.nan_to_num(x / y),
        lambda x, y: F.softshrink(x),
        lambda x, y: F.glu(x[:, :32]),
    ]
    compiled = weft.compile(lambda x, y: [f(x, y) for f in functions])
    for _ in range(3):
        for got, f in zip(compiled(x, y), functions, strict=True):
            torch.testing.assert_close(got, f(x, y))
    assert set(calls(compiled)) == {"native"}


@pytest.mark.parametrize("driver", [None, "gels", "gelsy"])
@pytest.mark.parametrize(
    ("rows", "shape"), [(5, (5, 2)), (3, (3, 2)), (2, (2, 2)), (5, (5,)), (5, (2, 5, 2))]
)
def test_least_squares_within_a_program(rows, shape, driver):
    batch = shape[:-2]

    def solve(a, b):
        return tuple(torch.linalg.lstsq(a * 2, b + 1, driver=driver))

    compiled = weft.compile(solve, capture="export")
    for _ in range(2):
        a, b = torch.randn(*batch, rows, 3, dtype=torch.float64), torch.randn(shape).double()
        torch.testing.assert_close(compiled(a, b), solve(a, b))
    assert not compiled.eager_reasons and weft.stats(compiled)["hits"]
