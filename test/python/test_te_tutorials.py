# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as TVM's tutorials on te had them, by their schedules and by the default one."""

import numpy as np
import pytest
import torch
from te_reference import check_program, mm, normal, placeholder

from weft import te

CASES = []


def case(function):
    """Gives a schedule, the kernel's arguments, the arrays that it reads, and what it computes."""
    CASES.append(function)
    return function


@case
def gemm_blocked():
    A, B, Cc, a, b, e = mm(64, 96, 48)
    s = te.create_schedule(Cc.op)
    mo, no, mi, ni = s[Cc].tile(Cc.op.axis[0], Cc.op.axis[1], 32, 32)
    (kaxis,) = s[Cc].op.reduce_axis
    ko, ki = s[Cc].split(kaxis, factor=4)
    s[Cc].reorder(mo, no, ko, ki, mi, ni)
    s[Cc].vectorize(ni)
    return s, [A, B, Cc], [a, b], e


@case
def gemm_array_packing():
    M, N, K, bn, kfactor = 64, 96, 48, 32, 4
    A, B = placeholder("A", M, K), placeholder("B", K, N)
    k = te.reduce_axis((0, K), "k")
    packedB = te.compute(
        (N // bn, K, bn), lambda bigN, kk, littleN: B[kk, bigN * bn + littleN], name="packedB"
    )
    Cc = te.compute(
        (M, N),
        lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, te.indexmod(n, bn)], axis=k),
        name="C",
    )
    s = te.create_schedule(Cc.op)
    CC = s.cache_write(Cc, "global")
    mo, no, mi, ni = s[Cc].tile(Cc.op.axis[0], Cc.op.axis[1], bn, bn)
    s[CC].compute_at(s[Cc], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=kfactor)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[Cc].parallel(mo)
    x, y, z = s[packedB].op.axis
    s[packedB].vectorize(z)
    s[packedB].parallel(x)
    a, b = normal(M, K), normal(K, N)
    return s, [A, B, Cc], [a, b], a @ b


@case
def gemm_tail():
    A, B, Cc, a, b, e = mm(37, 53, 29)
    s = te.create_schedule(Cc.op)
    CC = s.cache_write(Cc, "global")
    mo, no, mi, ni = s[Cc].tile(*Cc.op.axis, 16, 16)
    s[CC].compute_at(s[Cc], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[Cc].vectorize(ni)
    return s, [A, B, Cc], [a, b], e


@case
def gemm_stage_slices():
    A, B = placeholder("A", 8, 9), placeholder("B", 9, 7)
    k = te.reduce_axis((0, 9), "k")
    Cc = te.compute((8, 7), lambda i, j: te.sum(A[i][k] * B[k][j], axis=k), name="C")
    a, b = normal(8, 9), normal(9, 7)
    return te.create_schedule(Cc.op), [A, B, Cc], [a, b], a @ b


@case
def conv2d_direct():
    n, ci, h, w, co, kh, st, pad = 1, 3, 9, 11, 5, 3, 2, 1
    X, W = placeholder("X", n, ci, h, w), placeholder("W", co, ci, kh, kh)
    P = te.compute(
        (n, ci, h + 2 * pad, w + 2 * pad),
        lambda b, c, y, x: te.if_then_else(
            te.all(y >= pad, y < h + pad, x >= pad, x < w + pad),
            X[b, c, y - pad, x - pad],
            te.const(0.0, "float32"),
        ),
        name="Apad",
    )
    rc, ry, rx = (
        te.reduce_axis((0, ci), "rc"),
        te.reduce_axis((0, kh), "ry"),
        te.reduce_axis((0, kh), "rx"),
    )
    oh, ow = (h + 2 * pad - kh) // st + 1, (w + 2 * pad - kh) // st + 1
    Z = te.compute(
        (n, co, oh, ow),
        lambda b, f, y, x: te.sum(
            P[b, rc, y * st + ry, x * st + rx] * W[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="B",
    )
    x, wt = normal(n, ci, h, w), normal(co, ci, kh, kh)
    s = te.create_schedule(Z.op)
    s[P].compute_inline()
    b, f, y, xx = s[Z].op.axis
    fused = s[Z].fuse(b, f)
    s[Z].parallel(fused)
    s[Z].vectorize(xx)
    return (
        s,
        [X, W, Z],
        [x, wt],
        torch.conv2d(torch.tensor(x), torch.tensor(wt), stride=2, padding=1).numpy(),
    )


@case
def conv2d_hwcn():
    # HWCN of TVM's opt_conv_cuda
    B_, I_, Hh, O_, K_ = 4, 6, 7, 8, 3
    A, W = placeholder("A", Hh, Hh, I_, B_), placeholder("W", K_, K_, I_, O_)
    P = te.compute(
        (Hh + 2, Hh + 2, I_, B_),
        lambda yy, xx, cc, nn: te.if_then_else(
            te.all(yy >= 1, yy - 1 < Hh, xx >= 1, xx - 1 < Hh),
            A[yy - 1, xx - 1, cc, nn],
            te.const(0.0),
        ),
        name="Apad",
    )
    rc, ry, rx = [te.reduce_axis((0, e), n) for e, n in ((I_, "rc"), (K_, "ry"), (K_, "rx"))]
    Z = te.compute(
        (Hh, Hh, O_, B_),
        lambda yy, xx, ff, nn: te.sum(
            P[yy + ry, xx + rx, rc, nn] * W[ry, rx, rc, ff], axis=[ry, rx, rc]
        ),
        name="B",
    )
    s = te.create_schedule(Z.op)
    AA = s.cache_read(P, "shared", [Z])
    WW = s.cache_read(W, "shared", [Z])
    BL = s.cache_write(Z, "local")
    hi, wi, fi, ni = s[Z].op.axis
    bz = s[Z].fuse(hi, wi)
    s[BL].compute_at(s[Z], bz)
    yi, xi, ff, nn = s[BL].op.axis
    ry_, rx_, rc_ = s[BL].op.reduce_axis
    rco, rci = s[BL].split(rc_, factor=4)
    s[BL].reorder(rco, ry_, rx_, rci, yi, xi, ff, nn)
    s[AA].compute_at(s[BL], rx_)
    s[WW].compute_at(s[BL], rx_)
    a, w = normal(Hh, Hh, I_, B_), normal(K_, K_, I_, O_)
    e = (
        torch.conv2d(
            torch.tensor(a).permute(3, 2, 0, 1), torch.tensor(w).permute(3, 2, 0, 1), padding=1
        )
        .permute(2, 3, 1, 0)
        .numpy()
    )
    return s, [A, W, Z], [a, w], e


@case
def conv2d_nchwc():
    # packed layout NCHW8c with in-te packing
    ci, co, h, cb = 16, 16, 8, 8
    X, W = placeholder("X", ci, h, h), placeholder("W", co, ci, 3, 3)
    XP = te.compute(
        (ci // cb, h + 2, h + 2, cb),
        lambda c, y, x, v: te.if_then_else(
            te.all(y > 0, y <= h, x > 0, x <= h), X[c * cb + v, y - 1, x - 1], 0.0
        ),
        "XP",
    )
    WP = te.compute(
        (co // cb, ci // cb, 3, 3, cb, cb),
        lambda o, i, y, x, iv, ov: W[o * cb + ov, i * cb + iv, y, x],
        "WP",
    )
    io, iv, ky, kx = [
        te.reduce_axis((0, e), n) for e, n in ((ci // cb, "io"), (cb, "iv"), (3, "ky"), (3, "kx"))
    ]
    Y = te.compute(
        (co // cb, h, h, cb),
        lambda o, y, x, v: te.sum(
            XP[io, y + ky, x + kx, iv] * WP[o, io, ky, kx, iv, v], axis=[io, ky, kx, iv]
        ),
        "Y",
    )
    Z = te.compute((co, h, h), lambda c, y, x: Y[c // cb, y, x, c % cb], "Z")
    s = te.create_schedule(Z)
    o, y, x, v = s[Y].op.axis
    xo, xi = s[Y].split(x, factor=4)
    s[Y].reorder(o, y, xo, *s[Y].op.reduce_axis, xi, v)
    s[Y].vectorize(v)
    s[Y].unroll(xi)
    s[Y].parallel(o)
    a, w = normal(ci, h, h), normal(co, ci, 3, 3)
    return (
        s,
        [X, W, Z],
        [a, w],
        torch.conv2d(torch.tensor(a)[None], torch.tensor(w), padding=1)[0].numpy(),
    )


@case
def depthwise():
    c, h = 5, 10
    X, W = placeholder("X", c, h, h), placeholder("W", c, 1, 3, 3)
    ky, kx = te.reduce_axis((0, 3), "ky"), te.reduce_axis((0, 3), "kx")
    Z = te.compute(
        (c, h - 2, h - 2),
        lambda q, y, x: te.sum(X[q, y + ky, x + kx] * W[q, 0, ky, kx], axis=[ky, kx]),
        "Z",
    )
    s = te.create_schedule(Z)
    q, y, x = s[Z].op.axis
    yo, yi = s[Z].split(y, 4)
    s[Z].reorder(q, yo, ky, kx, yi, x)
    s[Z].vectorize(x)
    a, w = normal(c, h, h), normal(c, 1, 3, 3)
    return (
        s,
        [X, W, Z],
        [a, w],
        torch.conv2d(torch.tensor(a)[None], torch.tensor(w), groups=c)[0].numpy(),
    )


@case
def gemv():
    A, X = placeholder("A", 50, 70), placeholder("x", 70)
    k = te.reduce_axis((0, 70), "k")
    Y = te.compute((50,), lambda i: te.sum(A[i, k] * X[k], axis=k), "y")
    s = te.create_schedule(Y)
    ko, ki = s[Y].split(k, factor=16)
    s[Y].vectorize(ki, reassociate=True)
    a, x = normal(50, 70), normal(70)
    return s, [A, X, Y], [a, x], a @ x


@case
def gevm_transposed():
    A, X = placeholder("A", 50, 70), placeholder("x", 50)
    k = te.reduce_axis((0, 50), "k")
    Y = te.compute((70,), lambda j: te.sum(A[k, j] * X[k], axis=k), "y")
    a, x = normal(50, 70), normal(50)
    return te.create_schedule(Y), [A, X, Y], [a, x], x @ a


@case
def batch_matmul():
    A, B = placeholder("A", 3, 10, 20), placeholder("B", 3, 12, 20)
    k = te.reduce_axis((0, 20), "k")
    Z = te.compute((3, 10, 12), lambda b, i, j: te.sum(A[b, i, k] * B[b, j, k], axis=k), "Z")
    s = te.create_schedule(Z)
    b, i, j = Z.op.axis
    s[Z].parallel(s[Z].fuse(b, i))
    a, bb = normal(3, 10, 20), normal(3, 12, 20)
    return s, [A, B, Z], [a, bb], a @ bb.transpose(0, 2, 1)


@case
def rfactor_sum():
    A = placeholder("A", 5, 100)
    k = te.reduce_axis((0, 100), "k")
    B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k), "B")
    s = te.create_schedule(B)
    ko, ki = s[B].split(k, factor=16)
    BF = s.rfactor(B, ki)
    s[BF].compute_at(s[B], s[B].op.axis[0])
    a = normal(5, 100)
    return s, [A, B], [a], a.sum(1)


@case
def compute_at_chain():
    X = placeholder("X", 12, 20)
    a = te.compute((12, 20), lambda i, j: X[i, j] * 2, "a")
    b = te.compute((12, 20), lambda i, j: a[i, j] + 1, "b")
    c = te.compute((12, 20), lambda i, j: te.tanh(b[i, j]) - a[i, j], "c")
    s = te.create_schedule(c)
    io, ii = s[c].split(c.op.axis[0], factor=5)
    s[b].compute_at(s[c], ii)
    s[a].compute_at(s[c], io)
    x = normal(12, 20)
    return s, [X, c], [x], np.tanh(x * 2 + 1) - x * 2


@case
def stencil_compute_at():
    X = placeholder("X", 34, 34)
    bx = te.compute((34, 32), lambda y, x: (X[y, x] + X[y, x + 1] + X[y, x + 2]) / 3, "bx")
    by = te.compute((32, 32), lambda y, x: (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) / 3, "by")
    s = te.create_schedule(by)
    yo, xo, yi, xi = s[by].tile(*by.op.axis, 8, 16)
    s[bx].compute_at(s[by], xo)
    s[by].vectorize(xi)
    s[by].parallel(yo)
    s[bx].vectorize(s[bx].op.axis[1])
    x = normal(34, 34)
    h = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return s, [X, by], [x], (h[:-2] + h[1:-1] + h[2:]) / 3


@case
def relu_epilogue_cache_write():
    A, B, Cc, a, b, e = mm(40, 64, 30)
    D = te.compute((40, 64), lambda i, j: te.max(Cc[i, j], 0.0) + 1, "D")
    s = te.create_schedule(D)
    io, jo, ii, ji = s[D].tile(*D.op.axis, 8, 32)
    s[Cc].compute_at(s[D], jo)
    i, j = s[Cc].op.axis
    s[Cc].reorder(s[Cc].op.reduce_axis[0], i, j)
    s[Cc].unroll(i)
    s[Cc].vectorize(j)
    s[D].vectorize(ji)
    return s, [A, B, D], [a, b], np.maximum(e, 0) + 1


@case
def tensorize_fma_packed():
    A, B, Cc, a, b, e = mm(48, 128, 40)
    s = te.create_schedule(Cc)
    io, jo, ii, ji = s[Cc].tile(*Cc.op.axis, 6, 64)
    s[Cc].reorder(jo, io, Cc.op.reduce_axis[0], ii, ji)
    s[Cc].tensorize(Cc.op.reduce_axis[0], "fma")
    p = s.cache_read(B, "packed", [Cc])
    s[p].compute_at(s[Cc], jo)
    return s, [A, B, Cc], [a, b], e


@case
def winograd_f23():
    # small constant matrices by select, as topi did
    Bm = [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]
    X = placeholder("X", 4, 4)

    def const_matrix(m, name):
        def body(i, j):
            now = te.const(0.0)
            for r in range(4):
                for c in range(4):
                    now = te.select(te.all(i == r, j == c), te.const(float(m[r][c])), now)
            return now

        return te.compute((4, 4), body, name)

    B = const_matrix(Bm, "B")
    a, b = te.reduce_axis((0, 4), "a"), te.reduce_axis((0, 4), "b")
    V = te.compute((4, 4), lambda i, j: te.sum(X[a, b] * B[i, a] * B[j, b], axis=[a, b]), "V")
    s = te.create_schedule(V)
    s[B].compute_inline()
    x = normal(4, 4)
    M = np.array(Bm, "float32")
    for ax in V.op.reduce_axis:
        s[V].unroll(ax)
    return s, [X, V], [x], M @ x @ M.T


@case
def transpose_tiled():
    X = placeholder("X", 33, 47)
    Z = te.compute((47, 33), lambda i, j: X[j, i], "Z")
    s = te.create_schedule(Z)
    io, jo, ii, ji = s[Z].tile(*Z.op.axis, 8, 8)
    s[Z].vectorize(ji)
    x = normal(33, 47)
    return s, [X, Z], [x], x.T


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", CASES, ids=lambda each: each.__name__)
def test_a_tutorial_has_numpys_values(make):
    check_program(*make())
