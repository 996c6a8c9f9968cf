# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of TVM's te: those that work beyond the usual ones, and those that say why they do not."""

import numpy as np
import pytest
from te_reference import normal, placeholder

from weft import te
from weft.te import absent

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


def elementwise(body, *arrays):
    """The values of `body` of the arrays' elements."""
    inputs = [placeholder(f"x{n}", *a.shape, dtype=str(a.dtype)) for n, a in enumerate(arrays)]
    z = te.compute(arrays[0].shape, lambda i: body(*(each[i] for each in inputs)), "z")
    return te.build(z, [*inputs, z])(*arrays)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    random = np.random.default_rng(0)
    a = random.integers(-(2**62), 2**62, 53).astype(dtype)
    unsigned = a.view(dtype.replace("uint", "int").replace("int", "uint"))
    np.testing.assert_array_equal(elementwise(te.popcount, a), np.bitwise_count(unsigned))
    # As many bits as there are, and more, too.
    by = (np.arange(53) % 70).astype(dtype)
    np.testing.assert_array_equal(elementwise(lambda x, y: x << y, a, by), a << by)
    np.testing.assert_array_equal(elementwise(lambda x, y: x >> y, a, by), a >> by)
    np.testing.assert_array_equal(elementwise(lambda x: 1 << (x & 3), a), 1 << (a & 3))


def test_shifts_are_of_integers():
    x = placeholder("x", 4)
    with pytest.raises(te.TEError, match=r"expected integers in `x\[0\] << 1"):
        x[0] << 1
    with pytest.raises(te.TEError, match="te.popcount: expected an integer"):
        te.popcount(x[0])


def test_divisions_and_logaddexp():
    a = np.array([-7.5, 7.5, -7.5, 7.5, 1, np.inf, -np.inf, 3], "float32")
    b = np.array([2, 2, -2, -2, 1, np.inf, -np.inf, -np.inf], "float32")
    with np.errstate(all="ignore"):
        for name, expected in [("fmod", np.fmod), ("logaddexp", np.logaddexp), ("div", np.divide)]:
            found = elementwise(getattr(te, name), a, b)
            np.testing.assert_allclose(found, expected(a, b), rtol=1e-6, err_msg=name)
    i, j = np.array([-7, 7, -7, 7]), np.array([2, 2, -2, -2])
    np.testing.assert_array_equal(elementwise(te.div, i, j), [-3, 3, 3, -3])
    np.testing.assert_array_equal(elementwise(te.fmod, i, j), np.fmod(i, j))


def test_elements_by_one_index_after_another():
    x = placeholder("X", 4, 5)
    z = te.compute((4, 5), lambda i, j: x[i][j] + x(i)[j], "Z")
    a = normal(4, 5)
    np.testing.assert_array_equal(te.build(z, [x, z])(a), 2 * a)
    for body in (lambda i: x[i], lambda i: x[i] + 1, lambda i: te.exp(x[i])):
        with pytest.raises(te.TEError, match="expected 2 indices for the shape .4, 5., found 1"):
            te.compute((4,), body, "Z")


def test_the_gradient_by_tvms_name():
    x, h, k = placeholder("X", 4, 3), placeholder("H", 4), te.reduce_axis((0, 3), "k")
    y = te.compute((4,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), "Y")
    (g,) = te.gradient(y, [x], h)
    a, b = normal(4, 3), normal(4)
    np.testing.assert_allclose(te.build(g, [x, h, g])(a, b), 2 * a * b[:, None], rtol=1e-6)
    with pytest.raises(te.TEError, match="expected a head for Y of shape"):
        te.gradient(y, [x])
    with pytest.raises(te.TEError, match="expected a head of shape .4., found .4, 3."):
        te.gradient(y, [x], x)
    p, q = te.reduce_axis((0, 4), "p"), te.reduce_axis((0, 3), "q")
    total = te.compute((), lambda: te.sum(x[p, q], axis=[p, q]), "total")
    (g,) = te.gradient(total, x)
    found = te.build(g, [g])() if not g.op.input_tensors else te.build(g, [x, g])(a)
    np.testing.assert_array_equal(np.asarray(found), np.ones((4, 3), "float32"))


@pytest.mark.parametrize("name", absent.FUNCTIONS)
def test_absent_functions_say_what_to_write_instead(name):
    with pytest.raises(te.TEError, match=f"^te.{name}: .*: |^te.{name}: "):
        getattr(te, name)((4,), "x")


def test_absent_steps_say_what_to_take_instead():
    x = placeholder("X", 8)
    z = te.compute((8,), lambda i: x[i] + 1, "Z")
    s = te.create_schedule(z)
    key = s.key()
    for name in ("bind", "pragma", "storage_align", "double_buffer", "set_scope", "env_threads"):
        with pytest.raises(te.ScheduleError) as caught:
            getattr(s[z], name)(z.op.axis[0], "vthread")
        assert caught.value.reason.startswith(f"{name}: ") and caught.value.remedy
    with pytest.raises(te.ScheduleError, match="create_group: "):
        s.create_group(z, x)
    assert s.normalize() is s
    with pytest.raises(te.ScheduleError, match="there is no microkernel <object"):
        s[z].tensorize(z.op.axis[0], object())
    assert s.key() == key
    assert not hasattr(s, "nothing") and not hasattr(s[z], "nothing")


def test_tags_and_attributes():
    x = placeholder("X", 8)

    @te.tag_scope("conv")
    def conv():
        return te.compute((8,), lambda i: x[i] + 1, "Z", attrs={"layout": "NCHW"})

    z = conv()
    assert z.op.tag == "conv" and z.op.attrs == {"layout": "NCHW"}
    with te.tag_scope(tag="gemm"):
        a, b = te.compute((8,), lambda i: (x[i], x[i] * 2), "P")
        assert a.op.tag == b.op.tag == "gemm"
        with pytest.raises(te.TEError, match="te.tag_scope: 'conv' inside of 'gemm'"):
            conv()
        with pytest.raises(te.TEError, match="the tag 'own' inside of te.tag_scope"):
            te.compute((8,), lambda i: x[i], tag="own")
    assert te.compute((8,), lambda i: x[i], tag="own").op.tag == "own"
    assert te.compute((8,), lambda i: x[i]).op.tag == ""


def test_names_of_indices():
    x = placeholder("X", 8, 9)
    z = te.compute((8, 9), lambda *i: x(*i), "Z", varargs_names=["row", "column"])
    assert str(z).startswith("Z[row, column] = X[row, column]")
    w = te.compute((8, 9), lambda a, *i: x(a, *i), "W", varargs_names=["column"])
    assert [each.name for each in w.op.axis] == ["a", "column"]
    with pytest.raises(te.TEError, match="expected varargs_names of 2 indices, found 1"):
        te.compute((8, 9), lambda *i: x(*i), "Z", varargs_names=["row"])


def test_sizes_are_like_constants():
    x = placeholder("X", 8, 9)
    rows = x.shape[0]
    assert rows.value == 8 and rows.dtype == "int64" and rows == 8 and repr(rows) == "8"
    assert (rows - 1).value == 7 and (2 * rows // 4).value == 4 and (1 + rows).value == 9
    z = te.compute((te.indexdiv(rows, 2), te.div(te.const(9), 2)), lambda i, j: x[i, j], "Z")
    assert z.shape == (4, 4)
    y = te.compute((te.cast(te.round(2.0 * rows), "int32"),), lambda i: te.const(1), "Y")
    assert y.shape == (16,)
    assert str((rows - 1).astype("float32") / 2) == "float32(7) / 2"
    with pytest.raises(te.TEError, match="expected a size, found `8 // 0`"):
        te.placeholder((te.floordiv(te.const(8), 0),))


def test_constants_decide():
    x = placeholder("X", 8)
    z = te.compute((8,), lambda i: te.if_then_else(te.const(3) > 4, x[i + 5], x[i]), "Z")
    assert str(z) == "Z[i] = X[i]  for i < 8"
    assert bool(te.const(2) == 2) and int(te.const(2)) == 2 and float(te.const(0.5)) == 0.5
    assert str(x[0].equal(1)) == "X[0] == 1"
    assert te.placeholder((2,), "float", "F").dtype == "float32"


def test_steps_on_one_axis_or_several_tensors():
    x = placeholder("X", 8, 16)
    a, b = te.compute((8, 16), lambda i, j: (x[i, j] + 1, x[i, j] * 2), "Z")
    s = te.create_schedule([a.op, b.op])
    first, second = s.cache_write([a, b], "local")
    assert s[a].fuse(a.op.axis[0]) is a.op.axis[0]
    s[first].compute_at(s[a], a.op.axis[0])
    v = normal(8, 16)
    found = te.build(s, [x, a, b])(v)
    np.testing.assert_array_equal(found[0], v + 1)
    np.testing.assert_array_equal(found[1], v * 2)
    key = s.key()
    with pytest.raises(te.ScheduleError, match="fuse needs axes; give neighbours among i, j"):
        s[b].fuse()
    with pytest.raises(te.ScheduleError, match="its loops were changed before cache_write"):
        s.cache_write([b, first], "again")
    assert s.key() == key


def test_a_tensor_without_dims_has_a_loop_of_its_own():
    x, k = placeholder("X", 30), te.reduce_axis((2, 30), "k")
    assert k.dom.min == 2 and k.dom.extent == 28 and k.dom == (2, 28)
    z = te.compute((), lambda: te.sum(x[k], axis=k), "Z")
    y = te.compute((4,), lambda i: z() + x[i], "Y")
    s = te.create_schedule(y)
    once = s[z].fuse(*z.op.axis)
    outer, inner = s[z].split(once, nparts=20)
    s[z].reorder(outer, k, inner)
    s[z].parallel(outer)
    assert s.copy() == s and str(s.copy()) == str(s)
    v = normal(30)
    found = te.build(s, [x, y])(v)
    np.testing.assert_allclose(found, v[2:].sum() + v[:4], rtol=1e-5)
    with pytest.raises(te.ScheduleError, match="its loops were changed before cache_write"):
        s.cache_write(z, "local")
    t = te.create_schedule(y)
    t[z].fuse()
    with pytest.raises(te.ScheduleError, match="its loops were changed before cache_write"):
        t.cache_write(z, "local")
    t.rfactor(z, k)
    np.testing.assert_allclose(te.build(t, [x, y])(v), found, rtol=1e-5)


def test_a_result_that_the_schedule_does_not_compute():
    x = placeholder("X", 8)
    a, b = te.compute((8,), lambda i: (x[i] + 1, x[i] * 2), "Z")
    with pytest.raises(te.TEError, match="Z.v1 is an argument and not computed by the schedule"):
        te.build(te.create_schedule(a), [x, a, b], default=False)
    found = te.build(te.create_schedule([a, b]), [x, a, b])(np.ones(8, "float32"))
    assert (found[0] == 2).all() and (found[1] == 2).all()


def test_types_of_operations():
    x = placeholder("x", 4)
    doubled = te.compute((4,), lambda i: x[i] * 2, "doubled")
    state = placeholder("state", 4)
    later = te.compute((4,), lambda t: state[t - 1] + x[t], "later")
    steps = te.scan(te.compute((1,), lambda _: 0.0, "first"), later, state)
    kinds = (te.PlaceholderOp, te.ComputeOp, te.ScanOp, te.ExternOp, te.HybridOp)
    found = [[isinstance(each.op, kind) for kind in kinds] for each in (x, doubled, steps)]
    assert found == [[n == m for m in range(len(kinds))] for n in range(3)]
    assert isinstance(doubled.op, te.Operation) and not isinstance(x, te.PlaceholderOp)
    assert isinstance(placeholder("y", 2, 3)[0], te.TensorSlice)
    s = te.create_schedule(doubled)
    outer, inner = s[doubled].split(doubled.op.axis[0], factor=2)
    assert [each.name for each in s[doubled].all_iter_vars] == ["i", "i.outer", "i.inner"]
    assert s[doubled].is_output and not s[x].is_output
    with pytest.raises(te.TEError, match=r"te.hybrid.script: .* use te.compute, or te.scan"):
        te.hybrid.script(lambda a: a)


def test_the_operation_of_several_tensors():
    rows, columns = te.var("m"), te.var("n")
    a, b = (te.placeholder((rows, columns), name=name) for name in "AB")
    more, times = te.compute((rows, columns), lambda i, j: (a[i, j] + 2, b[i, j] * 3), "C")
    x, y = normal(5, 7), normal(5, 7)
    for op in (more.op, [more.op], [times.op, more.op]):
        found = te.build(te.create_schedule(op), [a, b, more, times])(x, y)
        np.testing.assert_array_equal(found[0], x + 2)
        np.testing.assert_array_equal(found[1], y * 3)
    found = te.build(te.create_schedule(more), [a, more])(x)
    np.testing.assert_array_equal(found, x + 2)
