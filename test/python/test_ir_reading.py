# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: modules read from text and captured from models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import weft
from weft import ir

GRAPH_TESTS = Path(__file__).parent.parent / "compiler" / "Graph"

MULTIPLY_ADD = """\
module {
  func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = weft.mul %arg0, %arg1 : tensor<3x4xf32>
    %1 = weft.add %0, %arg1 : tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}"""


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.ones(2))
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.table = torch.tensor([1.0, 2.0, 3.0, 4.0])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, unused, x):
        x = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return torch.softmax(self.head(x * self.table), -1)


def test_a_module_reads_as_it_is_written():
    module = ir.Module.parse(MULTIPLY_ADD)
    assert str(module) == MULTIPLY_ADD
    main = module["main"]
    assert [function.name for function in module] == ["main"] and len(module) == 1
    x, y = main.params
    multiply, add, end = main.body
    assert [op.name for op in main.body.ops] == ["mul", "add", "func.return"]
    assert multiply.full_name == "weft.mul" and multiply.operands == [x, y]
    assert add.operands[0].producer == multiply and add.operands == [multiply.result, y]
    assert main.returns == [add.result] == end.operands
    assert x.producer is None and y.index == 1 and multiply.result.index == 0
    assert y.users == [multiply, add] and y.uses == [(multiply, 1), (add, 1)]
    assert str(add.result.type) == "tensor<3x4xf32>"
    assert (add.result.type.shape, add.result.type.dtype) == ((3, 4), "f32")
    assert main.result_types == [ir.tensor(3, 4)] and add.parent == main and add.block == main.body
    assert multiply.location == ir.Location("text", 3)
    assert len({x, y, main.params[0], multiply.operands[0]}) == 2
    assert repr(add) == "<weft.ir.Operation %1 = weft.add %0, %arg1 : tensor<3x4xf32>>"
    assert repr(x) == "<weft.ir.Value %arg0: tensor<3x4xf32>>"


def test_attributes_are_python_values():
    module = ir.Module.parse("""
      func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2xf32>, tensor<2xi1>) {
        %c = weft.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
        %t = weft.constant dense<[true, false]> : tensor<2xi1>
        %0 = weft.transpose %c perm [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
        %1 = weft.reduce <sum> %x dims [1] : tensor<2x3xf32> -> tensor<2xf32>
        return %0, %1, %t : tensor<3x2xf32>, tensor<2xf32>, tensor<2xi1>
      }""")
    constant, truth, transpose, reduce, _ = module["main"].body
    np.testing.assert_array_equal(constant.attributes["value"], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(truth.attributes["value"], [True, False])
    assert transpose.attributes == {"perm": [1, 0]}
    assert reduce.attributes == {"dims": [1], "kind": "sum"}


def parseable() -> list[str]:
    """The modules of the dialect's lit tests that are whole and right."""
    found = []
    for path in sorted(GRAPH_TESTS.glob("*.mlir")):
        if path.name.startswith("invalid"):
            continue
        found += [f"{path.name}:{number}" for number in range(len(parts(path)))]
    return found


def parts(path: Path) -> list[str]:
    return re.split(r"^// -----$", path.read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", parseable())
def test_printing_and_parsing_is_a_fixpoint(case):
    name, number = case.split(":")
    try:
        module = ir.Module.parse(parts(GRAPH_TESTS / name)[int(number)])
    except ir.ParseError as error:
        assert "expected-error" in parts(GRAPH_TESTS / name)[int(number)], error
        return
    assert str(ir.Module.parse(str(module))) == str(module)
    located = module.text(locations=True)
    assert ir.Module.parse(located).text(locations=True) == located


@pytest.fixture(scope="module")
def block():
    torch.manual_seed(0)
    model = Block().eval()
    return model, ir.of(model, torch.zeros(5), torch.randn(2, 3, 6, 6))


def test_a_models_parameters_come_behind_its_inputs(block):
    model, module = block
    names = [value.name for value in module["main"].params]
    held = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    assert names == ["unused", "x", *held]
    shapes = [value.shape for value in module["main"].params]
    tensors = [*model.parameters(), *model.buffers()]
    assert shapes == [(5,), (2, 3, 6, 6), *(tuple(tensor.shape) for tensor in tensors)]
    kinds = [module["main"].param_attributes(n)["weft.kind"] for n in range(len(names))]
    weights = len(list(model.parameters()))
    assert kinds == ["input"] * 2 + ["weight"] * weights + ["buffer"] * (len(names) - weights - 2)


def test_tied_weights_are_one_parameter_and_literals_none():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 4)
            self.head = torch.nn.Linear(4, 10, bias=False)
            self.head.weight = self.table.weight
            self.offsets = torch.arange(20.0).reshape(5, 4)

        def forward(self, ids, *, scale):
            return self.head(self.table(ids) * scale + self.offsets[: len(ids)])

    model, ids, scale = Tied(), torch.tensor([1, 2, 3]), torch.tensor(2.0)
    module = ir.of(model, ids, scale=scale)
    assert [value.name for value in module["main"].params] == ["ids", "scale", "table.weight"]
    torch.testing.assert_close(
        ir.run(module, "graph", ids, scale), model(ids, scale=scale).detach()
    )


def test_ops_of_a_model_know_their_lines(block):
    _, module = block
    softmax = next(op for op in module["main"].body if op.name == "softmax")
    assert softmax.location.file == __file__ and softmax.location.function == "forward"
    line = Path(__file__).read_text("utf-8").splitlines()[softmax.location.line - 1]
    assert "torch.softmax" in line


def test_every_stage_prints_and_parses(block):
    _, module = block
    for stage in ir.STAGES:
        lowered = module.lower(stage)
        assert lowered.stage == stage
        assert str(ir.Module.parse(str(lowered), stage=stage)) == str(lowered)
    assert "func.func @main" in str(module), "lowering made a new module"
    assert ".text" in module.assembly()


def test_modules_are_equal_by_structure():
    module = ir.Module.parse(MULTIPLY_ADD)
    assert module == ir.Module.parse(MULTIPLY_ADD) == module.clone()
    assert module != ir.Module.parse(MULTIPLY_ADD.replace("weft.mul", "weft.sub"))


def test_large_constants_are_shown_apart(capsys):
    values = np.arange(12, dtype=np.float32)
    with_constant = ir.Builder()
    with with_constant.function("main", x=ir.tensor(12)) as (x,):
        with_constant.returns(ir.ops.add(x, values))
    module = with_constant.module
    module.show()
    text = capsys.readouterr().out
    assert "metadata[0]" in text and "show(constants=True)" in text and "11." not in text
    module.show(constants=True)
    assert "11." in capsys.readouterr().out
    assert "11." not in module._repr_html_() and "<pre>" in module._repr_html_()


def test_text_that_does_not_parse_says_where():
    with pytest.raises(ir.ParseError, match="line 2, column 8") as raised:
        ir.Module.parse("func.func @main() {\n  %0 = weft.wrong\n}")
    assert (raised.value.line, raised.value.column) == (2, 8)
    with pytest.raises(ir.ParseError):
        ir.Module.parse(MULTIPLY_ADD.replace("-> tensor<3x4xf32>", "-> tensor<3x5xf32>"))
    with pytest.raises(OSError):
        ir.Module.load("/nowhere.mlir")


def test_what_is_unknown_is_refused():
    module = ir.Module.parse(MULTIPLY_ADD)
    with pytest.raises(KeyError, match="main"):
        module["other"]
    with pytest.raises(ir.IRError, match="graph, optimized"):
        module.lower("bogus")
    with pytest.raises(ir.IRError, match="not before"):
        module.lower("kernels").lower("graph")
    with pytest.raises(weft.errors.NotCompiledError):
        ir.of(lambda x: x.sparse_mask, torch.ones(2).to_sparse())


RUNNING_SUM = """\
module {
  func.func @main(%arg0: tensor<9x4xf32>, %arg1: tensor<4xf32>) -> tensor<9x4xf32> attributes {weft.entry = #weft.entry<main>} {
    %0:2 = weft.scan 9 carry(%arg2 = %arg1 : tensor<4xf32>) over(%arg3 = %arg0 : tensor<9x4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
      %1 = weft.add %arg2, %arg3 : tensor<4xf32>
      weft.yield %1, %1 : tensor<4xf32>, tensor<4xf32>
    }
    return %0#1 : tensor<9x4xf32>
  }
}"""  # noqa: E501


def test_the_body_of_a_scan_is_read():
    module = ir.Module.parse(RUNNING_SUM)
    assert str(module) == RUNNING_SUM
    names = [op.name for op in module.walk()]
    assert {"scan", "add", "yield"} <= set(names)
    (scan,) = [op for op in module.walk() if op.name == "scan"]
    assert scan.attributes["length"] == 9 and scan.attributes["reverse"] is False
    xs, start = torch.randn(9, 4), torch.randn(4)
    expected = xs.cumsum(0) + start
    torch.testing.assert_close(ir.run(module, "graph", xs, start), expected)
    module.run_passes("weft-outline-scans")
    assert "weft.loop @step 9" in str(module)
    torch.testing.assert_close(ir.run(module, "graph", xs, start), expected)
