# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tensorize(axis, "amx")`: products of the matrix unit's tiles, by value against NumPy."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from guarded_memory import SIDES, Guarded
from processor import FLAGS

import weft
from weft import te

HAS_UNIT = {"amx_tile", "amx_int8", "amx_bf16"} <= FLAGS
needs_unit = pytest.mark.skipif(not HAS_UNIT, reason="the processor has no matrix unit")

BYTES = [(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8")]
HALVES = ("bfloat16", "bfloat16")
SIZES = [
    (64, 64, 128, 32, 32),
    (70, 50, 64, 32, 32),
    (33, 31, 192, 16, 16),
    (1, 7, 4, 16, 16),
    (50, 40, 68, 16, 48),
    (100, 37, 256, 48, 16),
    (5, 3, 8, 32, 32),
]


def product(m, n, k, types, packed=False, result=None):
    """Rows times columns; the columns' terms as they are, or in groups of four bytes."""
    wide = "float32" if types == HALVES else "int32"
    x, y = te.placeholder((m, k), types[0], "X"), te.placeholder((k, n), types[1], "Y")
    r = te.reduce_axis((0, k), "r")
    if result == "bfloat16":
        return x, y, te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")
    if not packed:

        def total(i, j):
            return te.sum(x[i, r].astype(wide) * y[r, j].astype(wide), axis=r, dtype=wide)

        return x, y, te.compute((m, n), total, "Z")
    size = 2 if types == HALVES else 4
    groups = te.compute((k // size, n, size), lambda g, j, t: y[g * size + t, j], "packed")
    g, t = te.reduce_axis((0, k // size), "g"), te.reduce_axis((0, size), "t")

    def of_groups(i, j):
        left, right = x[i, g * size + t].astype(wide), groups[g, j, t].astype(wide)
        return te.sum(left * right, axis=[g, t], dtype=wide)

    return x, y, te.compute((m, n), of_groups, "Z")


def tiled(z, rows=32, columns=32):
    s = te.create_schedule(z)
    return s, s[z].tile(*s[z].op.axis, rows, columns)


def values(shape, dtype):
    if dtype == "bfloat16":
        return torch.randn(shape).bfloat16()
    kind = getattr(torch, dtype)
    limits = torch.iinfo(kind)
    return torch.randint(limits.min, limits.max + 1, shape, dtype=kind)


def check(found, a, b):
    """Against NumPy; sums of bytes are exact."""
    if a.dtype != torch.bfloat16:
        expected = a.numpy().astype("int64") @ b.numpy().astype("int64")
        assert found.dtype == torch.int32
        np.testing.assert_array_equal(found.numpy(), expected)
        return
    left, right = a.double().numpy(), b.double().numpy()
    bound = (4e-3 if found.dtype == torch.bfloat16 else 1e-6) * (np.abs(left) @ np.abs(right))
    assert (np.abs(found.double().numpy() - left @ right) <= bound + 1e-30).all()


@needs_unit
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("types", [*BYTES, HALVES])
@pytest.mark.parametrize("size", SIZES)
def test_products(size, types, packed):
    m, n, k, rows, columns = size
    torch.manual_seed(0)
    x, y, z = product(m, n, k, types, packed)
    s, (_, _, inner, _) = tiled(z, rows, columns)
    s[z].tensorize(inner, "amx")
    f = te.build(s, [x, y, z])
    a, b = values((m, k), types[0]), values((k, n), types[1])
    check(f(a, b), a, b)
    assert "tdp" in f.assembly()
    assert s.copy() == s and te.load_script(s.script(), z) == s
    assert "microkernel amx" in str(s) and s.save().endswith("tensorize Z i.inner amx\n")


@needs_unit
@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("size", [(64, 64, 128), (70, 50, 64), (3, 100, 40)])
def test_results_of_bfloat16_are_rounded_once(size, decomposed):
    m, n, k = size
    torch.manual_seed(0)
    x, y, z = product(m, n, k, HALVES, result="bfloat16")
    s, (outer, _, inner, _) = tiled(z)
    s[z].tensorize(inner, "amx")
    if decomposed:
        s[z].decompose_reduction(outer)
    a, b = values((m, k), "bfloat16"), values((k, n), "bfloat16")
    found = te.build(s, [x, y, z])(a, b)
    assert found.dtype == torch.bfloat16
    check(found, a, b)


@needs_unit
@pytest.mark.parametrize("types", [HALVES, ("uint8", "int8")])
@pytest.mark.parametrize("size", [(100, 130, 256), (37, 41, 192)])
def test_sums_in_parts_by_any_number_of_threads(size, types):
    m, n, k = size
    torch.manual_seed(0)
    x, y, z = product(m, n, k, types)
    s, (io, jo, ii, ji) = tiled(z)
    ro, ri = s[z].split(s[z].op.reduce_axis[0], factor=64)
    s[z].reorder(io, ro, jo, ii, ri, ji)
    s[z].parallel(io)
    s[z].tensorize(ii, "amx")
    f = te.build(s, [x, y, z])
    a, b = values((m, k), types[0]), values((k, n), types[1])
    before, found = weft.get_num_threads(), []
    for threads in (1, 2, 5):
        weft.set_num_threads(threads)
        found.append(f(a, b))
    weft.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    check(found[0], a, b)


@needs_unit
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("types", [HALVES, ("int8", "int8")])
def test_edges_that_tiles_cross_anywhere(types, packed):
    """Tiles of a buffer that another tensor's tiles read, which begin at any place, and tiles of
    loops that were fused."""
    m, n, k = 100, 130, 128
    torch.manual_seed(0)
    a, b = values((m, k), types[0]), values((k, n), types[1])
    x, y, z = product(m, n, k, types, packed)
    negated = te.compute((m, n), lambda i, j: 0 - z[i, j], "negated")
    s, (_, outer, _, _) = tiled(negated, 24, 40)
    s[z].compute_at(s[negated], outer)
    _, _, inner, _ = s[z].tile(*s[z].op.axis, 32, 32)
    s[z].tensorize(inner, "amx")
    check(-te.build(s, [x, y, negated])(a, b), a, b)
    s = te.create_schedule(z)
    io, ii = s[z].split(s[z].op.axis[0], factor=20)
    jo, ji = s[z].split(s[z].op.axis[1], factor=32)
    s[z].reorder(io, jo, ii, ji)
    s[z].split(s[z].fuse(io, jo), factor=3)
    s[z].tensorize(ii, "amx")
    check(te.build(s, [x, y, z])(a, b), a, b)


@needs_unit
def test_a_convolution():
    torch.manual_seed(0)
    x = te.placeholder((2, 18, 21, 32), "bfloat16", "X")
    w = te.placeholder((3, 3, 32, 48), "bfloat16", "W")
    p, q, c = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q"), te.reduce_axis((0, 32), "c")

    def total(b, i, j, o):
        left, right = x[b, i + p, j + q, c], w[p, q, c, o]
        return te.sum(left.astype("float32") * right.astype("float32"), axis=[p, q, c])

    z = te.compute((2, 16, 19, 48), total, "Z")
    s = te.create_schedule(z)
    b, i, j, o = s[z].op.axis
    oo, oi = s[z].split(o, factor=32)
    s[z].reorder(b, i, oo, j, oi)
    s[z].tensorize(j, "amx")
    image, kernel = values(x.shape, "bfloat16"), values(w.shape, "bfloat16")
    found = te.build(s, [x, w, z])(image, kernel)
    moved = image.double().permute(0, 3, 1, 2), kernel.double().permute(3, 2, 0, 1)
    expected = torch.nn.functional.conv2d(*moved).permute(0, 2, 3, 1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)


@needs_unit
@pytest.mark.parametrize("types", [HALVES, ("int8", "uint8")])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_nothing_beside_the_arrays_is_touched(types, packed, side):
    """Reading or writing the pages next to them would end this process."""
    torch.manual_seed(0)
    for m, n, k, rows, columns in SIZES[1:]:
        x, y, z = product(m, n, k, types, packed)
        s, (_, _, inner, _) = tiled(z, rows, columns)
        s[z].tensorize(inner, "amx")
        f = te.build(s, [x, y, z])
        a, b = values((m, k), types[0]), values((k, n), types[1])
        result = torch.empty((m, n), dtype=torch.float32 if types == HALVES else torch.int32)
        held, given = [], []
        for number, each in enumerate((a, b, result)):
            size = each.numel() * each.itemsize
            held.append(Guarded(f"argument {number}", size, side))
            start = held[-1].start
            flat = torch.frombuffer(
                held[-1].mapping, dtype=each.dtype, count=each.numel(), offset=start
            )
            given.append(flat.view(each.shape).copy_(each))
        f(*given)
        check(given[2], a, b)
        assert [each.damage() for each in held] == [None] * 3


def refused(step, axis, reason, remedy):
    with pytest.raises(te.ScheduleError) as caught:
        step()
    assert (caught.value.axis, caught.value.reason, caught.value.remedy) == (axis, reason, remedy)


def test_it_is_refused_where_the_compiler_does_not_use_the_unit(monkeypatch):
    monkeypatch.setenv("WEFT_ISA", "avx512")
    for types, feature in ((HALVES, "amx_bf16"), (BYTES[0], "amx_int8")):
        _, _, z = product(64, 64, 64, types)
        s, (_, _, inner, _) = tiled(z)
        before = s.key(), str(s)
        refused(
            lambda s=s, z=z, inner=inner: s[z].tensorize(inner, "amx"),
            "i.inner",
            f"the processor has no {feature}",
            "use the microkernel vnni or fma",
        )
        assert (s.key(), str(s)) == before


@needs_unit
def test_it_is_refused_with_a_reason():
    _, _, z = product(64, 64, 33, HALVES)
    s, (_, _, inner, _) = tiled(z)
    refused(
        lambda: s[z].tensorize(inner, "amx"),
        "r",
        "it has 33 iterations, and dot products take 2 at once",
        "pad the terms, or split by a multiple of 2",
    )
    _, _, z = product(64, 128, 32, HALVES)
    s, (_, _, inner, _) = tiled(z, 32, 64)
    refused(
        lambda: s[z].tensorize(inner, "amx"),
        "i.inner",
        "its tile of 32 rows of 64 needs 14 registers of 16 rows of 16, and there are 8",
        "split the loops, so that the tile is smaller: 32 rows of 32 use all",
    )
    x = te.placeholder((64, 32), "float32", "X")
    y = te.placeholder((32, 64), "float32", "Y")
    r = te.reduce_axis((0, 32), "r")
    z = te.compute((64, 64), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")
    s, (_, _, inner, _) = tiled(z)
    refused(
        lambda: s[z].tensorize(inner, "amx"),
        "i.inner",
        "there are no products of tiles of float32 by float32 to float32",
        "use int8 or uint8 by int8 or uint8 with te.sum(…, dtype='int32'), bfloat16 by bfloat16 "
        "with float32, or the microkernel fma",
    )
    _, _, z = product(64, 64, 32, HALVES)
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    jo, ji = s[z].split(j, factor=16)
    io, ii = s[z].split(i, factor=8)
    s[z].reorder(jo, io, ii, ji)
    refused(
        lambda: s[z].tensorize(io, "amx"),
        "i.outer",
        "i.outer, i.inner are its rows, which have to be one loop",
        "begin at i.inner",
    )
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    jo, _ = s[z].split(j, factor=16)
    s[z].reorder(jo, i)
    fused = s[z].fuse(*s[z].split(i, factor=7))
    _, rows = s[z].split(fused, factor=16)
    refused(
        lambda: s[z].tensorize(rows, "amx"),
        s[z].state.labels[rows],
        "its iterations move by no constant distance in X",
        "choose a loop that moves by as much in each iteration",
    )


@pytest.mark.skipif("avx512_bf16" not in FLAGS, reason="the processor has no bf16")
@pytest.mark.parametrize("name", ["vnni", pytest.param("amx", marks=needs_unit)])
def test_what_it_reads_stays_as_it_was(name):
    """Inlining a transposition would have its rows' terms read from columns."""
    x = te.placeholder((64, 32), "bfloat16", "X")
    y = te.placeholder((64, 64), "bfloat16", "Y")
    r = te.reduce_axis((0, 64), "r")
    turned = te.compute((32, 64), lambda i, k: x[k, i], "T")

    def total(i, j):
        return te.sum(turned[i, r].astype("float32") * y[r, j].astype("float32"), axis=r)

    z = te.compute((32, 64), total, "Z")
    s, (_, _, inner, _) = tiled(z, 4, 32)
    s[z].tensorize(inner, name)
    before = s.key(), str(s)
    with pytest.raises(te.ScheduleError, match="is read in another order; compute what it reads"):
        s[turned].compute_inline()
    assert (s.key(), str(s)) == before
    torch.manual_seed(0)
    a, b = values((64, 32), "bfloat16"), values((64, 64), "bfloat16")
    check(te.build(s, [x, y, z])(a, b), a.T.contiguous(), b)


@pytest.mark.skipif("avx512_bf16" not in FLAGS, reason="the processor has no bf16")
@pytest.mark.parametrize("name", ["vnni", pytest.param("amx", marks=needs_unit)])
def test_a_buffer_of_fewer_columns_than_a_vector(name):
    x, y, z = product(64, 64, 64, HALVES)
    more = te.compute((64, 64), lambda i, j: z[i, j] + 1, "more")
    s = te.create_schedule(more)
    _, _, inner, _ = s[z].tile(*s[z].op.axis, 4, 32)
    s[z].tensorize(inner, name)
    _, outer, _, _ = s[more].tile(*s[more].op.axis, 2, 5)
    s[z].compute_at(s[more], outer)
    torch.manual_seed(0)
    a, b = values((64, 64), "bfloat16"), values((64, 64), "bfloat16")
    found = te.build(s, [x, y, more])(a, b)
    torch.testing.assert_close(found, a.float() @ b.float() + 1, rtol=1e-4, atol=1e-4)


@needs_unit
def test_c_programs_ask_for_the_unit(tmp_path):
    x, y, z = product(33, 40, 64, ("int8", "int8"))
    s, (_, _, inner, _) = tiled(z)
    s[z].tensorize(inner, "amx")
    library, header = te.build(s, [x, y, z], "products").export(tmp_path)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "products.h"\n'
        "static int8_t x[33 * 64], y[64 * 40];\nstatic int32_t z[33 * 40];\n"
        "int main(int count, char **arguments) {\n"
        "  for (int n = 0; n < 33 * 64; ++n)\n    x[n] = (int8_t)(n % 7 - 3);\n"
        "  for (int n = 0; n < 64 * 40; ++n)\n    y[n] = (int8_t)(n % 5 - 2);\n"
        "  if (count != 2 || products_load(arguments[1]) || products(x, y, z))\n    return 1;\n"
        "  for (int i = 0; i < 33; ++i)\n    for (int j = 0; j < 40; ++j) {\n"
        "      int sum = 0;\n      for (int k = 0; k < 64; ++k)\n"
        "        sum += x[i * 64 + k] * y[k * 40 + j];\n"
        "      if (sum != z[i * 40 + j])\n        return 2;\n    }\n"
        '  puts("equal");\n  return 0;\n}\n'
    )
    flags = "-std=c99 -pedantic -Wall -Wextra -Werror -O1 main.c -o main -ldl".split()
    subprocess.run(["clang-22", *flags], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main", str(library)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "equal\n")


@needs_unit
def test_threads_and_forks():
    """The state of the unit is each thread's own, and a child's too."""
    code = """
import os, threading, torch, weft
from test_te_matrix_unit import check, product, tiled, values
from weft import te
x, y, z = product(70, 50, 128, ("int8", "uint8"))
s, (_, _, inner, _) = tiled(z)
early = threading.Event()
found = []
def work(seed):
    early.wait()
    a, b = values((70, 128), "int8"), values((128, 50), "uint8")
    for _ in range(20):
        check(f(a, b), a, b)
    found.append(seed)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for each in threads:
    each.start()
s[z].tensorize(inner, "amx")
f = te.build(s, [x, y, z])
early.set()
for each in threads:
    each.join()
assert len(found) == 8
child = os.fork()
if child == 0:
    work(9)
    os._exit(0 if found[-1] == 9 else 1)
assert os.waitpid(child, 0)[1] == 0
print("equal")
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr
