# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.scan`: tensors that are computed step by step."""

import numpy as np
import pytest
import torch
from te_reference import normal, placeholder

from weft import errors, te


def sums(steps, width, factor=1.0):
    """R[t] = factor · R[t - 1] + X[t], and what it is made of."""
    x, state = placeholder("X", steps, width), placeholder("S", steps, width)
    first = te.compute((1, width), lambda _, i: x[0, i], "first")
    update = te.compute((steps, width), lambda t, i: state[t - 1, i] * factor + x[t, i], "update")
    return x, state, first, update, te.scan(first, update, state, inputs=[x], name="R")


def in_columns(s, result, update, state):
    outer, inner = s[result].split(result.op.axis[1], factor=4)
    s[result].reorder(outer, result.op.axis[0], inner)
    s[result].parallel(outer)
    s[result].vectorize(inner)


def by_vectors(s, result, update, state):
    s[update].vectorize(update.op.axis[1])
    s[result].vectorize(result.op.axis[1])


SCHEDULES = {
    "none": lambda *_: None,
    "inlined": lambda s, result, update, state: s[update].compute_inline(),
    "root": lambda s, result, update, state: s[update].compute_root(),
    "vectors": by_vectors,
    "columns": in_columns,
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", [(7, 13), (1, 4), (2, 1)])
def test_schedules_of_a_scan(name, shape):
    x, state, _, update, result = sums(*shape)
    s = te.create_schedule(result.op)
    SCHEDULES[name](s, result, update, state)
    f = te.build(s, [x, result], default=False)
    given = normal(*shape)
    np.testing.assert_allclose(f(given), np.cumsum(given, 0), rtol=1e-5, atol=1e-5)
    assert te.create_schedule(result).load(s.save()) == s


def test_copies_of_a_state_and_of_an_update():
    x, state, _, update, result = sums(6, 9)
    s = te.create_schedule(result)
    copy = s.cache_read(state, "local", [update])
    s[copy].vectorize(copy.op.axis[1])
    written = s.cache_write(update, "sums")
    s[written].compute_at(s[update], update.op.axis[1])
    given = normal(6, 9)
    found = te.build(s, [x, result])(given)
    np.testing.assert_allclose(found, np.cumsum(given, 0), rtol=1e-5, atol=1e-5)


def test_a_scan_of_variable_sizes_and_what_reads_it():
    n, m = te.var("n"), te.var("m")
    x, _, _, _, result = sums(n, m)
    twice = te.compute((n, m), lambda t, i: result[t, i] * 2, "twice")
    f = te.build([twice, result], [x, twice, result])
    for shape in [(5, 3), (1, 1), (40, 70)]:
        given = normal(*shape)
        doubled, found = f(given)
        np.testing.assert_allclose(found, np.cumsum(given, 0), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(doubled, 2 * found)
    with pytest.raises(te.TEError, match="R: expected at least the 1 first steps, found 0"):
        f(normal(0, 3))


def test_two_steps_back():
    state = placeholder("S", 30, dtype="int64")
    first = te.compute((2,), lambda i: te.const(1, "int64"), "first")
    update = te.compute((30,), lambda t: state[t - 1] + state[t - 2], "update")
    result = te.scan(first, update, state)
    expected = [1, 1]
    while len(expected) < 30:
        expected.append(expected[-1] + expected[-2])
    assert te.build(result, [result])().tolist() == expected


def recurrent(steps=7, width=5):
    """R[t] = tanh(W R[t - 1] + X[t])."""
    x, w, state = (
        placeholder(*each)
        for each in [("X", steps, width), ("W", width, width), ("S", steps, width)]
    )
    k = te.reduce_axis((0, width), "k")
    h = te.compute((steps, width), lambda t, i: te.sum(state[t - 1, k] * w[i, k], axis=k), "h")
    update = te.compute((steps, width), lambda t, i: te.tanh(h[t, i] + x[t, i]), "update")
    first = te.compute((1, width), lambda _, i: x[0, i], "first")
    return x, w, h, update, te.scan(first, update, state, name="R")


def recurrent_values(x, w):
    values = [x[0]]
    for row in x[1:]:
        values.append(np.tanh(w @ values[-1] + row))
    return np.stack(values)


def by_rows(s, h, update):
    s[h].compute_at(s[update], update.op.axis[1])


def in_parts(s, h, update):
    _, inner = s[h].split(h.op.reduce_axis[0], factor=2)
    s.rfactor(h, inner)


@pytest.mark.parametrize("steps", [None, by_rows, in_parts])
@pytest.mark.parametrize("default", [False, None])
def test_a_reduction_in_each_step(steps, default):
    x, w, h, update, result = recurrent()
    s = te.create_schedule(result)
    if steps:
        steps(s, h, update)
    given = normal(7, 5), normal(5, 5)
    found = te.build(s, [x, w, result], default=default)(*given)
    np.testing.assert_allclose(found, recurrent_values(*given), rtol=1e-5, atol=1e-6)


def lstm(steps, batch, inputs, hidden):
    """TVM's LSTM cell: `X[t - 1]` has a step less, and is not read in the first one."""
    x = placeholder("X", steps - 1, batch, inputs)
    wi, wh = placeholder("Wi", 4, hidden, inputs), placeholder("Wh", 4, hidden, hidden)
    shape = steps, batch, hidden
    h, c = placeholder("H", *shape), placeholder("C", *shape)
    a, b = te.reduce_axis((0, inputs), "a"), te.reduce_axis((0, hidden), "b")
    of_x = te.compute(
        (steps, 4, batch, hidden),
        lambda t, g, i, j: te.sum(x[t - 1, i, a] * wi[g, j, a], axis=a),
        "of_x",
    )
    of_h = te.compute(
        (steps, 4, batch, hidden),
        lambda t, g, i, j: te.sum(h[t - 1, i, b] * wh[g, j, b], axis=b),
        "of_h",
    )
    gates = te.compute(of_x.shape, lambda *i: of_x(*i) + of_h(*i), "gates")

    def gate(number, function):
        return te.compute(shape, lambda t, i, j: function(gates[t, number, i, j]), f"gate{number}")

    into, new, keep, out = (
        gate(n, f) for n, f in enumerate([te.sigmoid, te.tanh, te.sigmoid, te.sigmoid])
    )
    cell = te.compute(
        shape, lambda t, i, j: keep[t, i, j] * c[t - 1, i, j] + into[t, i, j] * new[t, i, j], "cell"
    )
    seen = te.compute(shape, lambda t, i, j: out[t, i, j] * te.tanh(cell[t, i, j]), "seen")
    zeros = [te.compute((1, batch, hidden), lambda *_: 0.0, name) for name in ("h0", "c0")]
    return (x, wi, wh), gates, te.scan(zeros, [seen, cell], [h, c], name="lstm")


def test_two_states_that_depend_on_each_other():
    args, gates, (h, c) = lstm(6, 3, 5, 8)
    assert h.op.output(1) is c and h.op.num_outputs == 2 and c.op.scan_axis is h.op.axis[0]
    inlined = te.create_schedule(h.op)
    inlined[gates].compute_inline()
    given = [normal(*each.shape) for each in args]
    x, wi, wh = (torch.from_numpy(each).double() for each in given)
    model = torch.nn.LSTM(5, 8, bias=False, dtype=torch.float64)
    order = [0, 2, 1, 3]  # PyTorch's gates are in, forget, new, out
    with torch.no_grad():
        model.weight_ih_l0.copy_(wi[order].reshape(32, 5))
        model.weight_hh_l0.copy_(wh[order].reshape(32, 8))
        expected, (_, last) = model(x)
    for s, default in [(inlined, None), (te.create_schedule([h, c]), None), (h, False)]:
        hidden, cells = te.build(s, [*args, h, c], default=default)(*given)
        np.testing.assert_allclose(hidden[1:], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(cells[-1], last[0], rtol=1e-4, atol=1e-5)
        assert not hidden[0].any() and not cells[0].any()
    only = te.build(c, [*args, c])(*given)
    np.testing.assert_allclose(only, cells, rtol=1e-5, atol=1e-6)


def test_indices_that_are_read_in_a_step():
    tokens, table = placeholder("tokens", 5, dtype="int64"), placeholder("E", 10, 4)
    state = placeholder("S", 5, 4)
    first = te.compute((1, 4), lambda *_: 0.0, "first")
    update = te.compute((5, 4), lambda t, i: state[t - 1, i] + table[tokens[t - 1], i], "update")
    result = te.scan(first, update, state, name="R")
    f = te.build(result, [tokens, table, result])
    values, unused = normal(10, 4), 99
    found = f(np.array([9, 0, 3, 3, unused]), values)
    np.testing.assert_allclose(found[-1], values[[9, 0, 3, 3]].sum(0), rtol=1e-5)
    with pytest.raises(errors.AssertError, match=r"index tokens\[t - 1\] of E out of range"):
        f(np.array([9, 10, 3, 3, 0]), values)


@pytest.mark.parametrize(
    "step, reason",
    [
        (lambda s, r, u: s[r].split(r.op.axis[0], factor=2), "t: it runs over the steps of a scan"),
        (lambda s, r, u: s[r].parallel(r.op.axis[0]), "t: it runs over the steps of a scan"),
        (lambda s, r, u: s[r].vectorize(r.op.axis[0]), "t: it runs over the steps of a scan"),
        (lambda s, r, u: s[r].parallel(r.op.axis[1]), "after each of which threads would wait"),
        (lambda s, r, u: s[r].reorder(*r.op.axis[::-1]), "it runs outside of t, the steps of R"),
        (lambda s, r, u: s.cache_write(r, "c"), "call cache_write of update"),
        (lambda s, r, u: s[r].compute_inline(), "it is a result"),
    ],
)
def test_steps_that_would_change_the_order_of_a_scan(step, reason):
    _, _, _, update, result = recurrent()
    s = te.create_schedule(result)
    before = s.key()
    with pytest.raises(te.ScheduleError, match=reason):
        step(s, result, update)
    assert s.key() == before


def test_an_update_is_computed_in_each_step():
    _, _, _, update, result = sums(6, 4)
    t, i = result.op.axis
    moves = [lambda s: s[result].reorder(i, t), lambda s: s[update].compute_at(s[result], i)]
    for first, second in (moves, moves[::-1]):
        s = te.create_schedule(result)
        first(s)
        before = s.key(), str(s)
        with pytest.raises(te.ScheduleError, match="update: it reads earlier steps of a scan, and"):
            second(s)
        assert (s.key(), str(s)) == before


def test_scans_that_make_no_sense():
    x, state, first, update, result = sums(6, 4)
    again = placeholder("again", 6, 4)
    later = te.compute((6, 4), lambda t, i: state[t, i] + 1, "later")
    with pytest.raises(te.TEError, match=r"`S\[t, i\]` of later reads a step that may not be"):
        te.scan(first, later, state)
    with pytest.raises(te.TEError, match="expected a number of first steps that all have"):
        te.scan(te.compute((0, 4), lambda *_: 0.0), update, state)
    with pytest.raises(te.TEError, match="expected one dtype"):
        te.scan(te.compute((1, 4), lambda *_: te.const(0, "int64")), update, state)
    with pytest.raises(te.TEError, match="expected a placeholder as state, found update"):
        te.scan(first, update, update)
    with pytest.raises(te.TEError, match="expected as many of init, update and state"):
        te.scan([first], [update], [state, again])
    outside = te.compute((6, 4), lambda t, i: update[t, i] * 2, "outside")
    with pytest.raises(te.TEError, match="outside reads update, which only the steps of R see"):
        te.create_schedule([result, outside])
    with pytest.raises(te.TEError, match="S is the state of R and no argument"):
        te.build(result, [x, state, result])
    early = te.compute((6, 4), lambda t, i: x[t - 1, i], "early")
    with pytest.raises(te.TEError, match=r"early: `X\[t - 1, i\]` reads from -1 to 4"):
        te.create_schedule(early)


def test_a_kernel_of_pytorchs_tensors():
    @te.kernel
    def decayed(x):
        return sums_of(x)

    def sums_of(x):
        state = te.placeholder(x.shape, x.dtype, "S")
        first = te.compute((1, x.shape[1]), lambda _, i: x[0, i], "first")
        update = te.compute(x.shape, lambda t, i: state[t - 1, i] * 0.5 + x[t, i], "update")
        return te.scan(first, update, state)

    x = torch.randn(6, 40)
    expected = [x[0]]
    for row in x[1:]:
        expected.append(expected[-1] * 0.5 + row)
    torch.testing.assert_close(decayed(x), torch.stack(expected))


def test_a_scan_that_is_read_element_by_element_stays_whole():
    x, _, _, _, result = sums(9, 6)
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((9,), lambda t: te.sum(result[t, k], axis=k), "total")
    given = normal(9, 6)
    found = te.build(total, [x, total])(given)
    np.testing.assert_allclose(found, np.cumsum(given, 0).sum(1), rtol=1e-4, atol=1e-4)
    plain = te.compute((9, 6), lambda t, i: result[t, i] + 1, "plain")
    found = te.build(plain, [x, plain])(given)
    np.testing.assert_allclose(found, np.cumsum(given, 0) + 1, rtol=1e-4, atol=1e-4)
