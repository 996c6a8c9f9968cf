# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft.ir: bodies of ops written in Python, loop functions, and functions outside the program."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import torch

from weft import errors, ir
from weft.ir import loops, ops


def dot_general(op, x, w):
    k = loops.reduce_axis(x.shape[1])
    return loops.compute((x.shape[0], w.shape[1]), lambda i, j: loops.sum(x[i, k] * w[k, j], k))


def add(op, x, y):
    return loops.compute(x.shape, lambda *at: x[at] + y[at])


def relu(op, x, y):
    return loops.compute(x.shape, lambda *at: loops.max(x[at], y[at]))


def transpose(op, x):
    perm = op.attributes["perm"]
    return loops.compute(op.result.shape, lambda *at: x[tuple(at[perm.index(d)] for d in (0, 1))])


BODIES = {"dot_general": dot_general, "add": add, "max": relu, "transpose": transpose}


@ir.function(name="main")
def network(x: ir.tensor(4, 6), w0: ir.tensor(5, 6), b0: ir.tensor(4, 5), w1: ir.tensor(3, 5)):
    hidden = ops.add(x @ ops.transpose(w0, [1, 0]), b0)
    hidden = ops.max(ops.add(hidden, b0), torch.zeros(4, 5))
    return hidden @ ops.transpose(w1, [1, 0])


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in ((4, 6), (5, 6), (4, 5), (3, 5))]


def expected(x, w0, b0, w1):
    return torch.relu(x @ w0.T + b0 + b0) @ w1.T


def test_ops_become_functions_that_are_numbered():
    module = network.module
    assert ir.lower_ops(module, BODIES) == 7
    assert [function.name for function in module] == [
        *("main", "transpose", "dot_general", "add", "max", "transpose1", "dot_general1")
    ]
    # Both adds are of one shape.
    assert len(module["add"].callers) == 2
    assert all(function.is_loops for function in module.functions[1:])
    assert {op.full_name for op in module["main"].body} == {
        *("func.call", "weft.constant", "func.return")
    }
    assert str(ir.Module.parse(str(module))) == str(module)


@pytest.mark.parametrize(
    "stage", ["graph", "optimized", "kernels", "linalg", "scheduled", "loops", "llvm"]
)
def test_they_run_at_every_stage(stage):
    module = network.module
    ir.lower_ops(module, BODIES)
    given = inputs()
    torch.testing.assert_close(ir.run(module, stage, *given), expected(*given))


def test_lower_takes_bodies_and_leaves_the_module():
    module = network.module
    before = str(module)
    lowered = module.lower("linalg", bodies={"max": relu})
    assert "max" in lowered and str(module) == before


LOOPS = """\
loops @dot_general(x0: f32[4, 6], x1: f32[6, 5]) -> (y0: f32[4, 5])
  no alias: y0 with x0, x1
  for i0 in 0..4 spatial, i1 in 0..5 spatial, i2 in 0..6 reduction [SSR]:
    reads x0[i0, i2], x1[i2, i1]
    writes y0[i0, i1]
    init y0[i0, i1] = 0.0
    y0[i0, i1] = y0[i0, i1] + x0[i0, i2] * x1[i2, i1]"""

FUSED = """\
loops @matmul_add(x0: f32[4, 6], x1: f32[6, 5], x2: f32[4, 5]) -> (y0: f32[4, 5])
  buffer t0: f32[4, 5]
  no alias: y0 with x0, x1
  may reuse: y0 the buffer of x2, t0
  for i0 in 0..4 spatial, i1 in 0..5 spatial, i2 in 0..6 reduction [SSR]:
    reads x0[i0, i2], x1[i2, i1]
    writes t0[i0, i1]
    init t0[i0, i1] = 0.0
    t0[i0, i1] = t0[i0, i1] + x0[i0, i2] * x1[i2, i1]
  for i0 in 0..4 spatial, i1 in 0..5 spatial [SS]:
    reads t0[i0, i1], x2[i0, i1]
    writes y0[i0, i1]
    y0[i0, i1] = t0[i0, i1] + x2[i0, i1]"""


def outlined() -> ir.Module:
    """`main` calls a primitive function, whose result goes through an exponential."""

    @ir.function(private=True)
    def matmul_add(x: ir.tensor(4, 6), w: ir.tensor(6, 5), b: ir.tensor(4, 5)):
        return ops.add(x @ w, b)

    @ir.function(name="main")
    def main(x: ir.tensor(4, 6), w: ir.tensor(6, 5), b: ir.tensor(4, 5)):
        return ops.exp(ops.neg(matmul_add(x, w, b)))

    module = main.module
    ir.Rewriter(module).set_attribute(module["matmul_add"], "weft.primitive")
    return module


def test_loop_functions_are_shown():
    module = network.module
    ir.lower_ops(module, BODIES)
    assert module["dot_general"].loops() == LOOPS
    # So are the kernels of the stage `linalg`.
    text = outlined().lower("linalg")["matmul_add"].loops()
    assert text == FUSED
    with pytest.raises(errors.IRError, match="expected a function of linalg, found main of graph"):
        module["main"].loops()


def test_bodies_of_a_primitive_function_are_fused():
    module = outlined()
    ir.lower_ops(module, BODIES)
    assert [op.full_name for op in module["matmul_add"].body] == [
        *("func.call", "func.call", "func.return")
    ]
    assert ir.fuse_loops(module) == 1
    assert [function.name for function in module] == ["main", "matmul_add"]
    assert module["matmul_add"].loops() == FUSED
    x, w, b = torch.randn(4, 6), torch.randn(6, 5), torch.randn(4, 5)
    for stage in ("graph", "kernels"):
        torch.testing.assert_close(ir.run(module, stage, x, w, b), torch.exp(-(x @ w + b)))


def test_primitive_functions_outlive_the_fusion_of_the_rest():
    module = outlined().lower("kernels")
    assert [function.name for function in module] == ["main", "matmul_add", "elementwise_0"]
    assert module["matmul_add"].is_primitive
    assert [op.name for op in module["elementwise_0"].body][:2] == ["neg", "exp"]
    (remark,) = module.remarks
    assert remark.kind == "missed" and remark.pass_name == "weft-fuse-kernels"
    assert remark.text == (
        "weft.exp is not part of the kernel of weft.add: a primitive function is a unit of its own"
    )
    assert remark.location.file == __file__
    x, w, b = torch.randn(4, 6), torch.randn(6, 5), torch.randn(4, 5)
    torch.testing.assert_close(ir.run(module, "kernels", x, w, b), torch.exp(-(x @ w + b)))


def test_a_product_that_two_read_is_a_remark():
    @ir.function(name="main")
    def shared(x: ir.tensor(4, 4), w: ir.tensor(4, 4), a: ir.tensor(4, 4), b: ir.tensor(4, 4)):
        product = x @ w
        return ops.add(product, a), ops.add(product, b)

    module = shared.module
    dims = [None] * 4
    pattern = ir.pattern(
        lambda x, w, b: ops.add(ops.dot_general(x, w, *dims), b),
        lambda x, w, b: b,
        name="matmul-add",
    )
    assert pattern.apply(module) == 0
    assert [str(remark).rpartition(": missed: ")[2] for remark in module.remarks] == [
        "add is not rewritten: dot_general is read by add too [matmul-add]"
    ]
    # The compiler computes it once, too, and both sums with it.
    assert str(module.lower("kernels")).count("dot_general %") == 1


def test_a_body_with_another_result_is_refused():
    module = network.module
    before = str(module)
    with pytest.raises(errors.VerificationError, match="tensor<4x5xf32>.*tensor<4x5x2xf32>"):
        body = {"max": lambda op, x, y: loops.compute((4, 5, 2), lambda i, j, k: x[i, j])}
        ir.lower_ops(module, body)
    assert str(module) == before
    with pytest.raises(errors.IRError, match=r"expected 2 indices for shape \[4, 5\], found 1"):
        ir.lower_ops(module, {"max": lambda op, x, y: loops.compute((4,), lambda i: x[i])})
    with pytest.raises(errors.IRError, match="expected the axes of the element"):
        other = loops.reduce_axis(3)
        ir.lower_ops(module, {"max": lambda op, x, y: loops.compute((4,), lambda i: x[i, other])})
    assert str(module) == before


def test_bisect_finds_a_wrong_body():
    @ir.module_pass
    def wrong(module):
        ir.lower_ops(
            module, {"mul": lambda op, x, y: loops.compute(x.shape, lambda i: x[i] + y[i])}
        )

    @ir.module_pass
    def right(module):
        ir.lower_ops(
            module, {"exp": lambda op, x: loops.compute(x.shape, lambda i: loops.exp(x[i]))}
        )

    def program(x):
        return (x * x).exp()

    assert ir.bisect(program, torch.randn(7), passes=[right]) is None
    assert ir.bisect(program, torch.randn(7), passes=[right, wrong]).pass_name == "wrong"


def test_reductions_and_arithmetic():
    def softmax(op, x):
        k = loops.reduce_axis(x.shape[1])
        most = loops.compute((x.shape[0],), lambda i: loops.max(x[i, k], k))
        powers = loops.compute(x.shape, lambda i, j: loops.exp(x[i, j] - most[i]))
        total = loops.compute((x.shape[0],), lambda i: loops.sum(powers[i, k], k))
        return loops.compute(x.shape, lambda i, j: powers[i, j] / total[i])

    @ir.function(name="main")
    def main(x: ir.tensor(5, 33)):
        return ops.softmax(x, 1)

    module = main.module
    assert ir.lower_ops(module, {"softmax": softmax}) == 1
    assert module["softmax"].loops().count("  for ") == 4
    x = torch.randn(5, 33)
    torch.testing.assert_close(ir.run(module, "kernels", x), x.softmax(1))


def test_indices_with_offsets_steps_and_sums():
    @ir.op(loops=True)
    def every_other(x):
        return loops.compute((3, 4), lambda i, j: x[2 * i + 1, j] + x[0, j])

    @ir.op(loops=True)
    def correlation(x, w):
        k = loops.reduce_axis(w.shape[0])
        return loops.compute((x.shape[0] - k.size + 1,), lambda i: loops.sum(x[i + k] * w[k], k))

    @ir.function(name="main")
    def main(x: ir.tensor(8, 5), y: ir.tensor(40), w: ir.tensor(7)):
        return every_other(x), correlation(y, w)

    x, y, w = torch.randn(8, 5), torch.randn(40), torch.randn(7)
    found = ir.run(main.module, "kernels", x, y, w)
    torch.testing.assert_close(found[0], x[1:7:2, :4] + x[0, :4])
    torch.testing.assert_close(
        found[1], torch.nn.functional.conv1d(y[None, None], w[None, None])[0, 0]
    )

    @ir.op(loops=True)
    def beyond(x):
        return loops.compute((8,), lambda i: x[i + 1, 0])

    @ir.function(name="main")
    def wrong(x: ir.tensor(8, 5)):
        return beyond(x)

    with pytest.raises(errors.IRError, match="indices of dim 0 from 0 to 7, found 1 to 8"):
        _ = wrong.module


def test_a_program_with_primitive_functions_trains():
    from examples.by_hand import fuse_matmul_add

    import weft

    torch.manual_seed(0)
    model, x = torch.nn.Linear(6, 5), torch.randn(4, 6)
    compiled = weft.compile(model, passes=[fuse_matmul_add])
    for _ in range(2):
        model.zero_grad()
        compiled(x).square().sum().backward()
        found = model.weight.grad.clone()
    model.zero_grad()
    model(x).square().sum().backward()
    torch.testing.assert_close(found, model.weight.grad)
    assert weft.stats(compiled)["graphs"] and not weft.stats(compiled)["breaks"]


class TestFunctionsOutside:
    def test_a_callable_of_the_host(self):
        calls = []

        def larger(x, y):
            calls.append(x.shape)
            return torch.maximum(x, y)

        module = network.module
        assert ir.lower_ops(module, {"max": ir.host(larger)}) == 1
        given = inputs()
        for stage in ("graph", "kernels"):
            torch.testing.assert_close(ir.run(module, stage, *given), expected(*given))
        assert calls == [(4, 5)] * 2

    def test_a_c_function(self, tmp_path):
        source = tmp_path / "larger.c"
        source.write_text(
            "void larger(const float *x, const float *y, float *result) {\n"
            "  for (int i = 0; i < 20; ++i) result[i] = x[i] > y[i] ? x[i] : y[i];\n}\n"
        )
        library = tmp_path / "larger.so"
        subprocess.run(["clang-22", "-shared", "-fPIC", source, "-o", library], check=True)
        module = network.module
        assert ir.lower_ops(module, {"max": ir.external(ctypes.CDLL(library).larger)}) == 1
        given = inputs()
        for stage in ("graph", "kernels"):
            torch.testing.assert_close(ir.run(module, stage, *given), expected(*given))

    def test_it_takes_part_in_compile(self):
        import weft

        @ir.module_pass
        def outside(module):
            ir.lower_ops(module, {"tanh": ir.host(torch.tanh, name="my_tanh")})

        compiled = weft.compile(lambda x: x.tanh() + 1, passes=[outside], fullgraph=True)
        x = torch.randn(9)
        with torch.no_grad():
            compiled(x)
            torch.testing.assert_close(compiled(x), x.tanh() + 1)
        assert "weft_host.my_tanh" in weft.ir(compiled)
