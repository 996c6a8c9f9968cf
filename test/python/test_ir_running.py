# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: modules that are run at any stage, compared, and compiled by users' passes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import weft
from weft import ir
from weft.ir import ops
from weft.ir.interpreting import interpret

fma = ir.pattern(lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c))


@ir.module_pass(name="use-fma", level=2)
def use_fma(module):
    fma.apply(module, remove_unused=True)


@ir.module_pass(name="add-to-sub")
def add_to_sub(module):
    ir.pattern(lambda a, b: ops.add(a, b), lambda a, b: ops.sub(a, b)).apply(module)


@ir.function
def main(x: ir.tensor(3, 4), y: ir.tensor(3, 4)):
    return ops.add(ops.mul(x, y), y)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 16, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(16)
        self.head = torch.nn.Linear(16 * 64, 10)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.norm(self.conv(x)))
        return torch.softmax(self.head(x.flatten(1)), -1)


@pytest.fixture(scope="module")
def captured():
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 8, 8, 8)
    with torch.no_grad():
        return model, x, model(x), ir.of(model, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", ir.STAGES)
def test_every_stage_runs(captured, stage):
    _, x, expected, module = captured
    torch.testing.assert_close(ir.run(module, stage, x), expected)
    lowered = module.lower(stage)
    torch.testing.assert_close(ir.run(lowered, stage, x), expected)
    again = ir.Module.parse(lowered.text(), stage=stage)
    torch.testing.assert_close(ir.run(again, stage, x, *module.tensors), expected)


@pytest.mark.parametrize("stage", ["graph", "kernels"])
def test_what_is_given_comes_back(stage):
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4), np.float32)
    result = ir.run(main.module, stage, x, y)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, x * y + y, rtol=1e-6)
    as_tensor = ir.run(main.module, stage, torch.from_numpy(x), torch.from_numpy(y))
    assert isinstance(as_tensor, torch.Tensor)

    @ir.function(name="main")
    def two(x: ir.tensor(3, 4)):
        return -x, ops.abs(x)

    results = ir.run(two.module, stage, x)
    assert isinstance(results, tuple) and len(results) == 2
    np.testing.assert_array_equal(results[1], abs(x))
    with pytest.raises(ir.IRError, match="expected 2 inputs"):
        ir.run(main.module, stage, x)
    with pytest.raises((ir.IRError, weft.errors.ArgumentError), match="x.*expected"):
        ir.run(main.module, stage, x.T, y)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "f16", "i32", "u8", "bool"])
def test_fma_is_the_same_interpreted_and_compiled(dtype):
    type_ = ir.tensor(37, dtype=dtype)

    @ir.function(name="main")
    def program(x: type_, y: type_, z: type_):
        return ops.fma(x, y, z)

    torch.manual_seed(0)
    if type_.torch_dtype.is_floating_point:
        tensors = [torch.randn(37).to(type_.torch_dtype) for _ in range(3)]
    else:
        tensors = [torch.randint(0, 2, (37,)).to(type_.torch_dtype) for _ in range(3)]
    interpreted = ir.run(program.module, "graph", *tensors)
    torch.testing.assert_close(ir.run(program.module, "llvm", *tensors), interpreted)


def test_fma_rounds_once():
    @ir.function(name="main")
    def program(x: ir.tensor(1), y: ir.tensor(1), z: ir.tensor(1)):
        return ops.fma(x, y, z)

    x = torch.tensor([1 + 2**-12])
    z = -(x * x)
    exact = torch.tensor([2.0**-24])
    for stage in ("graph", "kernels"):
        assert ir.run(program.module, stage, x, x, z) == exact != x * x + z


def test_calls_of_functions_are_run():
    @ir.function
    def double(x: ir.tensor(4)):
        return x + x

    @ir.function(name="main")
    def program(x: ir.tensor(4)):
        return double(double(x))

    for stage in ("graph", "optimized", "llvm"):
        assert ir.run(program.module, stage, torch.ones(4)).tolist() == [4.0] * 4
    assert [function.name for function in program.module.lower("optimized")] == ["main"]


def test_a_diff_shows_what_changed_and_nothing_else():
    module = main.module
    before = module.clone()
    assert ir.diff(before, module) == ""
    fma.apply(module)
    assert ir.diff(before, module, context=0).splitlines()[2:] == [
        "@@ -4 +4 @@",
        "-    %1 = weft.add %0, %arg1 : tensor<3x4xf32>",
        "+    %1 = weft.fma %arg0, %arg1, %arg1 : tensor<3x4xf32>",
    ]
    before, added = str(module), ir.Rewriter(module)
    with added.after(module["main"].body[0]):
        ops.neg(module["main"].params[0])
    assert [line for line in ir.diff(before, module).splitlines()[2:] if line[0] in "+-"] == [
        "+    %new0 = weft.neg %arg0 : tensor<3x4xf32>"
    ]
    swapped = before.replace("weft.mul %arg0, %arg1", "weft.mul %arg1, %arg0")
    assert "+    %0 = weft.mul %arg1, %arg0" in ir.diff(before, swapped)


def test_bisect_finds_nothing_where_nothing_differs(captured):
    model, x, _, _ = captured
    assert ir.bisect(model, x) is None
    assert ir.bisect(model, x, passes=[use_fma, "canonicalize"]) is None


def test_bisect_finds_the_pass_and_the_op(captured):
    model, x, _, _ = captured
    found = ir.bisect(model, x, tolerance=1e-4, passes=["cse", add_to_sub, "canonicalize"])
    assert (found.pass_name, found.op.name) == ("add-to-sub", "sub")
    assert found.op.location.file == __file__
    assert found.error > 1e-4 and found.expected.shape == found.found.shape == (2, 10)
    assert "weft.sub" in found.diff and "add-to-sub at sub" in str(found)


def test_users_passes_take_part_in_compiling():
    def program(x, y):
        return x * y + y

    x, y = torch.randn(64), torch.randn(64)
    with torch.no_grad():
        plain = weft.compile(program)
        plain(x, y)
        compiled = weft.compile(program, passes=[use_fma])
        torch.testing.assert_close(compiled(x, y), program(x, y))
        torch.testing.assert_close(compiled(x, y), program(x, y))
    assert compiled.stats()["graphs"] == 1, compiled.stats()
    assert "weft.fma" in compiled.ir("graph") and "weft.add" not in compiled.ir("graph")
    assert "weft.fma" not in weft.ir(plain)
    assert "weft.fma" in weft.ir(compiled, "kernels")
    assert compiled.artifact_path != plain.artifact_path


def test_users_passes_are_part_of_the_cache_key():
    def program(x, y):
        return x * y + y

    def artifact(*passes):
        with torch.no_grad():
            compiled = weft.compile(program, passes=passes)
            compiled(torch.ones(8), torch.ones(8))
        return compiled.artifact_path

    @ir.module_pass(name="use-fma", level=2)
    def other(module):
        return fma.apply(module) * 0

    assert artifact(use_fma) == artifact(use_fma)
    assert len({artifact(), artifact(use_fma), artifact(other), artifact("cse")}) == 4


def test_a_wrong_pass_costs_speed_and_is_named(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")

    def program(x, y):
        return x * y + y

    @ir.module_pass
    def fail(module):
        raise ValueError("not today")

    x, y = torch.randn(8), torch.randn(8)
    for bad, text in ((fail, "not today"), (add_to_sub, "does not reproduce")):
        compiled = weft.compile(program, passes=[bad], capture="export")
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.testing.assert_close(compiled(x, y), program(x, y))
            torch.testing.assert_close(compiled(x, y), program(x, y))
        assert any(text in str(each.message) for each in caught) or any(
            text in reason for reason in compiled.stats()["breaks"]
        )
    assert (
        ir.bisect(weft.compile(program, passes=[add_to_sub], capture="export"), x, y).pass_name
        == "add-to-sub"
    )
    with pytest.raises(TypeError, match="expected a weft.ir.module_pass"):
        weft.compile(program, passes=[print], capture="export")


def test_bisect_finds_a_pass_that_slows_the_program(monkeypatch):
    from weft.ir import slowness

    @ir.module_pass
    def twice_negated(module):
        rewriter = ir.Rewriter(module)
        for op in rewriter.walk("exp"):
            with rewriter.before(op):
                turned = op.operands[0]
                for _ in range(8):
                    turned = ops.transpose(turned, [1, 0]) @ EYE
                rewriter.replace(op, ops.exp(turned))

    EYE = torch.eye(33)

    def kernels(*programs):
        return [len(program.manifest["entries"]["main"]["calls"]) for program, _ in programs]

    monkeypatch.setattr(slowness, "measure", kernels)
    x = torch.randn(33, 33)
    assert ir.bisect(lambda x: x.exp(), x, passes=[twice_negated]) is None
    found = ir.bisect(lambda x: x.exp(), x, passes=[twice_negated], slowdown=2)
    assert isinstance(found, ir.Slowdown) and found.pass_name == "twice-negated"
    assert found.before == 1 and found.after > 2  # the repeated products are one loop
    assert "dot_general" in found.diff and "twice-negated: " in str(found)
    monkeypatch.undo()
    assert ir.bisect(lambda x: x.exp(), x, slowdown=1e6) is None


NESTED = """\
func.func @main(%xs: tensor<5x3x4xf32>, %h: tensor<4xf32>, %w: tensor<4x4xf32>)
    -> (tensor<4xf32>, tensor<5x3x4xf32>, tensor<4xf32>)
    attributes {weft.entry = #weft.entry<main>} {
  %0:3 = weft.scan 5 reverse carry(%a = %h : tensor<4xf32>, %d = %h : tensor<4xf32>)
      over(%x = %xs : tensor<5x3x4xf32>) with(%v = %w : tensor<4x4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<5x3x4xf32>) {
    %1:2 = weft.scan 3 carry(%b = %a : tensor<4xf32>) over(%y = %x : tensor<3x4xf32>)
        with(%u = %v : tensor<4x4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) {
      %2 = weft.dot_general %b, %u batch [] x [] contract [0] x [1]
        : tensor<4xf32>, tensor<4x4xf32> -> tensor<4xf32>
      %3 = weft.add %2, %y : tensor<4xf32>
      %4 = weft.tanh %3 : tensor<4xf32>
      weft.yield %4, %4 : tensor<4xf32>, tensor<4xf32>
    }
    %5 = weft.add %1#0, %d : tensor<4xf32>
    weft.yield %5, %a, %1#1 : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>
  }
  return %0#0, %0#2, %0#1 : tensor<4xf32>, tensor<5x3x4xf32>, tensor<4xf32>
}"""


def test_scans_within_scans():
    """A state of the outer one is that of the step before."""
    module = ir.Module.parse(NESTED)
    inputs = torch.randn(5, 3, 4), torch.randn(4), torch.randn(4, 4) / 3
    expected = ir.run(module, "graph", *inputs)
    for stage in ("optimized", "loops", "llvm"):
        for found, want in zip(ir.run(module, stage, *inputs), expected, strict=True):
            torch.testing.assert_close(found, want)


SMOOTHED = """\
func.func @main(%xs: tensor<19x4xf32>, %h: tensor<4xf32>, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<19x4xf32>, tensor<19x4xf32>)
    attributes {weft.entry = #weft.entry<main>} {
  %0:3 = weft.scan 19 ORDER carry(%a = %h : tensor<4xf32>) over(%x = %xs : tensor<19x4xf32>)
      with(%v = %w : tensor<4xf32>) -> (tensor<4xf32>, tensor<19x4xf32>, tensor<19x4xf32>) {
    %1 = weft.mul %a, %v : tensor<4xf32>
    %2 = weft.add %1, %x : tensor<4xf32>
    %3 = weft.tanh %2 : tensor<4xf32>
    weft.yield %3, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<19x4xf32>, tensor<19x4xf32>
}"""


@pytest.mark.parametrize("order", ["", "reverse"])
def test_loops_of_several_steps_an_iteration(order):
    """With steps that are left at the end."""
    module = ir.Module.parse(SMOOTHED.replace("ORDER ", f"{order} "))
    inputs = torch.randn(19, 4), torch.randn(4), torch.randn(4)
    expected = ir.run(module, "graph", *inputs)
    optimized = module.lower("optimized")
    loops = [op for function in optimized for op in function.body if op.full_name == "weft.loop"]
    assert [op.attributes["factor"] for op in loops] == [8] and loops[0].attributes["rest"]
    for found, want in zip(interpret(optimized, inputs), expected, strict=True):
        torch.testing.assert_close(found, want)
