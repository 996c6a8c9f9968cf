# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that users of a te would write, against NumPy and PyTorch."""

import numpy as np
import pytest
import torch
from te_reference import check_program, mm, normal, placeholder

from weft import te

CASES = []
RANDOM = np.random.default_rng(0)


def case(function):
    """Gives a schedule, the kernel's arguments, the arrays that it reads, and what it computes."""
    CASES.append(function)
    return function


@case
def softmax_stages():
    X = placeholder("X", 7, 33)
    k1, k2 = te.reduce_axis((0, 33), "k1"), te.reduce_axis((0, 33), "k2")
    mx = te.compute((7,), lambda i: te.max(X[i, k1], axis=k1), "T_softmax_maxelem")
    ex = te.compute((7, 33), lambda i, j: te.exp(X[i, j] - mx[i]), "T_softmax_exp")
    sm = te.compute((7,), lambda i: te.sum(ex[i, k2], axis=k2), "T_softmax_expsum")
    Z = te.compute((7, 33), lambda i, j: ex[i, j] / sm[i], "T_softmax_norm")
    s = te.create_schedule(Z)
    r = s[Z].op.axis[0]
    for t in (sm, ex, mx):
        s[t].compute_at(s[Z], r)
    x = normal(7, 33)
    e = np.exp(x - x.max(1, keepdims=True))
    return s, [X, Z], [x], e / e.sum(1, keepdims=True)


@case
def cumsum_stages():
    # Hillis-Steele in log2(n) stages
    n = 37
    X = placeholder("X", n)
    t, d = X, 1
    while d < n:
        t = te.compute(
            (n,), lambda i, t=t, d=d: t[i] + te.if_then_else(i >= d, t[i - d], 0.0), f"s{d}"
        )
        d *= 2
    x = normal(n)
    return te.create_schedule(t), [X, t], [x], np.cumsum(x)


@case
def cumsum_triangular():
    n = 25
    X = placeholder("X", 3, n)
    k = te.reduce_axis((0, n), "k")
    Z = te.compute((3, n), lambda b, i: te.sum(te.if_then_else(k <= i, X[b, k], 0.0), axis=k), "Z")
    x = normal(3, n)
    return te.create_schedule(Z), [X, Z], [x], np.cumsum(x, 1)


@case
def gather_rows():
    W, at = placeholder("W", 30, 8), placeholder("I", 5, dtype="int32")
    Z = te.compute((5, 8), lambda i, j: W[at[i], j], "Z")
    w, i = normal(30, 8), RANDOM.integers(0, 30, 5).astype("int32")
    s = te.create_schedule(Z)
    s[Z].vectorize(s[Z].op.axis[1])
    return s, [W, at, Z], [w, i], w[i]


@case
def gather_elements():
    X, at = placeholder("X", 6, 20), placeholder("I", 6, 9, dtype="int64")
    Z = te.compute((6, 9), lambda i, j: X[i, at[i, j]], "Z")
    x, i = normal(6, 20), RANDOM.integers(0, 20, (6, 9))
    s = te.create_schedule(Z)
    s[Z].vectorize(s[Z].op.axis[1])
    return s, [X, at, Z], [x, i], np.take_along_axis(x, i, 1)


@case
def embedding_bag():
    W, at = placeholder("W", 30, 16), placeholder("I", 4, 7, dtype="int64")
    k = te.reduce_axis((0, 7), "k")
    Z = te.compute((4, 16), lambda b, j: te.sum(W[at[b, k], j], axis=k), "Z")
    w, i = normal(30, 16), RANDOM.integers(0, 30, (4, 7))
    return te.create_schedule(Z), [W, at, Z], [w, i], w[i].sum(1)


@case
def one_hot():
    at = placeholder("I", 9, dtype="int32")
    Z = te.compute((9, 11), lambda i, j: te.if_then_else(at[i] == j, 1.0, 0.0), "Z")
    i = RANDOM.integers(0, 11, 9).astype("int32")
    return te.create_schedule(Z), [at, Z], [i], np.eye(11, dtype="float32")[i]


@case
def pad_reflect():
    X = placeholder("X", 10)
    Z = te.compute(
        (16,),
        lambda i: X[te.if_then_else(i < 3, 3 - i, te.if_then_else(i < 13, i - 3, 21 - i))],
        "Z",
    )
    x = normal(10)
    return te.create_schedule(Z), [X, Z], [x], np.pad(x, 3, "reflect")


@case
def pad_conditional_vector():
    X = placeholder("X", 5, 9)
    Z = te.compute(
        (8, 14),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 6, j >= 2, j < 11), X[i - 1, j - 2], -1.0),
        "Z",
    )
    s = te.create_schedule(Z)
    jo, ji = s[Z].split(Z.op.axis[1], factor=8)
    s[Z].vectorize(ji)
    x = normal(5, 9)
    return s, [X, Z], [x], np.pad(x, ((1, 2), (2, 3)), constant_values=-1)


@case
def layer_norm():
    X, G, Bt = placeholder("X", 6, 48), placeholder("g", 48), placeholder("b", 48)
    k1, k2 = te.reduce_axis((0, 48), "k1"), te.reduce_axis((0, 48), "k2")
    mean = te.compute((6,), lambda i: te.sum(X[i, k1] / 48.0, axis=k1), "mean")
    var = te.compute(
        (6,), lambda i: te.sum((X[i, k2] - mean[i]) * (X[i, k2] - mean[i]) / 48.0, axis=k2), "var"
    )
    Z = te.compute(
        (6, 48), lambda i, j: (X[i, j] - mean[i]) * te.rsqrt(var[i] + 1e-5) * G[j] + Bt[j], "Z"
    )
    x, g, b = normal(6, 48), normal(48), normal(48)
    return (
        te.create_schedule(Z),
        [X, G, Bt, Z],
        [x, g, b],
        torch.nn.functional.layer_norm(
            torch.tensor(x), (48,), torch.tensor(g), torch.tensor(b)
        ).numpy(),
    )


@case
def strided_views():
    X = placeholder("X", 20, 30)
    Z = te.compute((7, 10), lambda i, j: X[i * 3 - 0, 29 - j * 3], "Z")
    x = normal(20, 30)
    s = te.create_schedule(Z)
    s[Z].vectorize(Z.op.axis[1])
    return s, [X, Z], [x], x[::3, ::-3][:7, :10]


@case
def strided_inputs():
    X = placeholder("X", 6, 5)
    Z = te.compute((6, 5), lambda i, j: X[i, j] * 2, "Z")
    x = normal(10, 12).T[::2, ::2][:6, :5]
    return te.create_schedule(Z), [X, Z], [x], x * 2


@case
def multiple_outputs():
    A, B = placeholder("A", 9, 8), placeholder("B", 9, 8)
    S, D = te.compute((9, 8), lambda i, j: (A[i, j] + B[i, j], A[i, j] * B[i, j]), name="B0")
    a, b = normal(9, 8), normal(9, 8)
    return te.create_schedule([S.op, D.op]), [A, B, S, D], [a, b], (a + b, a * b)


@case
def cast_chain():
    X = placeholder("X", 40)
    Z = te.compute(
        (40,), lambda i: te.cast(te.cast(te.cast(X[i] * 10, "int32"), "int8"), "float64") / 2, "Z"
    )
    x = normal(40)
    return (
        te.create_schedule(Z),
        [X, Z],
        [x],
        (x * 10).astype("int32").astype("int8").astype("float64") / 2,
    )


@case
def int8_gemm_int32():
    A, B = placeholder("A", 9, 32, dtype="int8"), placeholder("B", 32, 10, dtype="int8")
    k = te.reduce_axis((0, 32), "k")
    Z = te.compute(
        (9, 10), lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k), "Z"
    )
    a, b = (
        RANDOM.integers(-128, 128, (9, 32)).astype("int8"),
        RANDOM.integers(-128, 128, (32, 10)).astype("int8"),
    )
    return te.create_schedule(Z), [A, B, Z], [a, b], a.astype("int64") @ b.astype("int64")


@case
def shifts_and_bits():
    A = placeholder("A", 50, dtype="int32")
    Z = te.compute(
        (50,), lambda i: ((A[i] << 3) | (A[i] >> 2)) & te.const(0xFFFF, "int32") ^ 5, "Z"
    )
    a = RANDOM.integers(-10000, 10000, 50).astype("int32")
    return te.create_schedule(Z), [A, Z], [a], ((a << 3) | (a >> 2)) & 0xFFFF ^ 5


@case
def min_prod():
    A = placeholder("A", 4, 5, 6)
    k, q = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 6), "q")
    m = te.compute((4,), lambda i: te.min(A[i, k, q], axis=[k, q]), "m")
    l2 = te.reduce_axis((0, 6), "l2")
    p = te.compute((4, 5), lambda i, j: te.prod(A[i, j, l2], axis=l2), "p")
    a = normal(4, 5, 6)
    return te.create_schedule([m, p]), [A, m, p], [a], (a.min((1, 2)), a.prod(2))


@case
def maxpool():
    X = placeholder("X", 3, 9, 9)
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")
    Z = te.compute((3, 4, 4), lambda c, y, x: te.max(X[c, y * 2 + a, x * 2 + b], axis=[a, b]), "Z")
    x = normal(3, 9, 9)
    return (
        te.create_schedule(Z),
        [X, Z],
        [x],
        torch.nn.functional.max_pool2d(torch.tensor(x), 3, 2).numpy(),
    )


@case
def avgpool_padded_count():
    X = placeholder("X", 2, 7, 7)
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")
    P = te.compute(
        (2, 9, 9),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y < 8, x >= 1, x < 8), X[c, y - 1, x - 1], 0.0
        ),
        "P",
    )
    S = te.compute((2, 4, 4), lambda c, y, x: te.sum(P[c, y * 2 + a, x * 2 + b], axis=[a, b]), "S")

    def cnt(y):
        return te.min(y * 2 - 1 + 3, 7) - te.max(y * 2 - 1, 0)

    Z = te.compute((2, 4, 4), lambda c, y, x: S[c, y, x] / te.cast(cnt(y) * cnt(x), "float32"), "Z")
    x = normal(2, 7, 7)
    return (
        te.create_schedule(Z),
        [X, Z],
        [x],
        torch.nn.functional.avg_pool2d(torch.tensor(x), 3, 2, 1, count_include_pad=False).numpy(),
    )


@case
def upsample_nearest():
    X = placeholder("X", 2, 5, 5)
    Z = te.compute((2, 10, 15), lambda c, y, x: X[c, te.indexdiv(y, 2), te.indexdiv(x, 3)], "Z")
    x = normal(2, 5, 5)
    return te.create_schedule(Z), [X, Z], [x], x.repeat(2, 1).repeat(3, 2)


@case
def bilinear():
    X = placeholder("X", 6, 6)

    def body(y, x):
        fy, fx = te.cast(y, "float32") * (5.0 / 10), te.cast(x, "float32") * (5.0 / 10)
        y0, x0 = te.cast(te.floor(fy), "int32"), te.cast(te.floor(fx), "int32")
        y1, x1 = te.min(y0 + 1, 5), te.min(x0 + 1, 5)
        dy, dx = fy - te.floor(fy), fx - te.floor(fx)
        return (X[y0, x0] * (1 - dx) + X[y0, x1] * dx) * (1 - dy) + (
            X[y1, x0] * (1 - dx) + X[y1, x1] * dx
        ) * dy

    Z = te.compute((11, 11), body, "Z")
    x = normal(6, 6)
    return (
        te.create_schedule(Z),
        [X, Z],
        [x],
        torch.nn.functional.interpolate(
            torch.tensor(x)[None, None], (11, 11), mode="bilinear", align_corners=True
        )[0, 0].numpy(),
    )


@case
def concat():
    A, B = placeholder("A", 4, 3), placeholder("B", 4, 6)
    Z = te.compute((4, 9), lambda i, j: te.if_then_else(j < 3, A[i, j], B[i, j - 3]), "Z")
    a, b = normal(4, 3), normal(4, 6)
    s = te.create_schedule(Z)
    s[Z].vectorize(Z.op.axis[1])
    return s, [A, B, Z], [a, b], np.concatenate([a, b], 1)


@case
def scalar_result():
    X = placeholder("X", 100)
    k = te.reduce_axis((0, 100), "k")
    Z = te.compute((), lambda: te.sum(X[k], axis=k), "Z")
    x = normal(100)
    return te.create_schedule(Z), [X, Z], [x], x.sum()


@case
def scalar_placeholder():
    X, a = placeholder("X", 10), te.placeholder((), name="alpha")
    Z = te.compute((10,), lambda i: X[i] * a(), "Z")
    x = normal(10)
    return te.create_schedule(Z), [X, a, Z], [x, np.array(3, "float32")], x * 3


@case
def isnan_fill():
    X = placeholder("X", 30)
    Z = te.compute((30,), lambda i: te.if_then_else(te.isnan(X[i]), 0.0, X[i]), "Z")
    x = normal(30)
    x[::7] = np.nan
    return te.create_schedule(Z), [X, Z], [x], np.nan_to_num(x)


@case
def histogram():
    at = placeholder("I", 200, dtype="int32")
    k = te.reduce_axis((0, 200), "k")
    Z = te.compute((10,), lambda b: te.sum(te.cast(at[k] == b, "int32"), axis=k), "Z")
    i = RANDOM.integers(0, 10, 200).astype("int32")
    return te.create_schedule(Z), [at, Z], [i], np.bincount(i, minlength=10)


@case
def rank_sort():
    X = placeholder("X", 25)
    k = te.reduce_axis((0, 25), "k")
    q = te.reduce_axis((0, 25), "q")
    rank = te.compute(
        (25,),
        lambda i: te.sum(
            te.cast(te.any(X[k] < X[i], te.all(X[k] == X[i], k < i)), "int64"), axis=k
        ),
        "rank",
    )
    Z = te.compute((25,), lambda i: te.sum(te.if_then_else(rank[q] == i, X[q], 0.0), axis=q), "Z")
    x = normal(25)
    return te.create_schedule(Z), [X, Z], [x], np.sort(x)


@case
def matmul_fp16():
    A, B = placeholder("A", 16, 24, dtype="float16"), placeholder("B", 24, 16, dtype="float16")
    k = te.reduce_axis((0, 24), "k")
    Z = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "Z")
    a, b = normal(16, 24).astype("float16"), normal(24, 16).astype("float16")
    return (
        te.create_schedule(Z),
        [A, B, Z],
        [a, b],
        (a.astype("float32") @ b.astype("float32")).astype("float16"),
    )


@case
def group_norm():
    X = placeholder("X", 2, 6, 8)

    def st(name, f):
        c, q = te.reduce_axis((0, 3), name + "c"), te.reduce_axis((0, 8), name + "l")
        return te.compute(
            (2, 2), lambda b, g: te.sum(f(b, g, X[b, g * 3 + c, q]), axis=[c, q]), name
        )

    m = st("m", lambda b, g, x: x / 24)
    v = st("v", lambda b, g, x: (x - m[b, g]) ** 2 / 24)
    Z = te.compute(
        (2, 6, 8), lambda b, c, q: (X[b, c, q] - m[b, c // 3]) / te.sqrt(v[b, c // 3] + 1e-5), "Z"
    )
    x = normal(2, 6, 8)
    return (
        te.create_schedule(Z),
        [X, Z],
        [x],
        torch.nn.functional.group_norm(torch.tensor(x), 2).numpy(),
    )


@case
def attention_head():
    Q, K, V = placeholder("Q", 10, 16), placeholder("K", 12, 16), placeholder("V", 12, 16)
    d, m_, s_, k = (
        te.reduce_axis((0, e), n) for e, n in ((16, "d"), (12, "m"), (12, "s"), (12, "k"))
    )
    S = te.compute((10, 12), lambda i, j: te.sum(Q[i, d] * K[j, d], axis=d), "S")
    M = te.compute((10,), lambda i: te.max(S[i, m_], axis=m_), "M")
    E = te.compute((10, 12), lambda i, j: te.exp((S[i, j] - M[i]) * 0.25), "E")
    T = te.compute((10,), lambda i: te.sum(E[i, s_], axis=s_), "T")
    Z = te.compute((10, 16), lambda i, j: te.sum(E[i, k] / T[i] * V[k, j], axis=k), "Z")
    q, kk, v = normal(10, 16), normal(12, 16), normal(12, 16)
    return (
        te.create_schedule(Z),
        [Q, K, V, Z],
        [q, kk, v],
        torch.nn.functional.scaled_dot_product_attention(
            *(torch.tensor(t)[None] for t in (q, kk, v))
        )[0].numpy(),
    )


def sizes(m, n, k):
    def product():
        A, B, Cc, a, b, e = mm(m, n, k)
        return te.create_schedule(Cc), [A, B, Cc], [a, b], e

    product.__name__ = f"product_{m}_{n}_{k}"
    return case(product)


for t in ((1, 1, 1), (7, 7, 7), (1000, 3, 5), (1, 13, 7), (31, 1, 257), (2, 2, 1000)):
    sizes(*t)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", CASES, ids=lambda each: each.__name__)
def test_a_program_has_numpys_values(make):
    check_program(*make())
