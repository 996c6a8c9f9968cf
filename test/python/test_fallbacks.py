# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops without a lowering run by PyTorch's kernels inside the program, between native ones."""

import inspect
import io
import json

import pytest
import torch
from counting import latest
from threads import in_threads

import weft
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
        patch.setattr("weft.face.Compiled._eager", lambda self, why, a, k, *_: self.original(*a))
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
