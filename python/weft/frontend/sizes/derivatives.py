# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What padding does to derivatives.

An op that reads an element at several places has a derivative that adds up over these. Of a graph
that is to be differentiated such an op's result is hidden where nothing counts, so that its
cotangent is zero there, unless that is so anyway (`quiet_values`); and where the derivative
multiplies the cotangent with operands, these are hidden ahead of it: zero times what padding holds
would have to be a number. All others pass a cotangent from each element to that of the same place,
and those of padding to padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from weft.frontend.graph import RECOMPUTE, STOPS_GRADIENT, Body, Graph, Node, Value
from weft.frontend.sizes.extents import is_static, plain

if TYPE_CHECKING:
    from weft.frontend.sizes.padding import Padding

# Their derivatives multiply operands.
_MULTIPLY = frozenset(
    f"weft.{name}"
    for name in (
        *("dot_general", "conv", "attention", "layer_norm", "rms_norm", "group_norm"),
        *("batch_norm", "cumulative", "scan"),
    )
)
# Their derivatives move elements, or combine them along a dim.
_MOVE = frozenset(
    f"weft.{name}"
    for name in (
        *("broadcast_in_dim", "slice", "pad", "concat", "reverse", "gather", "scatter"),
        *("reduce_window", "sort", "softmax", "log_softmax"),
    )
)
ELEMENTWISE = (
    *("neg", "abs", "sign", "not", "ceil", "floor", "round_even", "trunc", "exp", "exp2"),
    *("expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin"),
    *("acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf"),
    *("erfc", "gelu", "silu", "convert", "add", "sub", "mul", "div", "rem"),
    *("pow", "atan2", "copysign", "max", "min", "and", "or", "xor"),
    *("cmp", "select", "fma", "philox"),
)
# What padding is of a reduction's operand its own rule hides, along what it reduces.
_KEEP_PLACES = frozenset(
    f"weft.{name}"
    for name in (
        *ELEMENTWISE,
        *("with_slopes", "constant", "iota", "transpose", "reshape"),
        *("reduce", "arg_reduce", "assert"),
    )
)
# Their rules see to it.
_OWN_RULES = frozenset(("weft.torch_fallback",))
_SCATTERS = ("sum", "set")
# Their derivatives are zero along a cotangent of zero, whatever the operands are.
_LINEAR = frozenset(
    f"weft.{name}"
    for name in (
        *("neg", "add", "sub", "max", "min", "select", "convert", "transpose", "reshape"),
        *("broadcast_in_dim", "slice", "concat"),
    )
)
# And theirs wherever the operands are numbers; then so is what they give.
_TAME = _LINEAR | {f"weft.{name}" for name in ("mul", "tanh", "sigmoid", "erf", "gelu", "silu")}


def quiet_values(graph: Graph) -> set[int]:
    """Those whose cotangents are zero where nothing counts, whatever padding holds, by identity:
    all that is computed of them is hidden there, or cut out of what the user gets, and on the way
    to that nothing is an infinity. What arguments hold may be."""
    weights = (x.value for x in graph.inputs if x.kind in ("weight", "buffer"))
    loud = _loud_values(graph.nodes, _tame_values(graph.nodes, weights))
    every = (x for node in graph.nodes for x in node.results)
    return {id(x) for x in every if id(x) not in loud}


def quiet_values_of_step(body: Body, states: int) -> set[int]:
    """The same of a scan's step, whose operands and results are hidden where nothing counts."""
    tame = _tame_values(body.nodes, body.arguments)
    loud = _loud_values(body.nodes, tame)
    if any(id(x) in loud for x in body.arguments[:states]):
        return set()
    every = (x for node in body.nodes for x in node.results)
    return {id(x) for x in every if id(x) not in loud}


def is_tame(body: Body) -> bool:
    """Whether a scan's step that does not count has numbers as derivatives: it computes with the
    last state, and its cotangents are zero."""
    tame = _tame_values(body.nodes, body.arguments)
    floats = (x for node in body.nodes for x in node.results if x.dtype.is_floating_point)
    return all(id(x) in tame for x in floats)


def _tame_values(nodes: Sequence[Node], given: Iterable[Value]) -> set[int]:
    """Those that are numbers where nothing counts, as `given` are, by identity."""
    tame = set(map(id, given))
    for node in nodes:
        floats = [x for x in node.operands if x.dtype.is_floating_point]
        follows = node.op in _TAME and all(id(x) in tame for x in floats)
        if follows or node.op in _MULTIPLY or _is_finite(node):
            tame.update(map(id, node.results))
    return tame


def _loud_values(nodes: Sequence[Node], tame: set[int]) -> set[int]:
    loud: set[int] = set()
    for node in reversed(nodes):
        if not _hides(node):
            loud.update(map(id, _loud_operands(node, tame, loud)))
    return loud


def _hides(node: Node) -> bool:
    """Whether no cotangent comes to the padding of operands."""
    if node.op in ("weft.broadcast_in_dim", "weft.softmax", "weft.log_softmax"):  # along some dims
        return False
    return node.op in _MULTIPLY or node.op in _MOVE or bool(node.attrs.get(STOPS_GRADIENT))


def _loud_operands(node: Node, tame: set[int], loud: set[int]) -> Sequence[Value]:
    if any(id(x) in loud for x in node.results):
        return node.operands
    if node.op in _LINEAR or (node.op == "weft.reduce" and "<sum>" in node.attrs["kind"]["mlir"]):
        return ()
    if node.op == "weft.mul":
        x, y = node.operands
        return [each for each, by in ((x, y), (y, x)) if id(by) not in tame]
    if node.op in _TAME and all(id(x) in tame for x in node.operands):
        return ()
    return node.operands


def _is_finite(node: Node) -> bool:
    """Whether it is a constant whose elements are numbers."""
    if node.op != "weft.constant":
        return False
    splat = node.attrs["value"].get("splat")
    return isinstance(splat, (int, float)) and math.isfinite(splat)


def visit(
    p: Padding,
    rule: Callable[[Padding, Node, list[Node]], None],
    node: Node,
    nodes: list[Node],
) -> None:
    """What the rule makes of a node, for a graph that is to be differentiated. nodes: the same in
    each sample."""
    graph = p.builder.graph
    stops = bool(node.attrs.get(STOPS_GRADIENT))
    differs = not stops and any(id(x) in p.differentiable for x in node.operands)
    if differs:
        _refuse_unknown(p, node)
    graph.checkpointed = bool(node.attrs.get(RECOMPUTE))
    known = {id(x): p.of(x) for x in node.operands}
    if differs and node.op in _MULTIPLY:
        for x in node.operands:
            p.stand_for(x, _without_padding(p, x))
    first = len(graph.nodes)
    rule(p, node, nodes)
    moves = any(each.op == "weft.gather" for each in graph.nodes[first:])
    for x in node.operands:
        p.stand_for(x, known[id(x)])
    for result in node.results:
        if not result.dtype.is_floating_point:
            continue
        if stops and not _is_stopped(p, result):
            p.stand_for(result, p.builder.detached(p.of(result)))
        if not differs:
            continue
        p.differentiable.add(id(result))
        if id(result) in p.quiet:
            continue
        if moves or node.op in _MULTIPLY or node.op in _MOVE:
            _hide(p, result, _which(node, result.rank))
    graph.checkpointed = False


def _refuse_unknown(p: Padding, node: Node) -> None:
    if node.op not in _MULTIPLY | _MOVE | _KEEP_PLACES | _OWN_RULES:
        if not all(is_static(dim) for x in node.operands for dim in p.dims_of(x)):
            p.refuse(f"gradients of {node.op} with symbolic sizes")
    if node.op == "weft.scatter":
        kind = node.attrs["kind"]["mlir"].partition("<")[2].rstrip(">")
        if kind not in _SCATTERS:
            p.refuse(f"gradients of {node.op} by {kind} with symbolic sizes")


def _which(node: Node, rank: int) -> Sequence[int]:
    """The dims of a result along which its places are not those of its operand."""
    if node.op == "weft.broadcast_in_dim":
        (x,), (result,) = node.operands, node.results
        kept = zip(node.attrs["dims"], x.shape)
        same = {d for d, size in kept if size == result.shape[d]}
        return [d for d in range(rank) if d not in same]
    if node.op in ("weft.softmax", "weft.log_softmax"):
        return [node.attrs["dim"]]
    return range(rank)


def _hide(p: Padding, result: Value, which: Sequence[int]) -> None:
    dims = p.dims_of(result)
    hidden = p.hidden(result, which, 0)
    if hidden is not p.of(result):
        p.stand_for(result, hidden)
        p.dims[id(result)] = plain(dims)
        if all(d in which or is_static(dim) for d, dim in enumerate(dims)):
            p.zeroed[id(hidden)] = hidden, hidden


def _without_padding(p: Padding, old: Value) -> Value:
    """With zeros where nothing counts; of what an attention sees, everything: a query that sees no
    key has weights that are no numbers."""
    new, dims = p.of(old), p.dims_of(old)
    if all(map(is_static, dims)):
        return new
    number: Any = 0
    if new.dtype == torch.bool:
        number = True
    elif not new.dtype.is_floating_point:
        return new
    if id(new) not in p.zeroed:
        p.zeroed[id(new)] = new, p.hide(new, dims, range(new.rank), number)
    return p.zeroed[id(new)][1]


def _is_stopped(p: Padding, result: Value) -> bool:
    last = p.builder.graph.nodes[-1:]
    return any(
        each is p.of(result) and node.attrs.get(STOPS_GRADIENT)
        for node in last
        for each in node.results
    )
