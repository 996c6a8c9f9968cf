# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: the MLP whose matmuls and biases become functions of their own, as a user's pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from examples.by_hand import fuse_matmul_add

from weft import ir
from weft.ir import ops

MNIST = [(128, 784), (10, 128)]

FUSED = """\
module {
  func.func @main(%arg0: tensor<1x784xf32> {weft.name = "x"}, %arg1: tensor<1x128xf32> {weft.name = "b0"}, %arg2: tensor<1x10xf32> {weft.name = "b1"}) -> tensor<1x10xf32> {
    %0 = weft.constant metadata[0] : tensor<128x784xf32>
    %1 = weft.transpose %0 perm [1, 0] : tensor<128x784xf32> -> tensor<784x128xf32>
    %2 = call @fused_matmul_add0(%arg0, %1, %arg1) : (tensor<1x784xf32>, tensor<784x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
    %3 = weft.constant dense<0.000000e+00> : tensor<1x128xf32>
    %4 = weft.max %2, %3 : tensor<1x128xf32>
    %5 = weft.constant metadata[1] : tensor<10x128xf32>
    %6 = weft.transpose %5 perm [1, 0] : tensor<10x128xf32> -> tensor<128x10xf32>
    %7 = call @fused_matmul_add1(%4, %6, %arg2) : (tensor<1x128xf32>, tensor<128x10xf32>, tensor<1x10xf32>) -> tensor<1x10xf32>
    return %7 : tensor<1x10xf32>
  }
  func.func private @fused_matmul_add0(%arg0: tensor<1x784xf32> {weft.name = "arg0"}, %arg1: tensor<784x128xf32> {weft.name = "arg1"}, %arg2: tensor<1x128xf32> {weft.name = "arg2"}) -> tensor<1x128xf32> attributes {weft.primitive} {
    %0 = weft.dot_general %arg0, %arg1 batch [] x [] contract [1] x [0] : tensor<1x784xf32>, tensor<784x128xf32> -> tensor<1x128xf32>
    %1 = weft.add %0, %arg2 : tensor<1x128xf32>
    return %1 : tensor<1x128xf32>
  }
  func.func private @fused_matmul_add1(%arg0: tensor<1x128xf32> {weft.name = "arg0"}, %arg1: tensor<128x10xf32> {weft.name = "arg1"}, %arg2: tensor<1x10xf32> {weft.name = "arg2"}) -> tensor<1x10xf32> attributes {weft.primitive} {
    %0 = weft.dot_general %arg0, %arg1 batch [] x [] contract [1] x [0] : tensor<1x128xf32>, tensor<128x10xf32> -> tensor<1x10xf32>
    %1 = weft.add %0, %arg2 : tensor<1x10xf32>
    return %1 : tensor<1x10xf32>
  }
}
// metadata: 2 constants left out; show(constants=True) has them
"""  # noqa: E501  the module's own text


def mlp() -> ir.Module:
    rng = np.random.default_rng(0)
    w0, w1 = (rng.standard_normal(shape, np.float32) for shape in MNIST)

    @ir.function(name="main")
    def network(x: ir.tensor(1, 784), b0: ir.tensor(1, 128), b1: ir.tensor(1, 10)):
        hidden = ops.add(x @ ops.transpose(w0, [1, 0]), b0)
        hidden = ops.max(hidden, np.zeros((1, 128), np.float32))
        return ops.add(hidden @ ops.transpose(w1, [1, 0]), b1)

    return network.module


def test_each_matmul_and_bias_becomes_a_function(capsys):
    module = mlp()
    fuse_matmul_add(module)
    module.show()
    assert capsys.readouterr().out == FUSED
    assert [function.name for function in module] == [
        *("main", "fused_matmul_add0", "fused_matmul_add1")
    ]
    assert all(function.is_primitive for function in module.functions[1:])
    before = str(module)
    fuse_matmul_add(module)
    assert str(module) == before, "functions that are primitive are skipped"


@pytest.mark.parametrize("stage", ["graph", "optimized", "kernels"])
def test_the_outlined_program_computes_the_same(stage):
    torch.manual_seed(0)
    inputs = [torch.randn(1, 784), torch.randn(1, 128), torch.randn(1, 10)]
    module = mlp()
    expected = ir.run(module, "graph", *inputs)
    fuse_matmul_add(module)
    torch.testing.assert_close(ir.run(module, stage, *inputs), expected, rtol=1e-4, atol=1e-3)


def test_a_product_that_two_read_is_left_alone():
    @ir.function(name="main")
    def shared(x: ir.tensor(4, 4), w: ir.tensor(4, 4), a: ir.tensor(4, 4), b: ir.tensor(4, 4)):
        product = x @ w
        return ops.add(product, a), ops.add(product, b)

    module = shared.module
    fuse_matmul_add(module)
    assert len(module) == 1
