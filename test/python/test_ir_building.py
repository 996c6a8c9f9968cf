# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: modules made by hand, from the functions of the dialect's definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from weft import ir
from weft.ir import ops

MULTIPLY_ADD = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = weft.mul %x, %y : tensor<3x4xf32>
  %1 = weft.add %0, %y : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}"""


def test_a_decorated_function_is_what_its_text_is():
    @ir.function
    def main(x: ir.tensor(3, 4), y: ir.tensor(3, 4)):
        return ops.add(ops.mul(x, y), y)

    assert main.module == ir.Module.parse(MULTIPLY_ADD)
    assert [value.name for value in main.module["main"].params] == ["x", "y"]
    multiply = main.module["main"].body[0]
    assert multiply.location.file == __file__ and multiply.location.function == "main"


def test_a_builder_makes_the_same():
    builder = ir.Builder()
    with builder.function("main", x=ir.tensor(3, 4), y=ir.tensor(3, 4)) as (x, y):
        builder.returns(builder.emit("add", builder.emit("mul", x, y), y))
    assert builder.module == ir.Module.parse(MULTIPLY_ADD)


def test_operators_emit_ops():
    @ir.function
    def main(x: ir.tensor(2, 3), w: ir.tensor(3, 4)):
        return -(x @ w) * 2.0 + 1

    assert [op.name for op in main.module["main"].body] == [
        *("dot_general", "neg", "constant", "mul", "constant", "add", "func.return")
    ]
    assert main.module["main"].result_types == [ir.tensor(2, 4)]


@ir.function
def double(x: ir.tensor(4)):
    return x + x


def test_functions_call_each_other():
    @ir.function
    def main(x: ir.tensor(4)):
        return double(double(x))

    module = main.module
    assert [function.name for function in module] == ["main", "double"]
    calls = module["double"].callers
    assert [call.attributes["callee"] for call in calls] == ["double"] * 2
    assert calls[1].operands == calls[0].results


def test_types_are_inferred():
    """The MLP: types on every value, though none is written."""
    w0, w1 = np.ones((128, 784), np.float32), np.ones((10, 128), np.float32)

    @ir.function
    def main(x: ir.tensor(1, 784), b0: ir.tensor(1, 128), b1: ir.tensor(1, 10)):
        hidden = ops.add(x @ ops.transpose(w0, [1, 0]), b0)
        hidden = ops.max(hidden, ops.constant(np.zeros((1, 128), np.float32)))
        return ops.add(hidden @ ops.transpose(w1, [1, 0]), b1)

    types = [str(op.result.type) for op in main.module["main"].body if op.results]
    assert types == [
        *("tensor<128x784xf32>", "tensor<784x128xf32>", "tensor<1x128xf32>", "tensor<1x128xf32>"),
        *("tensor<1x128xf32>", "tensor<1x128xf32>", "tensor<10x128xf32>", "tensor<128x10xf32>"),
        *("tensor<1x10xf32>", "tensor<1x10xf32>"),
    ]


def test_ops_with_several_results_attributes_and_operands():
    @ir.function
    def main(x: ir.tensor(4, 8), w: ir.tensor(8)):
        values, places = ops.sort(x, 1, True, 3)
        normal = ops.layer_norm(x, 1, 1e-5, bias=w)
        parts = ops.concat([values, ops.reshape(ops.slice(x, [0, 0], [1, 8], [1, 1]), (4, 2))], 1)
        return ops.reduce("max", normal, [1]), ops.cmp("lt", x, x), parts, places

    body = main.module["main"].body
    assert body[1].attributes["operandSegmentSizes"] == [1, 0, 1]
    assert [str(each) for each in main.module["main"].result_types] == [
        *("tensor<4xf32>", "tensor<4x8xi1>", "tensor<4x5xf32>", "tensor<4x3xi64>")
    ]


def test_docstrings_are_the_dialects():
    assert "sum over k... of lhs[b, m, k] * rhs[b, n, k]" in ops.dot_general.__doc__
    assert "dot_general_c5: the contracted dims pair up" in ops.dot_general.__doc__
    assert ops.fma.__doc__.startswith("x * y + z with one rounding")


def test_wrong_operands_name_the_constraint():
    builder = ir.Builder()
    with pytest.raises(ir.VerificationError, match="add_c1: operands and result have one type"):
        with builder.function("main", x=ir.tensor(3, 4), y=ir.tensor(4)) as (x, y):
            builder.returns(ops.add(x, y))
    assert len(builder.module) == 0, "a function that failed is gone"
    with pytest.raises(ir.VerificationError, match="dot_general_c5.*contracted dims"):
        with builder.function("main", x=ir.tensor(3, 4), y=ir.tensor(5, 6)) as (x, y):
            builder.returns(x @ y)
    with pytest.raises(ir.VerificationError, match=f"{__file__}:"):
        with builder.function("main", x=ir.tensor(3, 4)) as (x,):
            builder.returns(ops.transpose(x, [0, 0]))


def test_what_makes_no_sense_is_refused():
    builder = ir.Builder()
    with builder.function("main", x=ir.tensor(3)) as (x,):
        with pytest.raises(ir.IRError, match="sum, prod, max"):
            ops.reduce("average", x, [0])
        with pytest.raises(ir.IRError, match="perm"):
            ops.transpose(x, "no")
        with pytest.raises(ir.IRError, match="expected a value as operand"):
            ops.add(x, "y")
        with pytest.raises(ir.IRError, match='expected "types"|unknown op'):
            builder.emit("bogus", x)
        builder.returns(x)
    with pytest.raises(ir.IRError, match="taken"):
        with builder.function("main", x=ir.tensor(3)) as (x,):
            builder.returns(x)
    with pytest.raises(ir.IRError, match="expected a place"):
        ops.neg(builder.module["main"].params[0])
    with pytest.raises(ir.IRError, match="return something"):
        with builder.function("other", x=ir.tensor(3)):
            pass
    with pytest.raises(ir.IRError, match="same module"):
        with ir.Builder().function("main", x=ir.tensor(3)):
            ops.neg(builder.module["main"].params[0])
    with pytest.raises(ir.IRError, match="type such as"):

        @ir.function
        def untyped(x):
            return x

    with pytest.raises(ir.IRError, match="dtype"):
        ir.tensor(3, dtype="f23")
    assert [function.name for function in builder.module] == ["main"]


def test_bound_parameters_are_constants():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    module = ir.of(model, torch.zeros(3, 4))
    assert ir.bind_parameters(module, list(model.parameters())) == 2
    assert [value.name for value in module["main"].params] == ["input"]
    constant = next(op for op in module["main"].body if op.name == "constant")
    np.testing.assert_array_equal(constant.attributes["value"], model.weight.detach())
    module.verify()
    with pytest.raises(ir.IRError, match="expected a parameter among"):
        ir.bind_parameters(module, {"weight": model.weight})
    with pytest.raises(ir.IRError, match="tensor<3x4xf32>, found tensor<2xf32>"):
        ir.bind_parameters(module, {"input": model.bias})


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "f16", "i64", "i32", "i8", "u8", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 2)])
def test_constants_of_every_type_come_back(dtype, shape):
    type_ = ir.tensor(*shape, dtype=dtype)
    tensor = torch.randint(0, 2, shape).to(type_.torch_dtype)
    builder = ir.Builder()
    with builder.function("main") as ():
        builder.returns(ops.constant(tensor))
    op = ir.Module.parse(str(builder.module))["main"].body[0]
    assert op.result.type == type_
    np.testing.assert_array_equal(op.attributes["value"], tensor.float().numpy())
