# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The default schedule: right for sizes that leave rests, and of the kind that the work wants."""

import re

import pytest
import torch
import torch.nn.functional as F

from weft import _core, te
from weft.te.packing import packing_pays
from weft.te.register_tiles import Problem, best_tile


def gemm(m, n, k):
    x, y = te.placeholder((m, k), name="x"), te.placeholder((k, n), name="y")
    r = te.reduce_axis((0, k), "r")
    z = te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "z")
    return [x, y], z, torch.mm


def linear(m, n, k):
    """With the weight as PyTorch stores it, and an epilogue."""
    x, w, b = (te.placeholder(s, name=t) for s, t in zip([(m, k), (n, k), (n,)], "xwb"))
    r = te.reduce_axis((0, k), "r")
    y = te.compute((m, n), lambda i, j: te.sum(x[i, r] * w[j, r], axis=r), "y")
    z = te.compute((m, n), lambda i, j: te.maximum(y[i, j] + b[j], 0), "z")
    return [x, w, b], z, lambda x, w, b: F.relu(F.linear(x, w, b))


def softmax(m, n):
    x = te.placeholder((m, n), name="x")
    a, b = te.reduce_axis((0, n), "a"), te.reduce_axis((0, n), "b")
    most = te.compute((m,), lambda i: te.max(x[i, a], axis=a), "most")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - most[i]), "e")
    total = te.compute((m,), lambda i: te.sum(e[i, b], axis=b), "total")
    return [x], te.compute((m, n), lambda i, j: e[i, j] / total[i], "o"), lambda x: x.softmax(-1)


def layer_norm(m, n):
    x, w, b = (te.placeholder(s, name=t) for s, t in zip([(m, n), (n,), (n,)], "xwb"))
    r, q = te.reduce_axis((0, n), "r"), te.reduce_axis((0, n), "q")
    mean = te.compute((m,), lambda i: te.sum(x[i, r], axis=r), "sum")
    square = te.compute(
        (m,), lambda i: te.sum((x[i, q] - mean[i] / n) * (x[i, q] - mean[i] / n), axis=q), "square"
    )

    def normal(i, j):
        return (x[i, j] - mean[i] / n) * te.rsqrt(square[i] / n + 1e-5) * w[j] + b[j]

    return [x, w, b], te.compute((m, n), normal, "o"), lambda x, w, b: F.layer_norm(x, (n,), w, b)


def depthwise(c, h, w):
    x, k = te.placeholder((c, h, w), name="x"), te.placeholder((c, 3, 3), name="k")
    padded = te.compute(
        (c, h + 2, w + 2),
        lambda q, i, j: te.if_then_else(
            te.all(i > 0, i <= h, j > 0, j <= w), x[q, i - 1, j - 1], 0.0
        ),
        "padded",
    )
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")
    z = te.compute(
        (c, h, w), lambda q, i, j: te.sum(padded[q, i + a, j + b] * k[q, a, b], axis=[a, b]), "z"
    )
    return [x, k], z, lambda x, k: F.conv2d(x[None], k[:, None], padding=1, groups=c)[0]


def top1(m, n):
    x = te.placeholder((m, n), name="x")
    a, b = te.reduce_axis((0, n), "a"), te.reduce_axis((0, n), "b")
    most = te.compute((m,), lambda i: te.max(x[i, a], axis=a), "most")
    z = te.compute(
        (m,), lambda i: te.min(te.if_then_else(x[i, b] == most[i], b, n), axis=b), "first"
    )
    return [x], z, lambda x: x.argmax(-1)


CASES = {
    f"{make.__name__}-{'x'.join(map(str, sizes))}": (make, sizes)
    for make, shapes in [
        (gemm, [(56, 56, 56), (1, 1000, 3), (127, 131, 33), (130, 70, 300), (7, 1, 5), (64, 3, 9)]),
        (linear, [(33, 47, 65), (128, 64, 96)]),
        (softmax, [(5, 1), (7, 129), (200, 300)]),
        (layer_norm, [(3, 17), (128, 768)]),
        (depthwise, [(2, 5, 7), (16, 56, 56), (3, 14, 33)]),
        (top1, [(5, 3), (40, 1000)]),
    ]
    for sizes in shapes
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_values(case, threads):
    make, sizes = CASES[case]
    inputs, output, eager = make(*sizes)
    torch.manual_seed(0)
    given = [torch.randn(each.shape) for each in inputs]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = te.build(te.create_schedule(output), [*inputs, output])(*given)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found, eager(*given), rtol=1e-4, atol=1e-4)


def test_a_large_product_is_tiled_packed_and_divided():
    _, z, _ = gemm(512, 512, 512)
    s = te.default_schedule(z)
    verbs = [step.verb for step in s.steps]
    assert {"split", "reorder", "unroll", "vectorize", "cache_read", "parallel"} <= set(verbs)
    assert te.create_schedule(z).load(s.save()) == s


def test_small_work_stays_on_one_thread():
    for make, sizes in [(gemm, (56, 56, 56)), (softmax, (8, 128))]:
        assert "parallel" not in te.default_schedule(make(*sizes)[1]).save()


def test_rows_stay_in_the_cache():
    _, z, _ = softmax(128, 768)
    text = str(te.default_schedule(z))
    assert "e: buffer of float32[1, 768]" in text and "total: buffer of float32[1]" in text


@pytest.mark.parametrize("threads", [1, 2, 4, 8, 16, 32])
def test_no_thread_is_idle_while_there_are_tiles(threads, monkeypatch):
    monkeypatch.setattr(_core, "get_num_threads", lambda: threads)
    for m, n, k in [(1024, 64, 64), (512, 512, 512), (256, 768, 768), (4096, 192, 96)]:
        x, y = te.placeholder((m, k), name="x"), te.placeholder((k, n), name="y")
        r = te.reduce_axis((0, k), "r")
        z = te.compute((m, n), lambda i, j, x=x, y=y, r=r: te.sum(x[i, r] * y[r, j], axis=r), "z")
        stage = te.default_schedule(z)[z]
        (shared,) = [a for a in stage.leaf_iter_vars if stage.state.kinds.get(a) == "parallel"]
        tiles = (m // 16) * (n // 64)  # of which a share has at least some
        assert shared.extent >= min(threads, tiles // 8), (threads, m, n, k, shared.extent)
        given = torch.randn(m, k), torch.randn(k, n)
        if threads in (2, 16):
            found = te.build(te.default_schedule(z), [x, y, z])(*given)
            torch.testing.assert_close(found, given[0] @ given[1], rtol=1e-4, atol=1e-3)


def test_a_matrix_by_a_column_is_summed_in_vectors():
    x, y = te.placeholder((40, 64), name="x"), te.placeholder((64, 1), name="y")
    r = te.reduce_axis((0, 64), "r")
    z = te.compute((40, 1), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "z")
    s = te.default_schedule(z)
    assert "reassociate=1" in s.save()
    given = torch.randn(40, 64), torch.randn(64, 1)
    torch.testing.assert_close(te.build(s, [x, y, z])(*given), given[0] @ given[1])


def tile_of(m, n, k, **stride):
    problem = Problem(m, n, lanes=16, depth=k, panel_bytes=4, **stride)
    tile = best_tile(problem)
    return tile.rows, tile.registers


@pytest.mark.skipif(te.targets.vector_bytes() != 64, reason="tiles of 32 registers")
def test_register_tiles_follow_shape_and_caches():
    assert tile_of(7, 7, 7) == (7, 1)  # all of it
    assert tile_of(31, 37, 41) == (9, 3)  # and one of four rows, in registers as well
    rows, registers = tile_of(1000, 3, 5)
    assert registers == 1 and rows >= 8  # no vector of columns that do not exist
    # A panel that comes from L2 is read for more rows.
    shallow, deep = tile_of(128, 768, 16), tile_of(128, 768, 768)
    assert deep[0] >= shallow[0] and deep[1] <= shallow[1]
    # Rows that lie 2 KiB apart meet in few lines of the cache.
    assert tile_of(512, 512, 512, row_stride=2048)[0] <= 6
    assert tile_of(512, 512, 512, row_stride=2052)[0] > 6


@pytest.mark.skipif(te.targets.vector_bytes() != 64, reason="tiles of 32 registers")
def test_windows_that_rows_share_stay_in_registers():
    """Of taps that are written out LLVM keeps what several rows read: more of it is spilled."""
    for h, w in [(56, 56), (112, 112), (30, 30), (14, 14)]:
        tile = best_tile(Problem(h, w, lanes=16, depth=9, taps=3))
        assert (2 * tile.rows + 2) * tile.registers <= 24, (h, w, tile)


def test_a_panel_is_packed_where_its_pages_are_many_and_read_often():
    assert packing_pays(86, 4, 512, 2048)
    assert not packing_pays(4, 4, 512, 2048)  # the copy takes longer than four tiles lose
    assert not packing_pays(10, 4, 56, 224)  # all of it is in the first level of the TLB
    assert packing_pays(11, 4, 1024, 4096) and not packing_pays(1, 4, 1024, 4096)
    for m, n, k, packed in [(56, 56, 56, False), (100, 100, 100, False), (300, 300, 300, True)]:
        _, z, _ = gemm(m, n, k)
        assert ("cache_read y packed z" in te.default_schedule(z).save()) == packed, (m, n, k)


def test_short_rows_are_reduced_side_by_side():
    """A vector along ten terms is mostly combining its lanes."""
    _, z, _ = top1(1000, 10)
    text = te.default_schedule(z).save()
    assert "vectorize first i.inner\n" in text and "vectorize most i.inner\n" in text
    _, z, _ = top1(1000, 100)
    assert "vectorize most a.inner reassociate=1" in te.default_schedule(z).save()
    _, z, _ = softmax(1000, 10)
    text = te.default_schedule(z).save()
    assert "vectorize most i.inner\n" in text and "vectorize total i.inner\n" in text


@pytest.mark.parametrize("size", [(1000, 3, 5), (9, 2, 100), (5, 7, 7), (3, 37, 41), (31, 1, 9)])
def test_products_with_few_columns_are_of_whole_vectors(size):
    m, n, k = size
    x, y = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="Y")
    r = te.reduce_axis((0, k), "r")
    z = te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")
    f = te.build(te.default_schedule(z), [x, y, z])
    a, b = torch.randn(m, k), torch.randn(k, n)
    torch.testing.assert_close(f(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert n == 1 or "vectorize Z j.inner" in f.schedule.save()
    stores = re.findall(r"vector\.(?:masked)?store .*vector<(\d+)xf32>\n", f.module)
    if n > 1 and n < 16 and n & (n - 1):  # one masked piece, and not one for each power of two
        assert set(stores) == {str(1 << (n - 1).bit_length())}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("extent", [3, 7, 13, 21, 31])
def test_the_last_piece_of_a_vector_writes_nothing_behind_it(dtype, extent):
    x = te.placeholder((2, extent), dtype, "X")
    z = te.compute((2, extent), lambda i, j: x[i, extent - 1 - j], "Z")
    s = te.create_schedule(z)
    s[z].vectorize(z.op.axis[1])
    f = te.build(s, [x, z], default=False)
    memory = torch.ones(2 * extent + 64).to(getattr(torch, dtype))
    given = (torch.rand(2, extent) * 2).to(getattr(torch, dtype))
    f(given, memory[: 2 * extent].view(2, extent))
    assert torch.equal(memory[: 2 * extent].view(2, extent), given.flip(1))
    assert (memory[2 * extent :] == 1).all()


def test_windows_of_a_small_buffer_are_not_read_behind_their_stores():
    def placed(size):
        args, z, _ = depthwise(24, size, size)
        s = te.default_schedule(z)
        return "compute_at padded z" in s.save()

    assert not placed(14) and placed(112)


def test_reductions_of_few_vectors_have_no_loop():
    _, z, _ = softmax(64, 100)
    s = te.default_schedule(z)
    assert "vectorized for j.inner in 100" in str(s) and "j.outer in" not in str(s)
    _, z, _ = softmax(64, 257)  # six times three vectors are fewer than five times four
    assert "split o j factor=" + str(3 * te.targets.lanes_of(4)) in te.default_schedule(z).save()


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("padded", [False, True])
def test_rows_of_tiles_are_those_that_share_what_vectors_read(batch, padded):
    """Of a convolution those are the channels of the result, and not the rows of the image."""
    x, w = te.placeholder((*batch, 5, 12, 40), name="X"), te.placeholder((18, 5, 3, 3), name="W")
    source = x
    if padded:
        source = te.compute(
            (*batch, 5, 14, 42),
            lambda *i: te.if_then_else(
                te.all(i[-2] >= 1, i[-2] < 13, i[-1] >= 1, i[-1] < 41),
                x[(*i[:-2], i[-2] - 1, i[-1] - 1)],
                0.0,
            ),
            name="padded",
        )
    c, p, q = te.reduce_axis((0, 5), "c"), te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    border = 0 if padded else 2
    z = te.compute(
        (*batch, 18, 12 - border, 40 - border),
        lambda *i: te.sum(
            source[(*i[:-3], c, i[-2] + p, i[-1] + q)] * w[i[-3], c, p, q], axis=[c, p, q]
        ),
        name="Z",
    )
    s = te.default_schedule(z)
    rows = z.op.axis[-3]
    unrolled = [a.name for a in s[z].leaf_iter_vars if s[z].state.kinds.get(a) == "unrolled"]
    assert f"{rows.name}.inner" in unrolled and "packed" not in s.save()
    a, b = torch.randn(*batch, 5, 12, 40), torch.randn(18, 5, 3, 3)
    expected = torch.nn.functional.conv2d(a, b, padding=int(padded))
    torch.testing.assert_close(te.build(z, [x, w, z])(a, b), expected, rtol=1e-4, atol=1e-4)
