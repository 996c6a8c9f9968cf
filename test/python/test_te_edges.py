# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles at the edge of a tensor, and the last terms of a reduction, of every rest."""

import re

import numpy as np
import pytest
from te_reference import check_program, mm, normal, placeholder

from weft import te
from weft.te.edges import known_edge
from weft.te.expressions import Axis
from weft.te.linear import Linear, quotient, remainder


def edge_of(guard, inner, outer, extents):
    return known_edge(guard, {inner}, set(outer), lambda axis: extents[axis])


def test_an_edge_is_known_where_tiles_begin_at_multiples():
    inner, outer, middle = (Axis(1, name, "spatial") for name in ("inner", "outer", "middle"))
    extents = {inner: 16, outer: 7, middle: 4}
    last = Linear(None, 99)
    edge = edge_of(last - Linear.of(outer) * 16 - Linear.of(inner), inner, [outer], extents)
    assert edge.axis is inner and edge.count == 4 and edge.begins is None
    assert edge.whole == Linear(None, 84) - Linear.of(outer) * 16
    # Two loops around it: some tiles have nothing inside.
    two = last - Linear.of(outer) * 64 - Linear.of(middle) * 16 - Linear.of(inner)
    edge = edge_of(two, inner, [outer, middle], extents)
    assert edge.count == 4 and edge.begins == last - Linear.of(outer) * 64 - Linear.of(middle) * 16
    # A loop that was fused.
    fused = Axis(14, "fused", "spatial")
    extents[fused] = 14
    start = quotient(Linear.of(fused), 2, lambda axis: extents[axis]) * 16
    edge = edge_of(last - start - Linear.of(inner), inner, [fused], extents)
    assert edge.count == 4 and edge.begins is None


def test_an_edge_is_not_known_elsewhere():
    inner, outer = Axis(16, "inner", "spatial"), Axis(7, "outer", "spatial")
    extents = {inner: 16, outer: 7}
    last, tile = Linear(None, 99), Linear.of(inner)
    for guard in (
        last - Linear.of(outer) * 8 - tile,  # tiles overlap
        last + Linear.of(outer) * 16 - tile,
        last - Linear.of(outer) * 16 - tile * 2,
        Linear.of(outer) * 16 + tile - 3,  # an edge at the beginning
        last - tile,
        last - remainder(Linear.of(outer), 3, lambda axis: extents[axis]) * 5 - tile,
    ):
        assert edge_of(guard, inner, [outer], extents) is None, guard
    assert edge_of(last - Linear.of(outer) * 16 - tile, inner, [], extents) is None


@pytest.mark.parametrize("m", [1, 5, 6, 7, 13])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 47, 70])
def test_tiles_at_both_edges(m, n):
    A, B, Cc, a, b, expected = mm(m, n, 9)
    s = te.create_schedule(Cc)
    io, jo, ii, ji = s[Cc].tile(*Cc.op.axis, 6, 32)
    s[Cc].reorder(io, jo, *s[Cc].op.reduce_axis, ii, ji)
    s[Cc].parallel(s[Cc].fuse(io, jo))
    s[Cc].unroll(ii)
    s[Cc].vectorize(ji)
    check_program(s, [A, B, Cc], [a, b], expected)


def test_edges_of_two_levels_of_tiles():
    A, B, Cc, a, b, expected = mm(29, 77, 5)
    s = te.create_schedule(Cc)
    io, jo, ii, ji = s[Cc].tile(*Cc.op.axis, 8, 64)
    im, ii = s[Cc].split(ii, factor=2)
    jm, ji = s[Cc].split(ji, factor=16)
    s[Cc].reorder(io, jo, im, jm, *s[Cc].op.reduce_axis, ii, ji)
    s[Cc].unroll(ii)
    s[Cc].vectorize(ji)
    check_program(s, [A, B, Cc], [a, b], expected)


@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("terms", [0, 33, 40, 63, 64, 65, 100])
def test_the_last_terms_of_vectors_along_a_reduction(terms, reduce, unrolled):
    X = placeholder("X", 3, terms)
    k = te.reduce_axis((0, terms), "k")
    Z = te.compute((3,), lambda i: getattr(te, reduce)(X[i, k], axis=k), "Z")
    s = te.create_schedule(Z)
    outer, inner = s[Z].split(k, factor=32)
    s[Z].vectorize(inner, reassociate=True)
    if unrolled:
        s[Z].unroll(outer)
    x = -1 - np.abs(normal(3, terms)) / 50  # what is read behind the end as 0 would be the maximum
    initial = {"max": -np.inf, "min": np.inf}.get(reduce, np._NoValue)
    check_program(s, [X, Z], [x], getattr(np, reduce)(x, axis=1, initial=initial))


def test_the_last_terms_of_two_loops_of_a_reduction():
    X = placeholder("X", 4, 5, 70)
    a, b = te.reduce_axis((0, 5), "a"), te.reduce_axis((0, 70), "b")
    Z = te.compute((4,), lambda i: te.sum(X[i, a, b] * X[i, a, b], axis=[a, b]), "Z")
    for order in (0, 1):
        s = te.create_schedule(Z)
        outer, inner = s[Z].split(b, factor=16)
        s[Z].reorder(*((a, outer) if order else (outer, a)), inner)
        s[Z].vectorize(inner, reassociate=True)
        x = normal(4, 5, 70)
        check_program(s, [X, Z], [x], (x * x).sum((1, 2)))


def test_masks_follow_from_no_loop_where_edges_are_known():
    A, B, Cc, *_ = mm(100, 100, 100)
    text = te.build(te.default_schedule(Cc), [A, B, Cc]).module
    lanes = re.findall(r"arith.index_cast (%\w+)", text)
    assert lanes and all(f"{each} = arith.constant " in text for each in lanes)
