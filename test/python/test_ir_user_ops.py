# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that a user adds in Python."""

from __future__ import annotations

import pytest
import torch

import weft
from weft import errors, ir
from weft.ir import loops, ops


@ir.op
def swish(x, *, beta=1.0):
    """x times the sigmoid of beta times x."""
    return x * ops.sigmoid(x * beta)


@ir.op(loops=True)
def differences(x, *, step=1):
    return loops.compute((x.shape[0] - step,), lambda i: x[i + step] - x[i])


@ir.function(name="main")
def main(x: ir.tensor(8), y: ir.tensor(3, 4)):
    return swish(swish(x)), swish(y), swish(x, beta=2.0), differences(x)


TEXT = """\
module {
  func.func @main(%arg0: tensor<8xf32> {weft.name = "x"}, %arg1: tensor<3x4xf32> {weft.name = "y"}) -> (tensor<8xf32>, tensor<3x4xf32>, tensor<8xf32>, tensor<7xf32>) {
    %0 = call @swish(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @swish(%0) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = call @swish1(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %3 = call @swish2(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %4 = call @differences(%arg0) : (tensor<8xf32>) -> tensor<7xf32>
    return %1, %2, %3, %4 : tensor<8xf32>, tensor<3x4xf32>, tensor<8xf32>, tensor<7xf32>
  }
  func.func private @swish(%arg0: tensor<8xf32> {weft.name = "arg0"}) -> tensor<8xf32> attributes {weft.primitive} {
    %0 = weft.constant dense<1.000000e+00> : tensor<8xf32>
    %1 = weft.mul %arg0, %0 : tensor<8xf32>
    %2 = weft.sigmoid %1 : tensor<8xf32>
    %3 = weft.mul %arg0, %2 : tensor<8xf32>
    return %3 : tensor<8xf32>
  }
"""  # noqa: E501  the module's own text


def test_they_are_functions_of_each_type():
    module = main.module
    assert TEXT in str(module)
    assert [function.name for function in module] == [
        *("main", "swish", "swish1", "swish2", "differences")
    ]
    assert module["swish"].is_primitive and module["differences"].is_loops
    assert module["differences"].loops().count("reads ") == 1
    assert ir.Module.parse(str(module)) == module
    assert swish.__doc__.startswith("x times") and repr(swish) == "<weft.ir.op swish>"


@pytest.mark.parametrize("stage", ["graph", "optimized", "kernels", "linalg"])
def test_they_run_at_every_stage(stage):
    x, y = torch.randn(8), torch.randn(3, 4)
    twice = torch.nn.functional.silu(torch.nn.functional.silu(x))
    expected = (twice, torch.nn.functional.silu(y), x * torch.sigmoid(2 * x), x.diff())
    for found, wanted in zip(ir.run(main.module, stage, x, y), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_pass_puts_them_into_programs():
    use_swish = ir.pattern(lambda x: ops.silu(x), lambda x: swish(x), name="use-swish")

    @ir.module_pass
    def swap(module):
        assert use_swish.apply(module) == 1

    compiled = weft.compile(torch.nn.SiLU(), passes=[swap], fullgraph=True)
    x = torch.randn(99)
    with torch.no_grad():
        compiled(x)
        torch.testing.assert_close(compiled(x), torch.nn.functional.silu(x))
    assert "@swish" in weft.ir(compiled, "kernels")


def test_what_a_failed_change_made_is_made_anew():
    module = main.module
    with pytest.raises(ZeroDivisionError):
        module.attempt(_swish_then_fail)
    assert "swish3" not in module
    rewriter = ir.Rewriter(module)
    with rewriter.before(module["main"].body[-1]):
        swish(module["main"].params[0], beta=3.0)
    assert "swish3" in module


def _swish_then_fail(module):
    rewriter = ir.Rewriter(module)
    with rewriter.before(module["main"].body[-1]):
        swish(module["main"].params[0], beta=3.0)
    raise ZeroDivisionError


def test_what_makes_no_sense():
    with pytest.raises(errors.IRError, match="expected a place for the op"):
        swish(torch.ones(3))

    @ir.function(name="main")
    def wrong(x: ir.tensor(3)):
        return swish("x")

    with pytest.raises(errors.IRError, match="swish: expected a value, found 'x'"):
        _ = wrong.module
