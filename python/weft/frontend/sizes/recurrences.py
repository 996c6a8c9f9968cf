# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a scan does with padding: its steps are padded as any graph is, and those that do not count
leave the states as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.evaluation import segment_sizes
from weft.frontend.graph import Body, Graph, Node, Value, segments
from weft.frontend.sizes.derivatives import is_tame
from weft.frontend.sizes.extents import Dim, Extent, is_static
from weft.frontend.sizes.padding import Padding, rule

# compiler/Graph/AttributeNames.h says what it is.
_COUNTING_STEPS = "weft.counting_steps"


@rule("scan")
def scan(p: Padding, node: Node, nodes: Sequence[Node]) -> None:
    facts = {(*segment_sizes(each.attrs), each.attrs["reverse"]) for each in nodes}
    if len(facts) != 1:
        p.refuse("the program does other things at other sizes")
    if _is_same(p, nodes):
        made = [[p.fitted([n] * len(nodes)) for n in result.shape] for result in node.results]
        p.emit(node, [p.of(x) for x in node.operands], *made)
        return
    carried, read, used = segment_sizes(node.attrs)
    states, sequences = node.operands[:carried], node.operands[carried : carried + read]
    of_states = [_varying(p.dims_of(x)) for x in states]
    given = [*of_states, *(p.dims_of(x)[1:] for x in sequences)]
    given += [p.dims_of(x) for x in node.operands[carried + read :]]
    bodies = [each.body for each in nodes if each.body is not None]
    repeats_first = p.builder.graph.training and not is_tame(bodies[0])
    if repeats_first and (node.attrs["reverse"] or not all(is_static(d) for x in given for d in x)):
        p.refuse("gradients of steps that may be infinite, of a symbolic number")
    body, dims = p.within(bodies, given, carried)
    after = [
        [p.unify(*pair) for pair in zip(one, other, strict=True)]
        for one, other in zip(of_states, dims)
    ]
    operands, attrs = [*(p.of(x) for x in node.operands), p.all_sizes], {}
    lengths = [each.attrs["length"] for each in nodes]
    length = _length(p, sequences, lengths)
    if length is not None:
        operands.insert(carried + read, _counting(p, length, lengths[0]))
        if repeats_first:
            firsts = operands[:carried]
            for place, x in enumerate(sequences, carried):
                operands[place] = _repeating_first(p, operands[place], p.dims_of(x))
            operands[-1:-1] = firsts
            used += carried
        body = _keeping_states(body, carried, carried + read, repeats_first)
        numbers = ", ".join(map(str, (*length.coefficients, length.constant)))
        if not p.builder.graph.training:  # derivatives read the other steps as well
            attrs[_COUNTING_STEPS] = {"mlir": f"array<i64: {numbers}>"}
        read += 1
    attrs["operandSegmentSizes"] = segments(carried, read, used + 1)
    steps = p.fitted(lengths)
    p.emit(node, operands, *after, *([steps, *each] for each in dims[carried:]), body=body, **attrs)


def _is_same(p: Padding, nodes: Sequence[Node]) -> bool:
    """Whether no size that the scan sees is a symbol's."""
    return (
        all(is_static(dim) for x in nodes[0].operands for dim in p.dims_of(x))
        and len({each.attrs["length"] for each in nodes}) == 1
        and len({_text(each.body) for each in nodes if each.body is not None}) == 1
    )


def _text(body: Body) -> str:
    return repr([(n.op, n.attrs, [(r.dtype, r.shape) for r in n.results]) for n in body.nodes])


def _varying(dims: Sequence[Dim]) -> list[Dim]:
    """The dims of a state whose first elements may all be the same."""
    return [tuple(replace(factor, uniform=False) for factor in dim) for dim in dims]


def _length(p: Padding, sequences: Sequence[Value], lengths: Sequence[int]) -> Extent | None:
    """How many steps count; None if all do."""
    if len(set(lengths)) == 1:
        p.fixed([p.dims_of(x)[0] for x in sequences], "steps")
        return None
    found = {p.prefix(p.dims_of(x)[0], "steps") for x in sequences if p.dims_of(x)[0]}
    found.add(p.prefix(p.fitted(lengths), "steps"))
    if len(found) != 1:
        p.refuse("tensors are combined that are padded in two ways")
    return found.pop()


def _counting(p: Padding, length: Extent, most: int) -> Value:
    """Whether a step counts, bool (most)."""
    b = p.builder
    limit = b.broadcast(p.count(length), [most])
    return b.compare("lt", b.iota(torch.int64, [most], 0), limit)


def _repeating_first(p: Padding, x: Value, dims: Sequence[Dim]) -> Value:
    """With the first step's elements where no step counts."""
    first = p.builder.broadcast(p.builder.slice(x, 0, 0, 1), x.shape)
    return p.hide(x, dims, [0], first)


def _keeping_states(body: Body, carried: int, place: int, repeats_first: bool) -> Body:
    """With whether the step counts as the argument at `place`. repeats_first: steps that do not
    count compute what the first one does, whose derivatives are numbers where those of eager
    execution are; the first states are arguments ahead of the last."""
    graph = Graph(location=body.nodes[-1].location if body.nodes else None)
    b = Builder(graph)
    counts = Value(torch.bool, ())
    firsts: list[Value] = []
    if repeats_first:
        states = body.arguments[:carried]
        firsts = [Value(x.dtype, x.shape) for x in states]
        computed = {
            id(x): b.select(b.broadcast(counts, x.shape), x, first)
            for x, first in zip(states, firsts)
        }
        for node in body.nodes:
            node.operands = [computed.get(id(x), x) for x in node.operands]
    graph.nodes = [*graph.nodes, *body.nodes]
    kept: dict[int, Value] = {}
    outputs: list[Value] = []
    for number, new in enumerate(body.outputs):
        # What a step gives beside its state is most often that state, of which there is one copy.
        if number < carried and new is not body.arguments[number]:
            old = body.arguments[number]
            chosen = b.select(b.broadcast(counts, new.shape), new, old)
            kept.setdefault(id(new), chosen)
            outputs.append(chosen)
        else:
            outputs.append(kept.get(id(new), new))
    behind = [*body.arguments[place:-1], *firsts, body.arguments[-1]]
    arguments: list[Any] = [*body.arguments[:place], counts, *behind]
    return Body(arguments, graph.nodes, outputs)
