# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: passes in Python, and pipelines that mix them with the compiler's."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft import ir
from weft.ir import ops

fma = ir.pattern(lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c))


@ir.module_pass(name="use-fma", level=2)
def use_fma(module):
    return fma.apply(module)


@ir.function
def main(x: ir.tensor(3, 4), y: ir.tensor(3, 4)):
    return ops.add(ops.mul(x, y), y)


def names(module: ir.Module) -> list[str]:
    return [op.name for op in module["main"].body]


def test_a_pass_is_called_on_a_module():
    module = main.module
    assert (use_fma.name, use_fma.level) == ("use-fma", 2)
    assert use_fma(module) == 1 and names(module) == ["mul", "fma", "func.return"]


def test_pipelines_mix_passes():
    module = main.module
    pipeline = ir.Pipeline([use_fma, "canonicalize", "cse"])
    assert pipeline(module) is module and names(module) == ["fma", "func.return"]
    assert [name for name, _ in pipeline.seconds] == ["use-fma", "canonicalize", "cse"]
    assert all(seconds >= 0 for _, seconds in pipeline.seconds)
    names_of_functions = ["weft-simplify,cse", "func.func(weft-merge-matmuls)"]
    assert names(ir.Pipeline(names_of_functions)(main.module)) == ["mul", "add", "func.return"]
    low = main.module
    assert names(ir.Pipeline([use_fma], level=1)(low)) == ["mul", "add", "func.return"]


def test_a_pass_that_breaks_the_verifier_is_undone():
    @ir.module_pass
    def swap_shapes(module):
        rewriter = ir.Rewriter(module)
        multiply, add, _ = module["main"].body
        with rewriter.before(add):
            turned = ops.transpose(multiply.result, [1, 0])
        rewriter.set_operand(add, 0, turned)

    module = main.module
    before, multiply = str(module), module["main"].body[0]
    with pytest.raises(ir.PassError, match="pass 'swap-shapes'.*weft.add.*same type") as raised:
        swap_shapes(module)
    assert raised.value.pass_name == "swap-shapes"
    assert str(module) == before and multiply.name == "mul", "handles are as they were"
    assert ir.Module.load(raised.value.path) == module
    Path(raised.value.path).unlink()


def test_a_pass_that_raises_is_undone():
    made = []

    @ir.module_pass
    def fail(module):
        fma.apply(module)
        made.append(module["main"].body[1])
        raise ValueError("of the pass")

    module = main.module
    before, add = str(module), module["main"].body[1]
    with pytest.raises(ValueError, match="of the pass") as raised:
        fail(module)
    assert any(entry.name == "fail" for entry in raised.traceback)
    assert str(module) == before and add.name == "add"
    assert use_fma(module) == 1, "the session goes on"


def test_a_pass_of_the_compilers_that_fails_is_undone():
    module = ir.Module.parse("""
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }""")
    before, call = str(module), module["main"].body[0]
    with pytest.raises(weft.errors.CompileError, match="do not call themselves, found 'main'"):
        module.run_passes("weft-inline-calls")
    assert str(module) == before and call.attributes["callee"] == "main"


def test_what_is_no_pass_is_refused():
    with pytest.raises(ir.IRError, match="level from 0 to 3"):
        ir.module_pass(level=4)
    with pytest.raises(TypeError, match="expected a weft.ir.module_pass"):
        ir.Pipeline([3])
    module = main.module
    with pytest.raises(ir.IRError, match="bogus"):
        ir.Pipeline(["bogus"])(module)
    assert names(module) == ["mul", "add", "func.return"]


def test_a_pass_goes_by_its_code():
    def made(number):
        @ir.module_pass(name="same")
        def change(module):
            return number

        return change

    assert made(1).fingerprint() == made(1).fingerprint() != made(2).fingerprint()
    other = ir.module_pass(lambda module: 1, name="same")
    assert other.fingerprint() != made(1).fingerprint()
