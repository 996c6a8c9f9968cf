# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of one's own, of tuples too, and of terms that a condition chooses."""

import numpy as np
import pytest
import torch
from te_reference import check_program, normal, placeholder

from weft import te

CASES = []
RANDOM = np.random.default_rng(0)


def case(function):
    """Gives a schedule, the kernel's arguments, the arrays that it reads, and what it computes."""
    CASES.append(function)
    return function


def arg_reducer(name, better, ident):
    def fcombine(x, y):
        lhs = te.select(better(x[1], y[1]), x[0], y[0])
        rhs = te.select(better(x[1], y[1]), x[1], y[1])
        return lhs, rhs

    def fidentity(t0, t1):
        return te.const(-1, t0), ident(t1)

    return te.comm_reducer(fcombine, fidentity, name=name)


@case
def argmax_tuple():
    argmax = arg_reducer("argmax", lambda a, b: a >= b, te.min_value)
    m, n = 13, 50
    idx, val = placeholder("idx", m, n, dtype="int32"), placeholder("val", m, n)
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    i_, v = np.tile(np.arange(n, dtype="int32"), (m, 1)), normal(m, n)
    return (
        te.create_schedule([T0.op, T1.op]),
        [idx, val, T0, T1],
        [i_, v],
        (v.argmax(1).astype("int32"), v.max(1)),
    )


@case
def argmin_axis():
    argmin = arg_reducer("argmin", lambda a, b: a <= b, te.max_value)
    X = placeholder("X", 20, 6)
    k = te.reduce_axis((0, 20), "k")
    at, V = te.compute((6,), lambda j: argmin((k, X[k, j]), axis=k), name="T")
    x = np.round(normal(20, 6))
    return te.create_schedule(at), [X, at], [x], x.argmin(0)


def argmax_of(rows, columns, dim):
    """Its schedule, X, the place and the value of the largest along `dim`, and the axis of that."""
    argmax = arg_reducer("argmax", lambda a, b: a >= b, te.min_value)
    X = placeholder("X", rows, columns)
    k = te.reduce_axis((0, X.shape[dim]), "k")
    kept = X.shape[1 - dim]
    at, V = te.compute(
        (kept,), lambda i: argmax((k, X[i, k] if dim else X[k, i]), axis=k), name="T"
    )
    return te.create_schedule([at, V]), X, at, V, k


@case
def argmax_scheduled():
    s, X, at, V, _ = argmax_of(12, 40, 1)
    for t in (at, V):
        ko, ki = s[t].split(t.op.reduce_axis[0], factor=8)
        io, ii = s[t].split(t.op.axis[0], factor=5)
        s[t].reorder(io, ko, ii, ki)
        s[t].parallel(io)
    x = normal(12, 40)
    return s, [X, at, V], [x], (x.argmax(1), x.max(1))


@case
def argmax_vector_rows():
    s, X, at, V, k = argmax_of(40, 24, 0)
    for t in (at, V):
        jo, ji = s[t].split(t.op.axis[0], factor=16)
        s[t].reorder(jo, k, ji)
        s[t].vectorize(ji)
    x = normal(40, 24)
    return s, [X, at, V], [x], (x.argmax(0), x.max(0))


@case
def argmax_vector_across():
    s, X, at, V, _ = argmax_of(9, 75, 1)
    for t in (at, V):
        ko, ki = s[t].split(t.op.reduce_axis[0], factor=32)
        s[t].vectorize(ki, reassociate=True)
    x = normal(9, 75)
    return s, [X, at, V], [x], (x.argmax(1), x.max(1))


@case
def custom_product_reducer():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, dtype=t), name="product")
    A = placeholder("A", 6, 10)
    k = te.reduce_axis((0, 10), "k")
    B = te.compute((6,), lambda i: product(A[i, k], axis=k), "B")
    a = normal(6, 10)
    return te.create_schedule(B.op), [A, B], [a], a.prod(1)


@case
def custom_xor_rfactor():
    red = te.comm_reducer(lambda x, y: x ^ y, lambda t: te.const(0, dtype=t), name="xor")
    A = placeholder("A", 6, 32, dtype="int32")
    k = te.reduce_axis((0, 32), "k")
    B = te.compute((6,), lambda i: red(A[i, k], axis=k), "B")
    s = te.create_schedule(B)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=8)
    s.rfactor(B, ki)
    a = RANDOM.integers(0, 1000, (6, 32)).astype("int32")
    return s, [A, B], [a], np.bitwise_xor.reduce(a, 1)


@case
def logsumexp_tuple():
    # online softmax statistics by a tuple reducer
    def comb(x, y):
        m = te.max(x[0], y[0])
        return m, x[1] * te.exp(x[0] - m) + y[1] * te.exp(y[0] - m)

    red = te.comm_reducer(comb, lambda a, b: (te.min_value(a), te.const(0, b)), name="online")
    X = placeholder("X", 6, 40)
    k = te.reduce_axis((0, 40), "k")
    Mx, S = te.compute((6,), lambda i: red((X[i, k], te.const(1.0)), axis=k), name="M")
    L = te.compute((6,), lambda i: te.log(S[i]) + Mx[i], "L")
    x = normal(6, 40)
    return (
        te.create_schedule(L),
        [X, L],
        [x],
        np.log(np.exp(x.astype("float64")).sum(1)).astype("float32"),
    )


@case
def welford_tuple():
    def comb(x, y):
        n = x[0] + y[0]
        d = y[1] - x[1]
        safe = te.if_then_else(n > 0, n, 1.0)
        return n, x[1] + d * y[0] / safe, x[2] + y[2] + d * d * x[0] * y[0] / safe

    red = te.comm_reducer(
        comb, lambda a, b, c: (te.const(0, a), te.const(0, b), te.const(0, c)), "welford"
    )
    X = placeholder("X", 5, 64)
    k = te.reduce_axis((0, 64), "k")
    N, M, Q = te.compute(
        (5,), lambda i: red((te.const(1.0), X[i, k], te.const(0.0)), axis=k), name="W"
    )
    V = te.compute((5,), lambda i: Q[i] / N[i], "V")
    x = normal(5, 64)
    return te.create_schedule([M, V]), [X, M, V], [x], (x.mean(1), x.var(1))


@case
def reduce_where():
    A = placeholder("A", 8, 12)
    k = te.reduce_axis((0, 12), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k, where=k > i), "B")
    a = normal(8, 12)
    return te.create_schedule(B), [A, B], [a], np.triu(a, 1).sum(1)


@case
def max_where():
    A = placeholder("A", 8, 12)
    k = te.reduce_axis((0, 12), "k")
    B = te.compute((8,), lambda i: te.max(A[i, k], axis=k, where=te.any(k > i, k == 0)), "B")
    a = normal(8, 12)
    m = np.arange(12)[None] > np.arange(8)[:, None]
    m[:, 0] = True
    return te.create_schedule(B), [A, B], [a], np.where(m, a, -np.inf).max(1)


@pytest.mark.parametrize("make", CASES, ids=lambda each: each.__name__)
def test_a_reduction_has_numpys_values(make):
    check_program(*make())


def pairs(name="pairs", m=6, n=20):
    """The maxima of rows and their sums, reduced together."""
    both = te.comm_reducer(
        lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]),
        lambda a, b: (te.min_value(a), te.const(0, b)),
        name,
    )
    x, k = placeholder("X", m, n), te.reduce_axis((0, n), "k")
    most, total = te.compute((m,), lambda i: both((x[i, k], x[i, k]), axis=k), name="Z")
    return x, k, most, total


def test_formulas_and_loops_say_what_a_reducer_does():
    x, k, most, total = pairs()
    assert str(total) == (
        "Z.v1[i] = pairs((X[i, k], X[i, k]), axis=(k))[1]  for i < 6, k < 20  "
        "by pairs(x, y) = (max(x[0], y[0]), x[1] + y[1]) from (-3.4028234663852886e+38, 0)"
    )
    assert str(te.create_schedule(total)).splitlines()[-1] == (
        "    Z.v1[i] = pairs(Z.v1[i], X[i, k])"
    )
    one = te.comm_reducer(lambda p, q: p + q, lambda t: te.const(0, t), "red")
    other = te.comm_reducer(lambda p, q: te.max(p, q), lambda t: te.const(0, t), "red")
    keys = [
        te.create_schedule(te.compute((6,), lambda i, r=r: r(x[i, k], axis=k), "Z")).key()
        for r in (one, other)
    ]
    assert keys[0] != keys[1]
    assert one(x[0, 0], x[0, 1]).dtype == "float32"  # of two expressions, the combiner itself


def test_reducers_that_make_no_sense_are_refused():
    x, k = placeholder("X", 4, 5), te.reduce_axis((0, 5), "k")
    other = placeholder("other", 3)

    def refused(combiner, identity, message, value=None):
        reduce = te.comm_reducer(combiner, identity, "mine")
        with pytest.raises(te.TEError, match=message):
            te.compute((4,), lambda i: reduce(x[i, k] if value is None else value(i), axis=k), "Z")

    zero = te.const(0.0)
    refused(lambda p, q: p + q, lambda t: other[0], "expected a constant as the identity")
    refused(lambda p, q: p < q, lambda t: zero, "expected float32 from the combiner, found `x < y`")
    refused(lambda p, q: p + other[0], lambda t: zero, r"found `other\[0\]` in it")
    refused(
        lambda p, q: (p[0],),
        lambda a, b: (zero, zero),
        "expected 2 results of the combiner, found 1",
        lambda i: (x[i, k], x[i, k]),
    )
    with pytest.raises(te.TEError, match="expected two functions"):
        te.comm_reducer(lambda p, q: p, 0)
    with pytest.raises(te.TEError, match="te.sum: expected no init"):
        te.sum(x[0, k], axis=k, init=1.0)
    leaked = []
    keep = te.comm_reducer(lambda p, q: leaked.append(p) or p + q, lambda t: zero)
    te.compute((4,), lambda i: keep(x[i, k], axis=k), "Z")
    with pytest.raises(te.TEError, match="`x` of a combiner is used outside of it"):
        te.compute((4,), lambda i: leaked[0] + i, "Z")


def test_steps_that_several_values_do_not_allow():
    x, k, most, total = pairs()
    s = te.create_schedule([most, total])
    before = s.key()
    with pytest.raises(te.ScheduleError, match="one of 2 results that are reduced together"):
        s.rfactor(total, k)
    with pytest.raises(te.ScheduleError, match="one of 2 results that are reduced together"):
        s[total].decompose_reduction(k)
    assert s.key() == before
    doubled = te.compute((6, 20), lambda i, j: x[i, j] * 2, "doubled")
    both = te.comm_reducer(
        lambda p, q: (te.max(p[0], q[0]), p[1] + q[1]), lambda a, b: (te.const(0, a), 0)
    )
    q = te.reduce_axis((0, 20), "q")
    z, _ = te.compute((6,), lambda i: both((doubled[i, q], doubled[i, q]), axis=q), name="Z")
    s = te.create_schedule(z)
    (i,) = z.op.axis
    s[z].reorder(q, i)
    with pytest.raises(te.ScheduleError, match="it carries 2 values in registers"):
        s[doubled].compute_at(s[z], q)
    s[z].reorder(i, q)
    s[doubled].compute_at(s[z], i)
    a = normal(6, 20)
    found = te.build(s, [x, z], default=False)(a)
    np.testing.assert_array_equal(found, np.maximum((2 * a).max(1), 0))


def test_a_tuple_in_loops_that_memory_would_carry():
    x, k, most, total = pairs(m=10, n=30)
    s = te.create_schedule([most, total])
    for each in (most, total):
        outer, inner = s[each].split(k, factor=7)
        s[each].reorder(outer, each.op.axis[0], inner)
    a = normal(10, 30)
    found = te.build(s, [x, most, total], default=False)(a)
    np.testing.assert_array_equal(found[0], a.max(1))
    np.testing.assert_allclose(found[1], a.sum(1), rtol=1e-5, atol=1e-5)


def test_a_reducer_of_ones_own_has_no_gradient():
    @te.kernel
    def largest(x):
        k = te.reduce_axis((0, x.shape[1]), "k")
        most = te.comm_reducer(te.max, te.min_value, "most")
        return te.compute((x.shape[0],), lambda i: most(x[i, k], axis=k), "Z")

    x = torch.randn(3, 9, requires_grad=True)
    with pytest.raises(te.TEError, match="found the reduction most of one's own"):
        largest(x).sum().backward()
    torch.testing.assert_close(largest(x.detach()), x.detach().amax(1))


@pytest.mark.parametrize("rows, columns", [(37, 10), (5, 100), (16, 1), (2, 3), (1, 50)])
def test_the_default_schedule_keeps_the_order_of_a_combiner(rows, columns):
    """Of equal values, and of NaNs, which this combiner forgets, the order decides."""
    s, X, at, V, _ = argmax_of(rows, columns, 1)
    x = np.round(normal(rows, columns))
    x[RANDOM.random(x.shape) < 0.1] = np.nan
    text = te.default_schedule([at, V]).save()
    assert "reassociate" not in text and ("vectorize" in text) == (rows > 1)
    plain, default = (
        te.build(each, [X, at, V], default=False) for each in (s, te.default_schedule([at, V]))
    )
    for a, b in zip(plain(x), default(x)):
        np.testing.assert_array_equal(a, b)


def test_a_reducer_that_is_one_of_tes_own():
    """It has that one's gradient and schedules; the identity decides, too."""
    x, k = placeholder("X", 4, 9), te.reduce_axis((0, 9), "k")
    n = placeholder("N", 4, 9, dtype="int8")
    for combine, identity, array, expected in [
        (lambda a, b: a + b, 0, x, "sum(X[i, k], axis=k)"),
        (lambda a, b: b * a, 1, x, "prod(X[i, k], axis=k)"),
        (lambda a, b: b * a, 1, n, "prod(N[i, k], axis=k, dtype=int8)"),
        (te.maximum, -128, n, "max(N[i, k], axis=k)"),
        (te.minimum, float("inf"), x, "min(X[i, k], axis=k)"),
        (te.maximum, 0, x, "mine(X[i, k], axis=(k))"),
        (lambda a, b: a - b, 0, x, "mine(X[i, k], axis=(k))"),
        (lambda a, b: a + a, 0, x, "mine(X[i, k], axis=(k))"),
    ]:
        mine = te.comm_reducer(combine, lambda t, v=identity: te.const(v, t), "mine")
        made = te.compute((4,), lambda i, m=mine, a=array: m(a[i, k], axis=k), "Z")
        assert expected in str(made)

    @te.kernel
    def product(x):
        k = te.reduce_axis((0, x.shape[1]), "k")
        mine = te.comm_reducer(lambda a, b: a * b, lambda t: te.const(1, t), "mine")
        return te.compute((x.shape[0],), lambda i: mine(x[i, k], axis=k, where=k > 1), "Z")

    x = torch.randn(3, 9, requires_grad=True)
    torch.testing.assert_close(product(x), x[:, 2:].prod(1))
    found = torch.autograd.grad(product(x).sum(), x)
    torch.testing.assert_close(found, torch.autograd.grad(x[:, 2:].prod(1).sum(), x))


def test_one_of_several_values_that_conditions_guard():
    """The branches of the other one are dead code, which was freed twice."""
    x = placeholder("X", 9)
    both = te.comm_reducer(
        lambda a, b: (te.maximum(a[0], b[0]), a[1] + b[1]),
        lambda s, t: (te.min_value(s), te.const(0, t)),
    )

    def inside(axis):
        return te.if_then_else(te.all(axis * 2 >= 1, axis * 2 - 1 < 4), x[axis * 2 - 1], 1)

    v = normal(9)
    for extent in (1, 4):
        r = te.reduce_axis((0, extent), "r")
        z = te.compute((), lambda r=r: both((inside(r), te.exp(inside(r))), axis=r)[1], "Z")
        found = te.build(te.create_schedule(z), [x, z], default=False)(v)
        values = [v[2 * n - 1] if 0 <= 2 * n - 1 < 4 else 1 for n in range(extent)]
        np.testing.assert_allclose(found, np.exp(values).sum(), rtol=1e-5)


@pytest.mark.parametrize("rows", [(), (3,)])
@pytest.mark.parametrize("size", [1, 40])
def test_several_values_across_their_only_loop(rows, size):
    """Without dims it was an error of an index; halves are kept in registers, too."""
    x = placeholder("X", *rows, size, dtype="float16")
    k = te.reduce_axis((0, size), "k")
    both = te.comm_reducer(
        lambda a, b: (te.maximum(a[0], b[0]), a[1] + b[1]),
        lambda s, t: (te.min_value(s), te.const(0, t)),
    )
    total = te.compute(rows, lambda *i: te.sum(x(*i, k), axis=k), "T")
    most, added = te.compute(
        rows, lambda *i: both((x(*i, k), te.cast(x(*i, k), "float32")), axis=k), "M"
    )
    s = te.create_schedule([most, added, total])
    for each in (most, added, total):
        s[each].vectorize(k, reassociate=True)
    v = normal(*rows, size).astype("float16")
    found = te.build(s, [x, most, added, total])(v)
    np.testing.assert_array_equal(found[0], v.max(-1))
    for each in found[1:]:
        np.testing.assert_allclose(each, v.astype("float32").sum(-1), rtol=2e-3, atol=2e-2)
