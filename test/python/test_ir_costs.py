# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ops cost, in the margin of a module's text."""

from __future__ import annotations

import io

import pytest
import torch

import weft
from weft import ir
from weft.ir import ops
from weft.ir.costs import Cost, sum_of
from weft.reporting import roofline


@pytest.fixture(autouse=True)
def peaks(monkeypatch):
    monkeypatch.setattr(roofline, "peak_flops", lambda threads: 100e9)
    monkeypatch.setattr(roofline, "peak_bandwidth", lambda threads: 10e9)


def shown(module, **options) -> list[str]:
    stream = io.StringIO()
    module.show(file=stream, **options)
    return stream.getvalue().splitlines()


def test_what_ops_cost():
    @ir.function(name="main")
    def main(x: ir.tensor(4, 8), w: ir.tensor(8, 16), z: ir.tensor(4, 16)):
        return ops.softmax(ops.fma(x @ w, z, z), 1)

    dot, fma, softmax, _ = main.module["main"].body
    assert dot.cost == Cost(2 * 4 * 8 * 16, 4 * (4 * 8 + 8 * 16 + 4 * 16))
    assert fma.cost == Cost(2 * 64, 4 * 3 * 64), "one operand twice is read once"
    assert softmax.cost == Cost(5 * 64, 4 * 2 * 64)
    assert dot.cost.seconds(1) == max(1024 / 100e9, dot.cost.bytes / 10e9)
    total = sum_of(main.module["main"].body)
    assert total.flops == 1024 + 128 + 320


def test_convolutions_and_attention():
    conv = ir.of(torch.nn.Conv2d(3, 8, 3, bias=False), torch.randn(1, 3, 10, 10))
    assert conv["main"].body[0].cost.flops == 2 * 3 * 9 * 8 * 8 * 8
    q = torch.randn(1, 2, 5, 16)
    attention = ir.of(torch.nn.functional.scaled_dot_product_attention, q, q, q)
    (op,) = [op for op in attention["main"].body if op.name == "attention"]
    assert op.cost.flops == 2 * 5 * 5 * (2 * 16 + 2 * 16 + 5)


@pytest.mark.parametrize("stage", ["graph", "kernels", "linalg"])
def test_an_embedding_does_not_move_its_table(stage):
    module = ir.of(torch.nn.Embedding(30522, 64), torch.tensor([1, 2, 3, 4])).lower(stage)
    assert sum_of(module["main"].body).bytes < 5000


def test_nor_does_the_kernel():
    compiled = weft.compile(torch.nn.Embedding(30522, 64))
    ids = torch.tensor([1, 2, 3, 4])
    with torch.no_grad():
        compiled(ids)
    (gather,) = [each for each in compiled.profile(ids).kernels if each.kernel == "gather_0"]
    assert gather.moved == 4 * 64 * 4 * 2 + 4 * 8


def test_a_gather_of_everything_moves_no_more_than_there_is():
    def twice(table, ids):
        return table[ids] * 2

    compiled = weft.compile(twice)
    args = torch.randn(4, 8), torch.zeros(100, dtype=torch.int64)
    with torch.no_grad():
        compiled(*args)
    moved = sum(each.moved for each in compiled.profile(*args).kernels if "gather" in each.kernel)
    assert moved <= 4 * 8 * 4 + 100 * 8 + 100 * 8 * 4


def test_the_margin():
    @ir.function(name="main")
    def main(x: ir.tensor(100, 100), y: ir.tensor(100, 100)):
        return ops.exp(x @ y)

    lines = shown(main.module, costs=True)
    cells = [line.partition("|")[0].split() for line in lines]
    assert cells[0] == ["FLOP", "bytes", "least"]
    assert cells[3] == ["2", "M", "120", "k", "20.00", "us"] and "dot_general" in lines[3]
    assert cells[4] == ["10", "k", "80", "k", "8.00", "us"] and "weft.exp" in lines[4]
    assert cells[2] == ["2.01", "M", "200", "k", "20.10", "us"] and "func.func" in lines[2]
    assert [line.partition("| ")[2] for line in lines[1:]] == str(main.module).splitlines()


@pytest.mark.parametrize("stage", ["graph", "kernels"])
def test_measured_times(stage):
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    lines = shown(ir.of(model, torch.randn(40, 32)), stage=stage, costs="measured")
    assert lines[0].split()[:4] == ["FLOP", "bytes", "least", "time"]
    timed = [line for line in lines[3:] if line[30:40].strip()]
    wanted = ["weft.max", "weft.add"] if stage == "graph" else ["@dot_general_0", "@dot_general_1"]
    assert len(timed) == 2
    for line, name in zip(timed, wanted):
        assert name in line
