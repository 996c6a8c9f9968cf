# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph under construction, and its JSON.

Values are numbered in the JSON only, when the graph is finished and dead nodes are gone.
Types of results are written where the dialect cannot infer them; `Value` knows them all,
because broadcasts and casts have to be made explicit.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from weft._graph_definitions import DEFINITIONS
from weft.dialect.definitions import Attribute, Definition
from weft.frontend.dtypes import NAMES
from weft.frontend.lowered import Location

# compiler/Graph/Derivative.h
STOPS_GRADIENT = "weft.stops_gradient"
RECOMPUTE = "weft.recompute"
SUBGRADIENT = "weft.subgradient"
EFFECTS = frozenset({"weft.assert", "weft.torch_fallback"})


@dataclass(eq=False)
class Value:
    """A tensor of the graph. `bounds`: smallest and largest element, where known (integers)."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    bounds: tuple[int, int] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(eq=False)
class Body:
    """What a scan repeats: a graph of its own, which sees no values of the other."""

    arguments: list[Value]
    nodes: list[Node]
    outputs: list[Value]


@dataclass(eq=False)
class Node:
    """level: the operand that autograd takes the slope for a function of, if one whose derivative
    is zero; only the graph's meaning in PyTorch's ops reads it."""

    op: str
    operands: list[Value]
    attrs: dict[str, Any]
    results: list[Value]
    location: Location | None
    body: Body | None = None
    level: int | None = None


@dataclass(eq=False)
class Input:
    name: str
    kind: str
    order: tuple[int, ...]
    value: Value
    bounds: tuple[int, ...] | None = None  # the largest sizes, of the tensor that holds sizes
    bounded: tuple[int, ...] | None = None  # for each dim the symbol that bounds it, or -1


@dataclass(eq=False)
class Output:
    order: tuple[int, ...]
    value: Value


def segments(*sizes: int) -> dict[str, str]:
    """Sizes of the operand groups of an op with several optional operands."""
    return {"mlir": f"array<i32: {', '.join(map(str, sizes))}>"}


# How values of attributes are written, by kind; an enum's case as MLIR writes it.
_WRITERS: dict[str, Callable[[Any], Any]] = {
    "i64": int,
    "f64": float,
    "bool": bool,
    "str": str,
    "i64s": list,
    "elements": dict,
}


def _written(attribute: Attribute, value: Any) -> Any:
    if attribute.cases:
        return {"mlir": f"#weft.{attribute.kind}<{value}>"}
    return _WRITERS[attribute.kind](value)


@dataclass
class Graph:
    """training: whether it is going to be differentiated, so that nodes say what the derivative
    needs to know. constant: nodes appended now are constants to the derivative. keeps_trivial:
    slices, reshapes and broadcasts that do nothing at these sizes stay, since at others they do.
    checkpointed: the backward computes them again. rng: who draws for dropout, "torch" or
    "philox". philox_key: drawn already. draws: masks computed of it so far. excess: how far an
    index may lie behind the end of what it indexes, by its known bounds. copied: of which PyTorch's
    derivative has copies, whatever becomes of them. numbers: of Python, which the program takes:
    f64[n], of an n that is known in the end; None where it takes none."""

    training: bool = False
    constant: bool = False
    keeps_trivial: bool = False
    rng: str = "torch"
    checkpointed: bool = False
    inputs: list[Input] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    location: Location | None = None
    philox_key: Value | None = None
    draws: int = 0
    excess: int = 0
    copied: list[Value] = field(default_factory=list)
    numbers: Value | None = None
    _input_names: set[str] = field(default_factory=set, init=False)

    def add_input(self, name: str, kind: str, order: Sequence[int], value: Value) -> Value:
        """Appends an input; one whose name is taken gets underscores behind it."""
        while name in self._input_names:
            name += "_"
        self._input_names.add(name)
        self.inputs.append(Input(name, kind, tuple(order), value))
        return value

    def add_output(self, value: Value, order: Sequence[int] | None = None) -> int:
        """Appends an output whose dims lie in memory as `order` says, from outermost to innermost
        (row-major without it), and returns its position."""
        self.outputs.append(Output(tuple(order or range(value.rank)), value))
        return len(self.outputs) - 1

    def make(
        self,
        definition: Definition,
        operands: Sequence[Sequence[Value]],
        attributes: Sequence[Any],
        result_type: Any,
    ) -> Any:
        """`dialect.making.Maker`'s: appends a node. attributes: those of elements as the document
        has them. result_type: (dtype, shape) of the result, or a list of several."""
        given = zip(definition.attributes, attributes, strict=True)
        attrs = {each.name: _written(each, value) for each, value in given if value is not None}
        if definition.has_segments:
            attrs["operandSegmentSizes"] = segments(*map(len, operands))
        one = isinstance(result_type, tuple)
        types = [result_type] if one else result_type
        results = self.append(
            definition.name, [x for group in operands for x in group], attrs, types
        )
        return results[0] if one else results

    def append(
        self,
        op: str,
        operands: Sequence[Value],
        attrs: dict[str, Any],
        types: Sequence[tuple[torch.dtype, Sequence[int]]],
        body: Body | None = None,
    ) -> list[Value]:
        """Appends a node at the current location."""
        results = [Value(dtype, tuple(shape)) for dtype, shape in types]
        if self.constant:
            attrs = {**attrs, STOPS_GRADIENT: True}
        if self.checkpointed and self.training:
            attrs = {**attrs, RECOMPUTE: True}
        self.nodes.append(Node(op, list(operands), attrs, results, self.location, body))
        return results

    def with_level_slope(self, value: Value, operand: int = 0) -> Value:
        """`value`, made last. PyTorch's derivative of its op reads this operand, and has zeros for
        its own derivative along it, where others have none."""
        if self.training and self.nodes and value in self.nodes[-1].results:
            self.nodes[-1].level = operand
        return value

    @contextlib.contextmanager
    def constant_to_derivative(self, constant: bool = True) -> Iterator[None]:
        """What is appended within has no gradient (`detach`, `no_grad`), or may have one again."""
        before, self.constant = self.constant, constant and self.training
        try:
            yield
        finally:
            self.constant = before

    def prune(self) -> None:
        """Drops nodes and inputs that neither an output nor an effect needs."""
        live = {id(output.value) for output in self.outputs}
        kept = []
        for node in reversed(self.nodes):
            if node.op not in EFFECTS and not any(id(value) in live for value in node.results):
                continue
            kept.append(node)
            live.update(id(value) for value in node.operands)
        self.nodes = kept[::-1]
        self.inputs = [entry for entry in self.inputs if id(entry.value) in live]

    def to_json(self, name: str = "main") -> bytes:
        """The document that compiler/Driver/GraphImport.cpp reads."""
        numbers: dict[int, int] = {}
        for entry in self.inputs:
            numbers[id(entry.value)] = len(numbers)
        lines: dict[Location, int] = {}
        nodes = [_record(node, numbers) for node in self.nodes]
        document = {
            "version": 3,
            "name": name,
            "inputs": [
                {
                    "name": entry.name,
                    "kind": entry.kind,
                    "dtype": NAMES[entry.value.dtype],
                    "shape": list(entry.value.shape),
                    "order": list(entry.order),
                    **_bounds(entry),
                }
                for entry in self.inputs
            ],
            "nodes": nodes,
            "outputs": [
                {"value": numbers[id(output.value)], "order": list(output.order)}
                for output in self.outputs
            ],
        }
        at = [lines.setdefault(n.location, len(lines)) if n.location else None for n in self.nodes]
        document["locs"] = {
            "lines": [[line.file, line.line, line.function] for line in lines],
            "nodes": at,
        }
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _bounds(entry: Input) -> dict[str, list[int]]:
    facts = {"bounds": entry.bounds, "bounded": entry.bounded}
    return {name: list(numbers) for name, numbers in facts.items() if numbers is not None}


def _record(node: Node, numbers: dict[int, int]) -> dict[str, Any]:
    """A node in the document; its results get the next numbers. Values of a body have numbers of
    their own, its arguments the first."""
    record: dict[str, Any] = {
        "op": node.op,
        "in": [numbers[id(value)] for value in node.operands],
        "attrs": node.attrs,
    }
    if node.level is not None:
        record["level"] = node.level
    if _says_types(node):
        record["types"] = [_type(value) for value in node.results]
    if node.body:
        inner: dict[int, int] = {}
        for value in node.body.arguments:
            inner[id(value)] = len(inner)
        record["body"] = {
            "arguments": [_type(value) for value in node.body.arguments],
            "nodes": [_record(each, inner) for each in node.body.nodes],
            "outputs": [inner[id(value)] for value in node.body.outputs],
        }
    for value in node.results:
        numbers[id(value)] = len(numbers)
    return record


def _says_types(node: Node) -> bool:
    """Elements in the document have no type of their own, so that nothing follows from them; and
    contractions of half precision infer its type where their result is the float32 sum."""
    definition = DEFINITIONS[node.op]
    is_sum = node.op == "weft.dot_general" and node.results[0].dtype != node.operands[0].dtype
    has_elements = any(each.kind == "elements" for each in definition.attributes)
    return is_sum or has_elements or not definition.inferred


def without_locations(graph: bytes) -> bytes:
    """What is the same for graphs that differ in source locations only: they stand last, and
    their key cannot stand in a string, whose quotation marks are escaped."""
    return graph.rpartition(b',"locs":')[0] or graph


def _type(value: Value) -> list[Any]:
    return [NAMES[value.dtype], list(value.shape)]
