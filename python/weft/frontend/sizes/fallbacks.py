# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that PyTorch runs inside a program for a range: row by row, on padded rows as on others, or
on what counts of their operands alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from weft.frontend import packed
from weft.frontend.fallback import overload_of
from weft.frontend.graph import STOPS_GRADIENT, Node, Value
from weft.frontend.sizes.extents import Dim, is_static, plain
from weft.frontend.sizes.padding import Padding, rule

# Of ops that PyTorch runs row by row, where the dim along which rows lie is among the arguments.
_ROWS_ALONG = {
    "aten.topk.default": 2,
    "aten.sort.default": 1,
    "aten.sort.stable": 2,
    "aten.kthvalue.default": 2,
    "aten.median.dim": 1,
    "aten.nanmedian.dim": 1,
    "aten.mode.default": 1,
    "aten.logcumsumexp.default": 1,
}
# Of these, those that go along a row from its beginning on.
_FROM_THE_BEGINNING = frozenset(("aten.logcumsumexp.default",))


@rule("torch_fallback")
def fallback(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    what, operands = node.attrs["target"], node.operands
    moves_gradients = _moves_gradients(p, node)
    if what in _ROWS_ALONG and len(operands) == 1 and operands[0].rank and not moves_gradients:
        if _row_by_row(p, node, nodes):
            return
    if what in _DRAWN_FOR_EACH and len(operands) == 1 and not moves_gradients:
        _drawn(p, node, nodes, p.of(operands[0]), plain(p.dims_of(operands[0])))
        return
    if what in _DRAWN_OF_SIZES and not operands:
        _drawn_of_sizes(p, node, nodes)
        return
    if what == str(packed.dropout) and all(map(is_static, p.dims_of(operands[1]))):
        if moves_gradients:
            p.refuse(f"gradients of {what} with symbolic sizes")
        dims = plain(p.dims_of(operands[0]))
        made = [tuple(replace(f, uniform=False) for f in dim) for dim in dims]
        p.emit(node, [p.of(x) for x in operands], made)
        return
    if _depends_on_sizes(p, nodes):
        _on_what_counts(p, node, nodes)
    else:
        _as_it_is(p, node)


@rule("grouped_dot")
def grouped_dot(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    if _depends_on_sizes(p, nodes):
        p.refuse(f"{node.op} with symbolic sizes")
    _as_it_is(p, node)


def _moves_gradients(p: Padding, node: Node) -> bool:
    """Whether gradients come through the op to what is padded."""
    if not p.builder.graph.training or node.attrs.get(STOPS_GRADIENT):
        return False
    padded = [x for x in node.operands if not all(map(is_static, p.dims_of(x)))]
    return any(id(x) in p.differentiable for x in padded)


def _depends_on_sizes(p: Padding, nodes: Sequence[Node]) -> bool:
    node = nodes[0]
    return (
        any(each.attrs != node.attrs for each in nodes)
        or not all(is_static(dim) for x in node.operands for dim in p.dims_of(x))
        or any(
            each.results[i].shape != r.shape for each in nodes for i, r in enumerate(node.results)
        )
    )


def _as_it_is(p: Padding, node: Node) -> None:
    made = [[p.fitted([n] * len(p.samples)) for n in result.shape] for result in node.results]
    p.emit(node, [p.of(x) for x in node.operands], *made)


def _on_what_counts(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    """The op is given what counts of its operands, and its results are padded with zeros. Gradients
    come to what counts alone."""
    op = overload_of(node.attrs["target"])
    if op._schema.is_mutable or torch.Tag.nondeterministic_seeded in op.tags:
        p.refuse(f"{node.attrs['target']} with symbolic sizes")
    templates = [json.loads(each.attrs["arguments"]) for each in nodes]
    orders = [tuple(range(x.rank)) for x in node.operands]
    template = _at_each_size(p, templates, orders)
    given = [[_counted_dims(p, p.dims_of(x)), order] for x, order in zip(node.operands, orders)]
    made = []
    for i, result in enumerate(node.results):
        sizes = zip(*(each.results[i].shape for each in nodes))
        made.append([p.fitted(of_dim) for of_dim in sizes] if result.rank else [])
    arguments = {
        "counting": given,
        "results": [_counted_dims(p, dims) for dims in made],
        "of": template,
    }
    operands = [*map(p.of, node.operands), p.all_sizes]
    p.emit(node, operands, *made, arguments=json.dumps(arguments))


def _at_each_size(p: Padding, values: Sequence[Any], orders: list[tuple[int, ...]]) -> Any:
    """One template for those of all samples, with functions of the symbols in the place of numbers.
    orders: of the operands' dims in memory, where a template has strides."""
    first = values[0]
    if any(type(each) is not type(first) for each in values):
        p.refuse("an op has other arguments at other sizes")
    if isinstance(first, dict):
        if len({tuple(each) for each in values}) > 1:
            p.refuse("an op has other arguments at other sizes")
        ((tag, value),) = first.items()
        if tag == "lying":
            return _lying(p, [each["lying"] for each in values], orders)
        return {tag: _at_each_size(p, [each[tag] for each in values], orders)}
    if isinstance(first, list) and all(len(each) == len(first) for each in values):
        return [_at_each_size(p, each, orders) for each in zip(*values)]
    if all(each == first for each in values):
        return first
    extent = p.fit(values) if type(first) is int else None
    if extent is None:
        p.refuse("an op has an argument that is no linear function of sizes")
        raise AssertionError
    return {"size": [extent.coefficients, extent.constant]}


def _lying(p: Padding, values: Sequence[Any], orders: list[tuple[int, ...]]) -> dict[str, int]:
    number = values[0][0]
    found = {_descending(strides) for _, strides in values}
    if len(found) > 1 or any(0 in strides for _, strides in values):
        p.refuse("an operand lies otherwise at other sizes")
    orders[number] = found.pop()
    return {"tensor": number}


def _counted_dims(p: Padding, dims: Sequence[Dim]) -> list[list[tuple]]:
    """As PaddedDims."""
    if any(f.extent is None and not f.is_static for dim in dims for f in dim):
        p.refuse("a size that is no linear function of the symbols")
    return [
        [(f.sizes[0], f.extent and f.extent.coefficients, f.extent.constant if f.extent else 0)
         for f in dim] for dim in dims
    ]  # fmt: skip


# They draw a number for each element of their operand, in the order of its memory.
_DRAWN_FOR_EACH = frozenset(
    f"aten.{name}.default" for name in ("dropout", "randn_like", "rand_like", "bernoulli")
)
# They draw the same where a list of sizes stands for the operand.
_DRAWN_OF_SIZES = {
    "aten.randn.default": "aten.randn_like.default",
    "aten.rand.default": "aten.rand_like.default",
}


def _drawn(
    p: Padding,
    node: Node,
    nodes: Sequence[Node],
    operand: Value,
    dims: Sequence[Dim],
    **attrs: Any,
) -> None:
    """Of as many elements as count: so many numbers are drawn, in their order. dims: of the
    operand."""
    templates = [json.loads(each.attrs["arguments"]) for each in nodes]
    orders = {
        _order(template[0], each.results[0].shape) for template, each in zip(templates, nodes)
    }
    if len(orders) != 1 or None in orders or any(t[1:] != templates[0][1:] for t in templates):
        p.refuse("numbers are drawn for what lies otherwise at other sizes")
    counted = _counted_dims(p, dims)
    of = [{"tensor": 0}, *templates[0][1:]]
    arguments = json.dumps({"counting": [[counted, orders.pop()]], "results": [counted], "of": of})
    made = [tuple(replace(f, uniform=False) for f in dim) for dim in dims]
    p.emit(node, [operand, p.all_sizes], made, arguments=arguments, **attrs)


def _drawn_of_sizes(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    (result,) = node.results
    dims = [p.fitted(p.sizes(nodes, d)) for d in range(result.rank)]
    given = p.builder.constant(1, result.dtype, result.shape)
    _drawn(p, node, nodes, given, dims, target=_DRAWN_OF_SIZES[node.attrs["target"]])


def _order(operand: Any, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Of the dims in memory of what is drawn for a fallback's operand, which has no gaps where the
    operand has; None where that shows elements more than once."""
    if not isinstance(operand, dict) or "lying" not in operand:
        return tuple(range(len(shape)))
    strides = operand["lying"][1]
    order = _descending(strides)
    least = 1
    for d in reversed(order):
        if strides[d] < least:
            return None
        least = strides[d] * shape[d]
    return order


def _descending(strides: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(strides)), key=lambda d: (-strides[d], d)))


def _row_by_row(p: Padding, node: Node, nodes: Sequence[Node]) -> bool:
    """What is in rows that do not count does not matter. False where rows are padded themselves."""
    (x,), arguments = node.operands, json.loads(node.attrs["arguments"])
    dims, along = plain(p.dims_of(x)), arguments[_ROWS_ALONG[node.attrs["target"]]] % x.rank
    is_whole = node.attrs["target"] not in _FROM_THE_BEGINNING
    if not is_static(dims[along]):
        if is_whole:
            return False
        p.prefix(dims[along], node.attrs["target"])
    made = []
    for number, result in enumerate(node.results):
        own = [*dims[:along], *dims[along + 1 :]]
        if not is_whole:
            own.insert(along, dims[along])
        elif result.rank == x.rank:
            sizes = [each.results[number].shape[along] for each in nodes]
            own.insert(along, p.fitted(sizes))
        made.append(own)
    p.emit(node, [p.of(x)], *made)
    return True
