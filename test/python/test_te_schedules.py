# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules as data, and illegal steps: refused in the user's words, with nothing changed."""

import re

import numpy as np
import pytest
import torch

from weft import te


def product(m=20, n=24, k=12, dtype="float32"):
    x, y = te.placeholder((m, k), dtype, "X"), te.placeholder((k, n), dtype, "Y")
    r = te.reduce_axis((0, k), "r")
    return x, y, te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "Z")


def chain():
    """Z = exp(X) summed along rows, then scaled."""
    x = te.placeholder((8, 16), name="X")
    r = te.reduce_axis((0, 16), "r")
    e = te.compute((8, 16), lambda i, j: te.exp(x[i, j]), "E")
    d = te.compute((8,), lambda i: te.sum(e[i, r], axis=r), "D")
    z = te.compute((8, 16), lambda i, j: x[i, j] / d[i], "Z")
    return x, e, d, z


def refused(s, step, axis, reason, remedy):
    before = s.key(), str(s), [each.leaf_iter_vars for each in s.stages]
    with pytest.raises(te.ScheduleError) as caught:
        step()
    error = caught.value
    assert (error.axis, error.reason, error.remedy) == (axis, reason, remedy)
    assert str(error) == f"{axis}: {reason}; {remedy}"
    after = s.key(), str(s), [each.leaf_iter_vars for each in s.stages]
    assert after[:2] == before[:2]
    for old, new in zip(before[2], after[2]):
        assert len(old) == len(new) and all(a is b for a, b in zip(old, new))


def test_illegal_steps_on_loops():
    _, _, z = product()
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    (r,) = s[z].op.reduce_axis
    refused(
        s,
        lambda: s[z].vectorize(r),
        "r",
        "it carries the reduction, and vectors would add in another order",
        "vectorize a loop over the result, or say reassociate=True",
    )
    refused(
        s,
        lambda: s[z].parallel(r),
        "r",
        "it carries the reduction: threads would add to the same element",
        "use rfactor, or a loop over the result",
    )
    refused(
        s,
        lambda: s[z].fuse(j, r),
        "j, r",
        "r carries the reduction and the other does not",
        "fuse axes of one kind",
    )
    refused(
        s,
        lambda: s[z].fuse(j, i),
        "j, i",
        "they are no neighbours",
        "reorder them so that i is the next loop inside j",
    )
    refused(s, lambda: s[z].split(i, factor=0), "i", "factor is 0", "give a positive integer")
    refused(
        s, lambda: s[z].split(i), "i", "a split needs its size", "give one of factor and nparts"
    )
    refused(s, lambda: s[z].reorder(i, i), "i", "it is named twice", "name each loop once")
    outer, inner = s[z].split(i, factor=4)
    refused(
        s,
        lambda: s[z].unroll(i),
        "i",
        "it was split into i.outer and i.inner",
        "use one of these",
    )
    s[z].vectorize(j)
    refused(
        s,
        lambda: s[z].vectorize(inner),
        "i.inner",
        "j is vectorized already",
        "fuse the two, or leave one vectorized",
    )
    refused(
        s,
        lambda: s[z].split(j, factor=4),
        "j",
        "it is marked vectorized and cannot be split",
        "do that before it is marked",
    )
    s[z].reorder(outer, r, inner)
    refused(
        s,
        lambda: s[z].parallel(inner),
        "i.inner",
        "it runs inside r, which carries the reduction",
        "reorder it outside of r",
    )
    s[z].parallel(outer)
    refused(
        s,
        lambda: s[z].reorder(r, outer),
        "i.outer",
        "it runs inside r, which carries the reduction",
        "reorder it outside of r",
    )


def test_a_tile_that_cannot_be_made_changes_nothing():
    _, _, z = product()
    s = te.create_schedule(z)
    i, _ = s[z].op.axis
    refused(
        s,
        lambda: s[z].tile(i, i, 4, 4),
        "i",
        "it was split into i.outer and i.inner",
        "use one of these",
    )


def test_illegal_places():
    x, e, d, z = chain()
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    refused(
        s,
        lambda: s[z].compute_inline(),
        "Z",
        "it is a result and has to be stored",
        "inline another",
    )
    refused(
        s,
        lambda: s[d].compute_inline(),
        "D",
        "it is a reduction, which would be repeated for every reader's element",
        "use compute_at",
    )
    refused(
        s,
        lambda: s[e].compute_at(s[z], i),
        "E",
        "D reads it outside of i",
        "compute D inside that loop first, or this one at a loop around all its readers",
    )
    refused(
        s,
        lambda: s[x].split(i, factor=2),
        "i",
        "it is no axis of X",
        "use one of none: it has no loops",
    )
    s[d].compute_at(s[z], i)
    s[e].compute_at(s[d], s[d].op.axis[0])
    refused(
        s,
        lambda: s[z].split(i, factor=2),
        "i",
        "D is computed at it",
        "call s[D].compute_root() first",
    )
    refused(
        s,
        lambda: s[z].vectorize(i),
        "D",
        "i is vectorised: its iterations are one",
        "compute it at a loop outside of it",
    )
    s[z].vectorize(j)
    f = te.build(s, [x, z])
    given = torch.randn(8, 16)
    torch.testing.assert_close(f(given), given / given.exp().sum(1, keepdim=True))


def test_steps_on_tensors_of_elsewhere():
    _, _, z = product()
    other = product()[2]
    s = te.create_schedule(z)
    with pytest.raises(te.ScheduleError, match="Z: it is no tensor of this schedule; use one of"):
        s[other]
    refused(
        s,
        lambda: s[z].split(other.op.axis[0], factor=2),
        "i",
        "it is no axis of Z",
        "use one of i, j, r",
    )


def test_numbers_of_steps_are_integers():
    x, _, z = product()
    i, _, r = (*z.op.axis, *z.op.reduce_axis)
    s = te.create_schedule(z)
    for step in (
        lambda: s[z].split(i, factor=2.5),
        lambda: s[z].split(i, nparts="2"),
        lambda: s[z].split(i, factor=True),
        lambda: s[z].prefetch(x, r, 1.5),
        lambda: s.rfactor(z, r, None),
    ):
        with pytest.raises(
            te.ScheduleError, match=r"(factor|nparts|offset|factor_axis) is .*; give"
        ):
            step()
    assert not s.steps
    # By TVM's names of parameters, and of NumPy's integers.
    outer, inner = s[z].split(parent=i, factor=np.int64(4))
    s[z].vectorize(var=inner)
    s[z].parallel(var=outer)
    s[z].prefetch(tensor=x, var=r, offset=np.int32(2))
    assert te.create_schedule(z).load(s.save()) == s


def test_a_schedule_is_data():
    x, y, z = product()
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    s[z].tile(i, j, 4, 8)
    packed = s.cache_read(y, "packed", z)
    s[packed].compute_at(s[z], s[z].leaf_iter_vars[1])
    assert s.save() == (
        "split Z i factor=4\nsplit Z j factor=8\nreorder Z i.outer j.outer i.inner j.inner\n"
        "cache_read Y packed Z\ncompute_at Y.packed Z j.outer\n"
    )
    again = te.create_schedule(z).load("# a comment\n\n" + s.save())
    assert again == s and hash(again) == hash(s) and str(again) == str(s)
    assert te.create_schedule(z) != s
    # The same steps on the same formula of other tensors.
    twin = product()[2]
    assert te.create_schedule(twin).load(s.save()) == s
    assert te.create_schedule(product(m=28)[2]).load(s.save()) != s


@pytest.mark.parametrize(
    "text, message",
    [
        ("split Z i factor=4\nsplit Z i factor=2", "i: it was split into i.outer and i.inner"),
        ("melt Z i", "Z: 'melt' is no step; use one of split, reorder"),
        ("split Q i factor=4", "Q: the schedule has no tensor of that name; use one of X, Y, Z"),
        ("split Z q factor=4", "q: Z has no axis of that name; use one of i, j, r"),
        ("split Z i factor=x", "line 1: `factor=x` has no number"),
        ("split", "line 1: `split` is no step"),
        ("split Z i size=4", "Z: split has no option size"),
        ("split X i0 factor=4", "X: it is given by the caller and has no loops"),
    ],
)
def test_texts_that_are_no_schedule(text, message):
    z = product()[2]
    s = te.create_schedule(z)
    with pytest.raises(te.ScheduleError) as caught:
        s.load(text)
    assert str(caught.value).startswith(message)
    assert s.steps == [] and s == te.create_schedule(z)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_rfactor_and_cache_write(dtype):
    torch.manual_seed(0)
    x, y, z = product(k=30, dtype=dtype)
    s = te.create_schedule(z)
    buffer = s.cache_write(z, "local")
    (r,) = s[buffer].op.reduce_axis
    outer, inner = s[buffer].split(r, factor=8)
    partial = s.rfactor(buffer, inner)
    assert partial.shape == (8, 20, 24)
    i, j = s[z].op.axis
    s[buffer].compute_at(s[z], i)
    s[partial].compute_at(s[z], i)
    s[z].parallel(i)
    s[z].vectorize(j)
    given = [torch.randint(-4, 5, each.shape).to(getattr(torch, dtype)) for each in (x, y)]
    expected = given[0].double() @ given[1].double()
    found = te.build(s, [x, y, z])(*given)
    torch.testing.assert_close(found.double(), expected, rtol=2e-2, atol=0.5)
    if dtype != "bfloat16":
        assert torch.equal(found.double(), expected)


def test_the_code_is_vectors_and_calls_nothing():
    x, y, z = product()
    s = te.create_schedule(z)
    i, j = s[z].op.axis
    s[z].vectorize(j)
    code = te.build(s, [x, y, z]).assembly()
    assert "vfmadd" in code and called(code) == {"te_Z"}
    e = te.compute((40,), lambda i: te.exp(te.tanh(x[i // 2, i % 3])), "E")
    for default in (True, False):
        code = te.build(te.create_schedule(e), [x, e], default=default).assembly()
        assert called(code) == {"te_E"}


def called(code):
    """The functions that the code calls by name; the entry calls the kernels."""
    return set(re.findall(r"\tcallq?\s+([A-Za-z_]\S*)", code))


def test_a_sum_of_halves_is_never_rounded_on_its_way():
    x, y, z = product(dtype="bfloat16")
    s = te.create_schedule(z)
    packed = s.cache_read(y, "packed", z)
    i, j = s[z].op.axis
    (r,) = s[z].op.reduce_axis
    s[z].reorder(r, i, j)
    refused(
        s,
        lambda: s[packed].compute_at(s[z], r),
        "r",
        "a bfloat16 would be rounded after each of its iterations, as another tensor is computed "
        "inside",
        "compute that outside of r, or sum in float32",
    )
    given = [torch.randn(each.shape).bfloat16() for each in (x, y)]
    found = te.build(s, [x, y, z])(*given)
    torch.testing.assert_close(found, given[0] @ given[1], rtol=2e-2, atol=2e-2)


def test_names_may_be_of_any_script():
    x = te.placeholder((4,), name="größe")
    z = te.compute((4,), lambda i: x[i] + 1, "Σ")
    assert te.build(te.create_schedule(z), [x, z])(torch.zeros(4)).tolist() == [1] * 4


def test_a_body_is_not_written_without_end():
    x = te.placeholder((200, 200), name="X")
    z = te.compute((200, 200), lambda i, j: x[i, j] + 1, "Z")
    s = te.create_schedule(z)
    s[z].unroll(z.op.axis[0])
    refused(
        s,
        lambda: s[z].unroll(z.op.axis[1]),
        "j",
        "the loops' body would be written 40000 times",
        "unroll less: at most 8192",
    )


def test_cache_write_is_asked_for_before_loops_are_changed():
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r = te.reduce_axis((0, 8), "r")
    z = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "Z")
    i, j = z.op.axis
    for change in [
        lambda s: s[z].reorder(j, i),
        lambda s: s[z].decompose_reduction(i),
        lambda s: s[z].tensorize(i, "fma"),
        lambda s: s[z].split(i, 2),
        lambda s: s[z].unroll(j),
        lambda s: s[z].prefetch(a, r, 2),
    ]:
        s = te.create_schedule(z)
        change(s)
        key = s.key()
        with pytest.raises(te.ScheduleError, match="its loops were changed before cache_write"):
            s.cache_write(z, "local")
        assert s.key() == key


def test_a_reduce_axis_of_two_tensors_is_two_loops():
    """They were one, whose inner loop hid the outer one that an index is of."""
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((5, 8), name="B")
    k = te.reduce_axis((0, 8), "k")
    t = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), "T")
    u = te.compute((5,), lambda j: te.sum(t[k] * b[j, k], axis=k), "U")
    x, y = (torch.randn(each.shape) for each in (a, b))
    torch.testing.assert_close(te.build(u, [a, b, u])(x, y), y @ x.sum(1))
    s = te.create_schedule(u)
    s[t].compute_at(s[u], k)
    outer, _ = s[t].split(k, 3)
    s[t].unroll(outer)
    assert s[u].leaf_iter_vars[1] is not s[t].op.reduce_axis[0]
    torch.testing.assert_close(te.build(s, [a, b, u])(x, y), y @ x.sum(1))
    assert s.copy() == s and str(s.copy()) == str(s)


def test_results_of_one_compute_are_scheduled_apart():
    """They shared their axes' extents: the one computed at a loop cut the other one short."""
    x = te.placeholder((2, 3, 5, 6), name="X")
    k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 6), "m")
    both = te.comm_reducer(
        lambda p, q: (p[0] + q[0], p[1] + q[1]), lambda t0, t1: (te.const(0.0, t0), 0.0)
    )

    def sums(i, j):
        value = x[i, j, k, m]
        return both((value, value * value), axis=[k, m])

    one, two = te.compute((2, 3), sums, "R")
    z = te.compute(x.shape, lambda a, b, c, d: x[a, b, c, d] * one[a, b] + two[a, b], "Z")
    v = torch.randn(2, 3, 5, 6)
    expected = v * v.sum((2, 3), keepdim=True) + (v * v).sum((2, 3), keepdim=True)
    for scheduled in ([one], [two], [one, two]):
        for depth in range(4):
            s = te.create_schedule(z)
            for each in scheduled:
                s[each].compute_at(s[z], z.op.axis[depth])
            torch.testing.assert_close(te.build(s, [x, z])(v), expected)
    s = te.create_schedule(z)
    for each in (one, two):  # by the axes of either
        inner = s[each].split(one.op.axis[1], 2)[1]
        s[each].unroll(inner)
    torch.testing.assert_close(te.build(s, [x, z])(v), expected)
