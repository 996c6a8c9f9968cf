# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that begin where one says, microkernels, predicted times, and names of TVM's te."""

import numpy as np
import pytest
import torch

from weft import te
from weft.artifacts.builds import cpu_flags


def product(m, n, k, dtypes=("float32", "float32"), wide=None):
    x, y = te.placeholder((m, k), dtypes[0], "X"), te.placeholder((k, n), dtypes[1], "Y")
    r = te.reduce_axis((0, k), "r")

    def term(i, j):
        left, right = x[i, r], y[r, j]
        return left.astype(wide) * right.astype(wide) if wide else left * right

    return x, y, te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=r, dtype=wide), "Z")


def tiled(z, rows=6, columns=64):
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    return s, s[z].tile(i, j, rows, columns)


def refused(step, axis, reason, remedy):
    with pytest.raises(te.ScheduleError) as caught:
        step()
    assert (caught.value.axis, caught.value.reason, caught.value.remedy) == (axis, reason, remedy)


@pytest.mark.parametrize("size", [(50, 70, 33), (12, 64, 5), (7, 3, 1)])
def test_an_fma_tile(size):
    m, n, k = size
    x, y, z = product(m, n, k)
    s, (_, _, rows, _) = tiled(z)
    s[z].tensorize(rows, "fma")
    assert s.save().endswith("tensorize Z i.inner fma\n")
    assert s.copy() == s
    a, b = torch.randn(m, k), torch.randn(k, n)
    torch.testing.assert_close(te.build(s, [x, y, z])(a, b), a @ b)
    assert "microkernel fma" in str(s)


@pytest.mark.skipif("avx512_vnni" not in cpu_flags().split(), reason="the processor has no VNNI")
@pytest.mark.parametrize("order", [("uint8", "int8"), ("int8", "uint8")])
def test_byte_dot_products(order):
    x, y, z = product(13, 150, 36, order, "int32")
    s, (_, _, rows, _) = tiled(z)
    s[z].tensorize(rows, "vnni")
    f = te.build(s, [x, y, z])
    given = {
        "uint8": lambda shape: torch.randint(0, 256, shape, dtype=torch.uint8),
        "int8": lambda shape: torch.randint(-128, 128, shape, dtype=torch.int8),
    }
    a, b = given[order[0]]((13, 36)), given[order[1]]((36, 150))
    found = f(a, b)
    assert found.dtype == torch.int32
    assert torch.equal(found, a.int() @ b.int())
    assert "vpdpbusd" in f.assembly()


@pytest.mark.skipif("avx512_bf16" not in cpu_flags().split(), reason="the processor has no bf16")
def test_bfloat16_dot_products_and_a_packed_operand():
    x, y, z = product(13, 150, 36, ("bfloat16", "bfloat16"), "float32")
    s, (_, _, rows, _) = tiled(z)
    s[z].tensorize(rows, "vnni")
    f = te.build(s, [x, y, z])
    a, b = torch.randn(13, 36).bfloat16(), torch.randn(36, 150).bfloat16()
    torch.testing.assert_close(f(a, b), a.float() @ b.float(), rtol=1e-4, atol=1e-4)
    assert "vdpbf16ps" in f.assembly()

    packed = te.compute((18, 150, 2), lambda p, j, q: y[p * 2 + q, j], "packed")
    pairs, terms = te.reduce_axis((0, 18), "pairs"), te.reduce_axis((0, 2), "terms")
    z = te.compute(
        (13, 150),
        lambda i, j: te.sum(
            x[i, pairs * 2 + terms].astype("float32") * packed[pairs, j, terms].astype("float32"),
            axis=[pairs, terms],
        ),
        "Z",
    )
    s, (_, _, rows, _) = tiled(z)
    s[z].tensorize(rows, "vnni")
    f = te.build(s, [x, y, z])
    shuffled = [line for line in f.module.splitlines() if "vector.shuffle" in line]
    assert shuffled and all("xi1>" in line for line in shuffled)  # masks, and no terms
    torch.testing.assert_close(f(a, b), a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def test_microkernels_are_refused_with_a_reason():
    _, _, z = product(50, 70, 33)
    s, (outer, _, rows, columns) = tiled(z)
    before = s.key(), str(s)
    refused(
        lambda: s[z].tensorize(rows, "gemm"),
        "i.inner",
        "there is no microkernel 'gemm'",
        "use fma, vnni or amx",
    )
    refused(
        lambda: s[z].tensorize(outer, "fma"),
        "i.outer",
        "its tile of 108 times 4 vectors of 16 needs 437 registers, and there are 32"
        if te.targets.vector_bytes() == 64
        else "its tile of 108 times 8 vectors of 8 needs 873 registers, and there are 16",
        "split the loops, so that the tile is smaller",
    )
    refused(
        lambda: s[z].tensorize(rows, "vnni"),
        "i.inner",
        "there are no dot products of float32 by float32 to float32",
        "use uint8 by int8 with te.sum(…, dtype='int32'), bfloat16 by bfloat16 with float32, or "
        "the microkernel fma",
    )
    assert (s.key(), str(s)) == before
    s[z].tensorize(rows, "fma")
    refused(
        lambda: s[z].reorder(columns, rows),
        "i.inner",
        "it is part of the microkernel fma",
        "move the loops outside of it only",
    )
    e = te.compute((50, 70), lambda i, j: te.exp(z[i, j]), "E")
    s = te.create_schedule(e)
    refused(
        lambda: s[e].tensorize(s[e].op.axis[0], "fma"),
        "i",
        "`exp(Z[i, j])` is no sum of products of two elements",
        "compute other terms as a tensor of their own",
    )
    a, b = te.placeholder((4, 8), "int32", "A"), te.placeholder((8, 16), "int32", "B")
    k = te.reduce_axis((0, 8), "k")
    wide = te.compute((4, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "wide")
    s = te.create_schedule(wide)
    refused(
        lambda: s[wide].tensorize(wide.op.axis[0], "fma"),
        "i",
        "its terms are converted to int64 before they are added",
        "add them as they are: te.sum(…, dtype='int32')",
    )


@pytest.mark.skipif("avx512_vnni" not in cpu_flags().split(), reason="the processor has no VNNI")
def test_dot_products_of_a_rest_are_refused():
    _, _, z = product(12, 64, 33, ("uint8", "int8"), "int32")
    s, (_, _, rows, _) = tiled(z)
    refused(
        lambda: s[z].tensorize(rows, "vnni"),
        "r",
        "it has 33 iterations, and dot products take 4 at once",
        "pad the terms, or split by a multiple of 4",
    )


@pytest.mark.parametrize("place", range(6))
def test_sums_begin_where_one_says(place):
    x, y, z = product(20, 24, 12)
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    (r,) = s[z].op.reduce_axis
    io, jo, ii, ji = s[z].tile(i, j, 6, 16)
    ro, ri = s[z].split(r, factor=5)
    s[z].reorder(io, jo, ro, ii, ri, ji)
    loops = [io, jo, ro, ii, ri, ji]
    if place > 2:
        refused(
            lambda: s[z].decompose_reduction(loops[place]),
            s[z].state.labels[loops[place]],
            "it runs inside r.outer, which carries the reduction: sums would begin again",
            "choose r.outer or a loop outside of it",
        )
        return
    s[z].decompose_reduction(loops[place])
    if place < 2:
        refused(
            lambda: s[z].split(loops[place], factor=2),
            s[z].state.labels[loops[place]],
            "the sums begin at it and it cannot be split",
            "do that before decompose_reduction",
        )
    a, b = torch.randn(20, 12), torch.randn(12, 24)
    torch.testing.assert_close(te.build(s, [x, y, z])(a, b), a @ b)
    s[z].vectorize(ji)
    torch.testing.assert_close(te.build(s, [x, y, z])(a, b), a @ b)
    assert str(s).index("= 0") < str(s).index("+=")
    assert s.copy() == s


def test_the_history_has_loops_and_predicted_times():
    _, _, z = product(256, 256, 256)
    s, (_, _, rows, _) = tiled(z)
    s[z].tensorize(rows, "fma")
    states = s.history()
    assert [step for step, _, _ in states] == ["", *map(str, s.steps)]
    assert states[-1][1] == str(s) and states[-1][2] == s.predicted_seconds()
    assert states[-1][2] < states[0][2] / 20
    # More rows than fit no register, and one row that waits for its sums, are worse.
    one, (_, _, row, _) = tiled(z, rows=1, columns=16)
    one[z].tensorize(row, "fma")
    assert one.predicted_seconds() > 3 * s.predicted_seconds()


def test_reductions_from_another_first_value_and_of_a_dtype():
    x = te.placeholder((4, 9), "int32", "X")
    r = te.reduce_axis((2, 7), "r")
    z = te.compute((4,), lambda i: te.sum(x[i, r], axis=r, dtype="int32"), "Z")
    assert str(z) == "Z[i] = sum(X[i, r + 2], axis=r, dtype=int32)  for i < 4, r < 5"
    a = np.arange(36, dtype="int32").reshape(4, 9)
    found = te.build(z, [x, z])(a)
    assert found.dtype == np.int32 and (found == a[:, 2:7].sum(1)).all()
    with pytest.raises(te.TEError, match="found one from 5 to 3"):
        te.reduce_axis((5, 3))


def test_other_functions_of_tvm():
    a = np.array([1.5, np.nan, np.inf, -np.inf, -0.0, -7.0], "float32")
    i, j = np.array([-7, 7, -7, 7, 0, 9]), np.array([2, 2, -2, -2, 5, 3])
    x = te.placeholder((6,), name="x")
    p, q = te.placeholder((6,), "int64", "p"), te.placeholder((6,), "int64", "q")
    bodies = {
        "isnan": (lambda n: te.isnan(x[n]), np.isnan(a)),
        "isinf": (lambda n: te.isinf(x[n]), np.isinf(a)),
        "isfinite": (lambda n: te.isfinite(x[n]), np.isfinite(a)),
        "truncdiv": (lambda n: te.truncdiv(p[n], q[n]), np.trunc(i / j).astype("int64")),
        "truncmod": (lambda n: te.truncmod(p[n], q[n]), np.fmod(i, j)),
        "indexmod": (lambda n: te.indexmod(p[n], q[n]), i % j),
        "add": (lambda n: te.add(p[n], te.multiply(q[n], 2)), i + 2 * j),
        "least": (lambda n: te.maximum(te.min_value("int64"), p[n]), i),
        "greatest": (lambda n: te.minimum(te.max_value("int64"), p[n]), i),
        "infinity": (lambda n: te.minimum(te.infinity(), p[n]), i.astype("float32")),
    }
    for name, (body, expected) in bodies.items():
        z = te.compute((6,), body, name)
        given = {"x": a, "p": i, "q": j}
        inputs = [each for each in (x, p, q) if each in z.op.input_tensors]
        found = te.build(z, [*inputs, z])(*(given[each.name] for each in inputs))
        np.testing.assert_array_equal(found, expected, err_msg=name)
    with pytest.raises(te.TEError, match="expected integers"):
        te.truncdiv(x[te.const(0)], 2)


def test_nothing_takes_no_time():
    x = te.placeholder((0, 4), name="X")
    z = te.compute((0, 4), lambda i, j: te.exp(x[i, j]), "Z")
    s = te.default_schedule(z)
    assert s.predicted_seconds() == 0.0
    assert te.build(s, [x, z])(np.zeros((0, 4), "float32")).shape == (0, 4)
