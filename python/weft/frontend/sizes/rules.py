# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each op of the graph does with padding: elementwise ops, shapes and indices."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.frontend.graph import Node, Value
from weft.frontend.sizes.derivatives import ELEMENTWISE
from weft.frontend.sizes.extents import Dim, Factor, is_static, joined, plain
from weft.frontend.sizes.numbers import quotient, scaled
from weft.frontend.sizes.padding import Padding, rule
from weft.frontend.sizes.places import gathered, numbers_of, places_of


@rule(*ELEMENTWISE)
def elementwise(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    operands = node.operands
    if node.op in ("weft.div", "weft.rem") and not node.results[0].dtype.is_floating_point:
        # Padding may be zero, by which integers cannot be divided.
        x, y = operands
        p.emit(node, [p.of(x), p.hidden(y, range(y.rank), 1)], plain(p.combined([x, y])))
        return
    p.emit(node, [p.of(x) for x in operands], p.combined(operands))


@rule("with_slopes")
def with_slopes(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    value = node.operands[0]
    dims = p.dims_of(value) if node.attrs["dims"] else p.combined(node.operands)
    p.emit(node, [p.of(x) for x in node.operands], dims)


@rule("constant")
def constant(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    values = [each.attrs["value"] for each in nodes]
    quotients = [each.attrs.pop("quotient", None) for each in nodes]
    (result,) = node.results
    is_splat = all("splat" in value for value in values)
    dims = [p.fitted(p.sizes(nodes, d), is_splat) for d in range(result.rank)]
    if all(value == values[0] for value in values):
        p.emit(node, [], dims)
        return
    if not is_splat or result.dtype == torch.bool:
        p.refuse("a table that depends on a size")
    if None not in quotients and result.dtype.is_floating_point:
        number = quotient(p, quotients, result.dtype)
    else:
        number = scaled(p, [float(value["splat"]) for value in values], result.dtype)
    p.set(result, p.builder.broadcast(number, result.shape), dims)


@rule("iota")
def iota(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (result,), along = node.results, node.attrs["dim"]
    dims = [p.fitted(p.sizes(nodes, d), d != along) for d in range(result.rank)]
    (counted,) = dims[along]
    if counted.extent is None and not counted.is_static:
        dims[along] = made = p.product(counted.sizes)
        if not made:
            p.refuse("as many numbers as no linear function of the symbols says")
        number = p.builder.reshape(numbers_of(p, made, result.dtype), [result.shape[along]])
        p.set(result, p.builder.along(number, along, result.shape), dims)
        return
    p.emit(node, [], dims)


@rule("broadcast_in_dim")
def broadcast_in_dim(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), (result,) = node.operands, node.results
    dims: list[Dim] = []
    for d in range(result.rank):
        sizes = p.sizes(nodes, d)
        if d in node.attrs["dims"]:
            place = node.attrs["dims"].index(d)
            own = tuple(each.operands[0].shape[place] for each in nodes)
            if own == sizes:
                dims.append(p.dims_of(x)[place])
                continue
            if set(own) != {1}:
                p.refuse("a size is one at some sizes and not at others")
        dims.append(p.fitted(sizes, uniform=True))
    p.set(result, p.builder.broadcast_in_dim(p.of(x), node.attrs["dims"], result.shape), dims)


@rule("transpose")
def transpose(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,) = node.operands
    p.emit(node, [p.of(x)], [p.dims_of(x)[d] for d in node.attrs["perm"]])


@rule("slice")
def take(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), (result,) = node.operands, node.results
    new, dims = p.of(x), p.dims_of(x)
    made: list[Dim] = []
    for d in range(x.rank):
        start, limit, stride = (
            [n.attrs[k][d] for n in nodes] for k in ("start", "limit", "stride")
        )
        sizes = p.sizes(nodes, d)
        whole = all(
            (a, b, s) == (0, each.operands[0].shape[d], 1)
            for a, b, s, each in zip(start, limit, stride, nodes)
        )
        if whole:
            made.append(dims[d])
        elif len(set(stride)) != 1:
            p.refuse("a slice whose step depends on a size")
        elif len(set(start)) == 1:
            new = p.builder.slice(new, d, start[0], limit[0], stride[0])
            made.append(_taken(p, dims[d], sizes, limit))
        else:
            new = _taken_from(p, new, d, start, sizes[0], stride[0])
            made.append(p.fitted(sizes, uniform=all(f.uniform for f in dims[d])))
    p.set(result, new, made)


def _taken(p: Padding, dim: Dim, sizes: Sequence[int], limit: Sequence[int]) -> Dim:
    """Of a slice that begins at a fixed place."""
    if is_static(dim):
        return p.fitted(sizes, uniform=all(f.uniform for f in dim))
    extent = p.prefix(dim, "a slice")
    if len(set(sizes)) == 1:
        if len(set(limit)) != 1 or extent.least(p.lows, p.mosts) < limit[0]:
            p.refuse("a slice that ends within what counts at some sizes and not at others")
    return p.fitted(sizes, uniform=all(f.uniform for f in dim))


def _taken_from(
    p: Padding, x: Value, dim: int, start: Sequence[int], size: int, stride: int
) -> Value:
    """`size` elements of a dim from a place on that depends on the symbols."""
    extent = p.fit(start)
    if extent is None:
        p.refuse("a slice that begins where no linear function of the symbols says")
    b = p.builder
    steps = b.scalar("mul", b.iota(torch.int64, [size], 0), stride)
    places = b.binary("add", steps, b.broadcast(p.count(extent), [size]))
    return gathered(p, x, dim, places)


@rule("pad")
def pad(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """What is behind the end is hidden, so it does not matter how much is added there."""
    x, number = node.operands
    lows, highs = ([each.attrs[name] for each in nodes] for name in ("low", "high"))
    dims = p.dims_of(x)
    padded = [d for d in range(x.rank) if any(each[d] for each in (*lows, *highs))]
    fixed = [d for d in padded if len({(a[d], b[d]) for a, b in zip(lows, highs)}) == 1]
    cuts = [d for d in fixed if min(lows[0][d], highs[0][d]) < 0]
    shifted = [
        d
        for d in padded
        if d not in fixed
        and (len({each[d] for each in lows}) > 1 or min(each[d] for each in (*lows, *highs)) < 0)
    ]
    behind = [d for d in padded if not is_static(dims[d])]
    for d in behind:
        p.prefix(dims[d], "padding")
    made = [p.fitted(p.sizes(nodes, d)) if d in padded else dims[d] for d in range(x.rank)]
    new = p.of(x)
    if behind:
        new = p.hide(new, dims, behind, p.builder.broadcast(p.of(number), x.shape))
    if padded and fixed == padded and not cuts:
        p.emit(node, [new, p.of(number)], made)
        return
    # A pad's result is known to grow with its operand, so this one has to be something else.
    for d in padded:
        if d in shifted:
            size = node.results[0].shape[d]
            new = _shifted(p, new, d, [each[d] for each in lows], size, p.of(number))
            continue
        low, high = lows[0][d], highs[0][d]
        new = p.builder.slice(new, d, max(-low, 0), new.shape[d] - max(-high, 0))
        for size, in_front in ((low, True), (high, False)):
            if size > 0:
                shape = [size if i == d else n for i, n in enumerate(new.shape)]
                edge = p.builder.broadcast(p.of(number), shape)
                new = p.builder.concat([edge, new] if in_front else [new, edge], d)
    p.set(node.results[0], new, made)


def _shifted(p: Padding, x: Value, dim: int, low: Sequence[int], size: int, number: Value) -> Value:
    """Behind `low` times the number, which depends on the symbols; less than none cut elements off.
    `size` elements in all."""
    begin, b = p.fit(low), p.builder
    if begin is None:
        p.refuse("padding in front of which no linear function of the symbols says how much")
    places = b.binary("sub", b.iota(torch.int64, [size], 0), b.broadcast(p.count(begin), [size]))
    within = b.binary("and", b.compare("ge", places, 0), b.compare("lt", places, x.shape[dim]))
    taken = gathered(p, x, dim, places)
    return b.select(b.along(within, dim, taken.shape), taken, b.broadcast(number, taken.shape))


@rule("concat")
def concat(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    along, xs, (result,) = node.attrs["dim"], node.operands, node.results
    made = []
    for d in range(result.rank):
        if d == along:
            made.append(p.fitted(p.sizes(nodes, d)))
            continue
        made.append(functools.reduce(p.unify, (p.dims_of(x)[d] for x in xs)))
    parts = [p.dims_of(x)[along] for x in xs]
    if all(map(is_static, parts[:-1])):
        if not is_static(parts[-1]):
            p.prefix(parts[-1], "a concatenation")
        p.emit(node, [p.of(x) for x in xs], made)
        return
    p.set(result, _compacted(p, xs, along, result), made)


def _compacted(p: Padding, xs: Sequence[Value], along: int, result: Value) -> Value:
    """What counts of each, one behind the other."""
    b, size = p.builder, result.shape[along]
    places = b.iota(torch.int64, [size], 0)
    begin = b.constant(0, torch.int64)
    made: Value | None = None
    for x in xs:
        offset = b.broadcast(begin, [size])
        part = gathered(p, p.of(x), along, b.binary("sub", places, offset))
        if made is None:
            made = part
        else:
            behind = b.along(b.compare("ge", places, offset), along, result.shape)
            made = b.select(behind, part, made)
        dim = p.dims_of(x)[along]
        if is_static(dim):
            begin = b.scalar("add", begin, x.shape[along])
        else:
            begin = b.binary("add", begin, p.count(p.prefix(dim, "a concatenation")))
    assert made is not None
    return made


@rule("reverse")
def reverse(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (x,), (result,) = node.operands, node.results
    dims, new, fixed = p.dims_of(x), p.of(x), []
    for d in node.attrs["dims"]:
        if is_static(dims[d]):
            fixed.append(d)
            continue
        b, extent = p.builder, p.prefix(dims[d], "a reversal")
        size = [x.shape[d]]
        last = b.scalar("sub", b.broadcast(p.count(extent), size), 1)
        new = gathered(p, new, d, b.binary("sub", last, b.iota(torch.int64, size, 0)))
    if fixed:
        new = p.builder.reverse(new, fixed)
    p.set(result, new, dims)


@rule("gather")
def gather(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    x, *indices = node.operands
    dims, which = p.dims_of(x), node.attrs["indexedDims"]
    places, of_places = [], []
    for number, (d, index) in enumerate(zip(which, indices)):
        if (along := _own_places(p, nodes, number, d)) is not None:
            # Where each element already is, whatever counts of it.
            places.append(p.builder.iota(index.dtype, index.shape, along))
            of_places.append(_with(p.dims_of(index), along, dims[d]))
            continue
        # Where nothing counts an index may be anything.
        inside = index.bounds is not None and 0 <= index.bounds[0] and (
            index.bounds[1] < min(each.operands[0].shape[d] for each in nodes)
        )  # fmt: skip
        new = _placed(p, p.of(index), dims[d])
        if not inside and not all(map(is_static, p.dims_of(index))):
            new = p.builder.scalar("max", new, 0)
            new = p.builder.scalar("min", new, max(x.shape[d] - 1, 0))
        places.append(new)
        of_places.append(p.dims_of(index))
    made = [functools.reduce(p.unify, each) for each in zip(*of_places)]
    kept = [dims[d] for d in range(x.rank) if d not in which]
    p.emit(node, [p.of(x), *places], plain([*made, *kept]))


def _placed(p: Padding, index: Value, dim: Dim) -> Value:
    """From the number of an element among those that count to where it lies."""
    factors = joined(dim)
    if len(factors) > 1:
        return places_of(p, index, factors)
    if not is_static(dim):
        p.prefix(dim, "indices")
    return index


def _own_places(p: Padding, nodes: Sequence[Node], number: int, dim: int) -> int | None:
    """The dim of the indices along which this one counts the elements of a dim that is padded, all
    of them, as where elements are gathered along another dim; None if it does anything else."""
    x, index = nodes[0].operands[0], nodes[0].operands[1 + number]
    maker = p.maker(index)
    if maker is None or maker.op != "weft.iota" or len(joined(p.dims_of(x)[dim])) < 2:
        return None
    along = maker.attrs["dim"]
    sizes = [(n.operands[0].shape[dim], n.operands[1 + number].shape[along]) for n in nodes]
    return along if all(one == other for one, other in sizes) else None


def _with(dims: Sequence[Dim], place: int, dim: Dim) -> list[Dim]:
    return [dim if d == place else each for d, each in enumerate(dims)]


@rule("scatter")
def scatter(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """An update whose index is outside is left out."""
    x, updates, *indices = node.operands
    dims, which = p.dims_of(x), node.attrs["indexedDims"]
    for own, other in zip(p.combined(indices), p.dims_of(updates)):
        p.unify(own, other)
    places = []
    for d, each in zip(which, indices):
        place, outside = _placed(p, p.of(each), dims[d]), x.shape[d]
        places.append(p.hide(place, p.dims_of(each), range(each.rank), outside))
    kept = [d for d in range(x.rank) if d not in which]
    made = list(dims)
    for place, d in enumerate(kept, indices[0].rank):
        made[d] = p.unify(dims[d], p.dims_of(updates)[place])
    for d in which:
        made[d] = tuple(Factor(f.sizes, f.extent) for f in made[d])
    p.emit(node, [p.of(x), p.of(updates), *places], plain(made))


@rule("sort")
def sort(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """What does not count stands last: equal elements keep their order, and NaN is the greatest."""
    (x,), along, descending = node.operands, node.attrs["dim"], node.attrs["descending"]
    if any((n.attrs["dim"], n.attrs["descending"]) != (along, descending) for n in nodes):
        p.refuse("the program does other things at other sizes")
    dims = p.dims_of(x)
    made = plain(dims)
    made[along] = p.fitted(p.sizes(nodes, along))
    if not is_static(dims[along]):
        p.prefix(dims[along], "a sort")
    p.emit(node, [p.hidden(x, [along], _last(x.dtype, descending))], made, made)


def _last(dtype: torch.dtype, descending: bool) -> Any:
    """What no element stands behind in order."""
    if dtype == torch.bool:
        return not descending
    if dtype.is_floating_point:
        return -math.inf if descending else math.nan
    return torch.iinfo(dtype).min if descending else torch.iinfo(dtype).max


@rule("assert")
def check(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (condition,) = node.operands
    p.emit(node, [p.hidden(condition, range(condition.rank), True)])
