# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.explain, weft.disable and weft.reset."""

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")


def branching(x):
    return x + 1 if x.sum() > 0 else x - 1


def test_a_whole_call_is_explained():
    found = weft.explain(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.randn(2, 4))
    assert found.whole and not found.breaks and found.kernels >= 1 and "f32[2, 4]" in found.shapes
    assert "One program" in str(found)


def test_a_break_is_explained_with_its_line():
    found = weft.explain(weft.compile(branching, capture="export"), torch.ones(3))
    assert not found.whole
    (reason,) = found.breaks
    assert "test_explaining.py" in reason and reason in str(found)


def test_what_is_observed_where_it_cannot_be_traced_is_explained():
    compiled, x = weft.compile(branching), torch.ones(3)
    found = weft.explain(compiled, x)
    assert found.whole and found.kernels >= 1 and not found.breaks
    for each in (x, x, -x, -x, x):
        assert compiled(each).equal(branching(each))
    stats = compiled.stats()
    assert stats["graphs"] == 2 and stats["hits"] == 4 and not stats["breaks"]
    assert compiled.why_miss(torch.ones(4)) is not None and compiled.why_miss(x) is None


def test_explaining_does_not_warn_and_again_says_the_same(recwarn):
    compiled = weft.compile(branching, capture="export")
    first, second = (weft.explain(compiled, torch.ones(3)) for _ in range(2))
    assert first == second and not first.whole
    assert not [each for each in recwarn if issubclass(each.category, weft.errors.WeftWarning)]


def test_schedules_are_told_with_what_they_were_chosen_over():
    compiled = weft.compile(lambda x, y: x @ y, isa="avx2", threads=2)
    with pytest.raises(weft.errors.Error, match="nothing has been compiled"):
        weft.schedules(compiled)
    compiled(torch.randn(130, 70), torch.randn(70, 150))
    (chosen,) = weft.schedules(compiled)
    assert chosen.emitter == "contraction" and chosen.location[0] == __file__
    assert len(chosen.over) > 8 and f" and {len(chosen.over) - 4} more" in str(chosen)
    times = [each.seconds for each in chosen.over]
    assert times == sorted(times) and 1e-7 < chosen.taken.seconds < times[-1] < 1e-3
    (given,) = weft.schedules(_called(weft.compile(torch.matmul, isa="avx2", schedule="rows=1")))
    assert given.taken.fields.startswith("rows=1 ") and given.over[0].seconds < given.taken.seconds
    assert f"; over {given.over[0]}, " in str(given) and "µs" in str(given)


def _called(compiled):
    compiled(torch.randn(130, 70), torch.randn(70, 150))
    return compiled


def test_explaining_makes_the_call_and_its_program():
    compiled, x = weft.compile(lambda x: x.add_(1)), torch.zeros(3)
    assert weft.explain(compiled, x).whole and x.tolist() == [1, 1, 1]
    assert weft.stats(compiled)["graphs"] == 1


def test_host_ops_are_named():
    found = weft.explain(lambda x: torch.linalg.cholesky(x @ x.T + torch.eye(3)), torch.randn(3, 3))
    assert found.whole and any("cholesky" in each for each in found.host_ops)


@weft.disable
def secret(x):
    return x * 2


def swallowing(x):
    try:
        return secret(x)
    except Exception:
        return x * 3


@pytest.mark.parametrize(
    "function", [lambda x: secret(x) + 1, lambda x: secret(x=x) + 1, swallowing]
)
def test_disabled_functions_are_in_no_program(function):
    compiled, x = weft.compile(function), torch.ones(3)
    with pytest.warns(weft.errors.WeftWarning, match="secret, which weft.disable keeps out"):
        assert compiled(x).equal(function(x))
    assert weft.stats(compiled)["graphs"] == 0 and compiled(x).equal(function(x))


def test_what_is_neither_traced_nor_observed_has_both_reasons():
    found = weft.explain(swallowing, torch.ones(3))
    traced, observed = found.breaks
    assert not found.whole and "weft.disable keeps out" in traced
    assert observed.startswith("observed: asks for an address")


def test_disabled_modules_are_in_no_program():
    inner = weft.disable(nn.Linear(3, 3))
    assert isinstance(inner, nn.Linear)
    found = weft.explain(nn.Sequential(inner, nn.ReLU()), torch.randn(2, 3))
    assert not found.whole and "forward, which weft.disable" in found.breaks[0]
    with pytest.raises(TypeError, match="expected a function or module"):
        weft.disable(3)


def test_reset_forgets_programs():
    one, other = (
        weft.compile(lambda x: x + 1, capture="export"),
        weft.compile(branching, capture="export"),
    )
    x = torch.ones(3)
    with pytest.warns(weft.errors.WeftWarning):
        for _ in range(2):
            assert one(x).equal(x + 1) and other(x).equal(x + 1)
    weft.reset(one)
    assert one(x).equal(x + 1) and one(x).equal(x + 1)
    assert weft.stats(one)["captures"] == 2 and weft.stats(other)["breaks"]
    weft.reset()
    assert not weft.stats(other)["breaks"]
    with pytest.warns(weft.errors.WeftWarning):
        other(x)
    assert one(x).equal(x + 1) and weft.stats(one)["captures"] == 3
