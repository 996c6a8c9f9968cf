# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions of operands and results that lie in any order of their dims."""

import pytest
import torch
from counting import latest, programs

import weft

SIZES = {"a": 2, "b": 3, "m": 20, "n": 12, "q": 24, "r": 40, "u": 17, "v": 8}

EQUATIONS = [
    "mu,uq->mq",
    "um,qu->mq",  # neither operand is contiguous along a dim of the result, nor both along u
    "mu,uq->qm",
    "unm,qu->mnq",
    "mu,quv->mqv",  # vectors run through two dims
    "muv,uvq->mq",  # the sum runs through two, of which the right side walks the outer faster
    "muv,quv->mq",
    "muv,qvu->mq",
    "vum,quv->mq",
    "bmu,aqu->abmq",
    "naubm,bauq->nqamb",
    "aum,uraq->aqrm",
    "mbuav,aqvubr->bmraq",
]


def einsum(equation: str) -> tuple:
    left, right = equation.split("->")[0].split(",")
    torch.manual_seed(0)
    operands = [torch.randn([SIZES[dim] for dim in dims]) for dims in (left, right)]
    return (lambda x, y: torch.einsum(equation, x, y)), operands


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ["avx2", "native"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_orders(equation: str, isa: str) -> None:
    function, operands = einsum(equation)
    with torch.no_grad():
        compiled = weft.compile(function, threads=2, isa=isa)
        result, alone = compiled(*operands), weft.compile(function, threads=1, isa=isa)(*operands)
        eager, twin = function(*operands), function(*(x.double() for x in operands))
    assert programs(compiled) == 1
    assert torch.equal(result, alone)
    assert result.stride() == eager.stride()
    assert (result - twin).abs().max() <= 2 * (eager - twin).abs().max() + 1e-6
    calls = latest(compiled).manifest["entries"]["main"]["calls"]
    # Register tiles or dot products, not a loop nest.
    assert all("rows" in call["schedule"] for call in calls if call["kind"] == "contraction")


def test_two_dims_of_a_view_are_summed() -> None:
    """As in attention without its own kernel, whose heads a linear layer sums."""
    layer = torch.nn.Linear(5 * 16, 48).eval()
    x = torch.randn(1, 5, 50, 16)

    def heads(x: torch.Tensor) -> torch.Tensor:
        return layer(x.transpose(1, 2).reshape(1, 50, 80))

    with torch.no_grad():
        compiled = weft.compile(heads)
        result, eager = compiled(x), heads(x)
        layer.double()
        twin = heads(x.double())
    assert (result - twin).abs().max() <= 2 * (eager - twin).abs().max()
    (call,) = latest(compiled).manifest["entries"]["main"]["calls"]
    assert "rows" in call["schedule"]


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 1, 0, 2)])
def test_results_are_stored_with_the_strides_of_eager_mode(order: tuple) -> None:
    def function(x: torch.Tensor) -> tuple:
        y = x.permute(order).exp()  # keeps the strides of the view
        return y, y.sum(1), y + 1

    x = torch.randn(2, 3, 4, 5)
    compiled = weft.compile(function)
    for result, eager in zip(compiled(x), function(x), strict=True):
        assert result.stride() == eager.stride()
        assert torch.allclose(result, eager, rtol=1e-6, atol=0)
    specs = latest(compiled).manifest["entries"]["main"]["results"]
    assert [tuple(spec["strides"]) for spec in specs] == [y.stride() for y in function(x)]
