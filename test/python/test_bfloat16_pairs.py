# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of bfloat16 products two at a time, where the machine has instructions for it."""

import copy

import pytest
import torch
import torch.nn.functional as F
from processor import HAS_PAIRS, WIDEST_ISA
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

MODULES = {
    "whole": (nn.Linear(256, 96), (128, 256)),
    "odd": (nn.Linear(771, 97), (37, 771)),
    "long": (nn.Sequential(nn.Linear(3072, 70), nn.Linear(70, 391)), (1, 128, 3072)),
    "odd-chunks": (nn.Sequential(nn.Linear(4095, 70), nn.Linear(70, 4095)), (40, 4095)),
    "few-rows": (nn.Sequential(nn.Linear(75, 5), nn.ReLU(), nn.Linear(5, 47)), (47, 75)),
    "vector": (nn.Linear(771, 70), (771,)),
    "three-rows": (nn.Linear(4095, 33), (3, 4095)),
    "short-dots": (nn.Linear(20, 33), (5, 20)),
    "conv": (nn.Conv2d(12, 20, 3, 2, 1), (2, 12, 19, 17)),
    "image": (nn.Conv2d(3, 33, 7, 2, 3), (2, 3, 35, 33)),
    "conv1d": (nn.Conv1d(9, 24, 3, 2, 1), (2, 9, 41)),
    "transposed": (nn.ConvTranspose2d(12, 20, 4, 2, 1), (1, 12, 7, 9)),
}


def error_of(found: torch.Tensor, exact: torch.Tensor) -> float:
    return ((found.double() - exact).norm() / exact.norm()).item()


def run(function, *args, **options) -> torch.Tensor:
    """The same bits from one thread and from two, in pairs where the machine has them."""
    before, results = weft.get_num_threads(), []
    for threads in (1, 2):
        weft.set_num_threads(threads)
        try:
            compiled = weft.compile(function, isa=WIDEST_ISA, threads=2, **options)
            results.append(compiled(*args))
        finally:
            weft.set_num_threads(before)
    assert ("paired = 1" in compiled.ir("loops")) == HAS_PAIRS
    assert torch.equal(*(result.contiguous().view(torch.uint8) for result in results))
    return results[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODULES)
def test_stored_as_bfloat16(name: str) -> None:
    torch.manual_seed(0)
    module, shape = MODULES[name]
    module, x = copy.deepcopy(module).bfloat16(), torch.randn(shape).bfloat16()
    exact = copy.deepcopy(module).double()(x.double())
    assert error_of(run(module, x), exact) <= 1.01 * error_of(module(x), exact)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODULES)
def test_rounded_from_float32(name: str) -> None:
    torch.manual_seed(0)
    module, shape = MODULES[name]
    x = torch.randn(shape)
    exact = copy.deepcopy(module).double()(x.double())
    with torch.autocast("cpu", torch.bfloat16):
        autocast = error_of(module(x), exact)
    assert error_of(run(module, x, precision="bf16"), exact) <= autocast


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1030, 1001), (75, 20), (771, 9), (64, 32)])
def test_weights_stored_in_by_out(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(shape).bfloat16(), torch.randn(70, shape[0]).bfloat16()
    exact = x.double() @ weight.double()
    assert error_of(run(lambda x: x @ weight, x), exact) <= 1.01 * error_of(x @ weight, exact)
    # Partial sums wait in a result of float32; these operands are not rounded.
    weight, x = weight.float(), x.float()
    assert error_of(run(lambda x: x @ weight, x, precision="bf16"), exact) < 1e-6


def test_batches() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 33, 75).bfloat16(), torch.randn(5, 75, 50).bfloat16()
    exact = a.double() @ b.double()
    assert error_of(run(torch.matmul, a, b), exact) <= 1.01 * error_of(a @ b, exact)


def test_sums_are_those_of_exact_products() -> None:
    """Integers whose sums float32 holds: any order gives the same."""
    torch.manual_seed(0)
    x, weight = (torch.randint(-9, 9, shape).bfloat16() for shape in [(70, 771), (33, 771)])
    found = run(lambda x, weight: F.linear(x, weight), x, weight)
    assert torch.equal(found, (x.double() @ weight.double().mT).bfloat16())


def test_nothing_behind_an_operand_is_read() -> None:
    memory = torch.full((2, 8192), torch.nan, dtype=torch.bfloat16)
    weight, x = memory[0, :900].view(12, 75), memory[1, : 40 * 75].view(40, 75)
    weight.fill_(1)
    x.fill_(2)
    found = run(lambda x, weight: F.linear(x, weight), x, weight)
    assert torch.equal(found, torch.full((40, 12), 150.0, dtype=torch.bfloat16))


def test_numbers_that_are_not_finite() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(40, 75).bfloat16(), torch.randn(12, 75).bfloat16()
    x[3, 74], x[5, 0], weight[7, 10] = torch.inf, torch.nan, -torch.inf
    found = run(lambda x, weight: F.linear(x, weight), x, weight)
    exact = F.linear(x.double(), weight.double())
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isinf(), exact.isinf())


def test_weights_are_read_where_they_lie() -> None:
    module, x = nn.Linear(200, 150).bfloat16(), torch.randn(64, 200).bfloat16()
    compiled = weft.compile(module, isa=WIDEST_ISA)
    first = compiled(x)
    module.weight.mul_(2)
    module.bias.mul_(2)
    assert torch.equal(compiled(x), 2 * first)
