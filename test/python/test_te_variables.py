# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formulas with `te.var`: functions of arrays of any sizes, and schedules of such formulas."""

import numpy as np
import pytest
import torch
from te_reference import normal, placeholder

import weft
from weft import te


def product():
    n, m, d = te.var("n"), te.var("m"), te.var("d")
    a, b = placeholder("A", n, d), placeholder("B", d, m)
    k = te.reduce_axis((0, d), "k")
    return a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")


def blocked():
    a, b, c = product()
    s = te.create_schedule(c.op)
    xo, yo, xi, yi = s[c].tile(*c.op.axis, 4, 16)
    (k,) = c.op.reduce_axis
    ko, ki = s[c].split(k, factor=8)
    s[c].reorder(xo, yo, ko, ki, xi, yi)
    copied = s.cache_read(b, "packed", [c])
    s[copied].compute_at(s[c], ko)
    s[c].vectorize(yi)
    return a, b, c, s


def test_each_size_has_its_values():
    a, b, c, s = blocked()
    assert str(c) == "C[i, j] = sum(A[i, k] * B[k, j], axis=k)  for i < n, j < m, k < d"
    assert str(s).startswith("# as it is for n = 64, d = 64, m = 64\nfor i.outer in 16:")
    f, g = te.build(s, [a, b, c], "mm"), te.build(c, [a, b, c], "mm")
    assert str(f) == "<te.SizedFunction mm(A, B, C)>"
    for n, d, m in [(64, 64, 64), (3, 7, 5), (1, 1, 1), (70, 9, 33), (0, 4, 4)]:
        x, y = normal(n, d), normal(d, m)
        for function in (f, g):
            np.testing.assert_allclose(function(x, y), x @ y, rtol=1e-5, atol=1e-5)
            z = torch.full((n, m), 9.0)
            function(torch.from_numpy(x), torch.from_numpy(y), z)
            torch.testing.assert_close(z, torch.from_numpy(x @ y))


def test_schedules_of_variables_are_data():
    *_, s = blocked()
    *_, c, again = blocked()
    assert s == again and s.copy() == s and hash(s.copy()) == hash(s)
    fresh = te.create_schedule(c).load(s.save())
    assert str(fresh) == str(s)
    key = s.key()
    with pytest.raises(te.ScheduleError, match="carries the reduction"):
        s[s.outputs[0]].vectorize(s[s.outputs[0]].leaf_iter_vars[2])
    assert s.key() == key
    n = te.var("n")
    x = placeholder("A", n)
    numbers = placeholder("A", 64)
    y = te.compute((n,), lambda i: x[i] + 1, "Y")
    z = te.compute((64,), lambda i: numbers[i] + 1, "Y")
    assert te.create_schedule(y) != te.create_schedule(z)


def test_a_step_that_is_illegal_for_some_sizes_says_for_which():
    n = te.var("n")
    x = placeholder("X", n)
    y = te.compute((n,), lambda i: x[i] + 1, "Y")
    s = te.create_schedule(y)
    s[y].vectorize(y.op.axis[0])
    f = te.build(s, [x, y])
    assert (f(np.zeros(100, "float32")) == 1).all()
    with pytest.raises(te.ScheduleError, match=r"more than the 1024 .* \(for n = 2000\)"):
        f(np.zeros(2000, "float32"))


def test_shapes_that_do_not_go_together():
    a, b, c = product()
    f = te.build(c, [a, b, c])
    x, y = normal(3, 4), normal(4, 5)
    refused = [
        ((x, normal(5, 5)), r"'B': expected d = 4 in dim 0, found 5 \(d = 4 is dim 1 of A\)"),
        ((x, y, normal(3, 6)), r"'C': expected m = 5 in dim 1, found 6"),
        ((x, normal(4)), "'B': expected 2 dims, found 1"),
        ((x,), r"expected 3 arguments \(A, B, C\), or the 2 that are read, found 1"),
        ((x, y.astype("float64")), "'B': expected dtype float32, found float64"),
    ]
    for given, message in refused:
        with pytest.raises(weft.errors.ArgumentError, match=message):
            f(*given)


def test_sizes_follow_from_expressions_of_them():
    n, m = te.var("n"), te.size_var("m")
    w = placeholder("W", n * 4, m + 1)
    f = te.compute((n, m), lambda i, j: w[i * 4, j] + w[i * 4 + 3, j + 1], "F")
    a = normal(12, 6)
    np.testing.assert_array_equal(te.build(f, [w, f])(a), a[::4, :-1] + a[3::4, 1:])
    for wrong in (normal(13, 6), normal(12, 0)):
        with pytest.raises(weft.errors.ArgumentError, match="'W': expected (n [*] 4|m [+] 1) in"):
            te.build(f, [w, f])(wrong)
    x = placeholder("X", n)
    inner = te.compute((n - 2,), lambda i: x[i] + x[i + 2], "I")
    g = te.build(inner, [x, inner])
    np.testing.assert_array_equal(g(a[0]), a[0, :-2] + a[0, 2:])
    with pytest.raises(te.TEError, match="I: n - 2: expected a size of at least 0, found -1 for"):
        g(a[0, :1])
    # What reads too far does so only for some sizes, and is refused for those.
    h = te.compute((m,), lambda j: x[j], "H")
    k = te.build(h, [x, h, m])
    assert (k(a[0], 3) == a[0, :3]).all()
    with pytest.raises(te.TEError, match="reads from 0 to 6 in dim 0 of X, which has 6"):
        k(a[0], 7)


def test_variables_as_arguments():
    n, x, k = te.var("n"), te.var("x", "float32"), te.var("k")
    a = placeholder("A", n)
    b = te.compute((n,), lambda i: te.if_then_else(i < k, a[i] * x + n, 0.0), "B")
    f = te.build(b, [x, a, k, b])
    v = normal(9)
    expected = np.where(np.arange(9) < 4, v * np.float32(2.5) + 9, 0)
    np.testing.assert_allclose(f(2.5, v, 4), expected, rtol=1e-6)
    result = torch.empty(9)
    f(2.5, torch.from_numpy(v), 4, result)
    torch.testing.assert_close(result, torch.from_numpy(expected.astype("float32")))
    ones = te.compute((n,), lambda i: te.const(1.0), "ones")
    g = te.build(ones, [ones, n])
    z = np.zeros(5, "float32")
    g(z, 5)
    assert (z == 1).all()
    assert g(7).shape == (7,)
    with pytest.raises(weft.errors.ArgumentError, match="'n': expected a size of at least 0"):
        g(-1)
    with pytest.raises(weft.errors.ArgumentError, match="no argument tells the size n"):
        te.build(ones, [ones])()
    with pytest.raises(te.TEError, match="expected x among the arguments"):
        te.build(b, [a, k, b])
    with pytest.raises(te.TEError, match="q is an argument and nothing is computed from it"):
        te.build(b, [a, te.var("q"), x, k, b])


def test_reductions_of_tuples_and_gradients():
    n, d = te.var("n"), te.var("d")
    a, seed = placeholder("A", n, d), placeholder("H", n)
    k = te.reduce_axis((0, d), "k")
    argmax = te.comm_reducer(
        lambda x, y: (te.where(x[1] >= y[1], x[0], y[0]), te.where(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
    )
    where, most = te.compute((n,), lambda i: argmax((k.var, a[i, k]), axis=k), "M")
    f = te.build([where, most], [a, where, most])
    square = te.compute((n,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), "S")
    (g,) = te.gradient(square, [a], seed)
    h = te.build(g, [a, seed, g])
    for shape in [(3, 9), (8, 2)]:
        v, w = normal(*shape), normal(shape[0])
        np.testing.assert_array_equal(f(v)[0], v.argmax(1))
        np.testing.assert_allclose(h(v, w), 2 * v * w[:, None], rtol=1e-6)


def test_ranges_that_begin_later():
    n = te.var("n")
    a = placeholder("A", n)
    k = te.reduce_axis((n // 2, n), "k")
    total = te.compute((), lambda: te.sum(a[k], axis=k), "T")
    for size in (4, 7):
        v = normal(size)
        np.testing.assert_allclose(te.build(total, [a, total])(v), v[size // 2 :].sum(), rtol=1e-5)


def test_functions_of_one_size():
    a, b, c = product()
    f = te.build(c, [a, b, c], "mm")
    g = f.at(n=3, m=4, d=5)
    assert isinstance(g, te.Function) and [each.shape for each in g.args] == [
        (3, 5),
        (5, 4),
        (3, 4),
    ]
    x, y = normal(3, 5), normal(5, 4)
    np.testing.assert_array_equal(g(x, y), f(x, y))
    with pytest.raises(te.TEError, match="expected the sizes n, d, m, found n"):
        f.at(n=3)
    with pytest.raises(te.TEError, match="tuned for given sizes"):
        weft.tune.tasks(f)
    with pytest.raises(te.TEError, match="the steps depend on the sizes"):
        te.default_schedule(c)


def test_sizes_are_no_numbers_before_the_call():
    n = te.var("n")
    a = placeholder("A", n, 3)
    assert (a.shape[0] == n) and a.shape[1].value == 3 and a.shape[1] == 3
    with pytest.raises(te.TEError, match="the truth of `n == 1` is not known"):
        bool(a.shape[0] == 1)
    with pytest.raises(TypeError):
        range(a.shape[0])
    with pytest.raises(te.TEError, match="expected sizes of numbers and te.var, found `i"):
        te.compute((4,), lambda i: te.placeholder((i, 3))[0, 0], "B")
    other = te.var("n")
    b = te.compute((n, other), lambda i, j: te.const(0.0), "B")
    with pytest.raises(te.TEError, match="different names, found two called n"):
        te.create_schedule(b)

    @te.kernel
    def wrong(x):
        return te.compute((n,), lambda i: x[0], "W")

    with pytest.raises(te.TEError, match="wrong: expected sizes of the tensors' shapes"):
        wrong(torch.zeros(3))
