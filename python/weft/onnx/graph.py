# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX model as plain objects: nodes with their rules, inputs, outputs and initializers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
import torch
from google.protobuf.message import DecodeError

from weft import errors
from weft.onnx.table import Node, has_rule, rule_for
from weft.onnx.values import dtype_of, tensor_of

# The inputs that say shapes, axes, sizes, trip counts or conditions, by number.
_DECIDES = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "BlackmanWindow": (0,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1, 2),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **{
        f"Reduce{kind}": (1,)
        for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
    },
}
# What they are of their inputs depends on shapes alone.
_OF_SHAPES = ("Shape", "Size")
# What hands a value of a call on to where it decides. Behind arithmetic it may be data as well.
_HAND_ON = ("Cast", "Concat", "Identity", "Not", "Reshape", "Squeeze", "Unsqueeze")
MOST_STATIC = 64


@dataclass(frozen=True)
class Input:
    """dtype, shape: as declared, None where the model leaves them open; a dimension may be a
    name. A sequence or an optional has neither."""

    name: str
    dtype: torch.dtype | None = None
    shape: tuple[int | str | None, ...] | None = None

    def check(self, value: Any) -> None:
        """Shapes are left to the nodes: models run with other ones than they declare.

        Raises: errors.ArgumentError, if a call's value has another type than declared.
        """
        if self.dtype is None:
            return
        if not isinstance(value, torch.Tensor):
            kind = type(value).__qualname__
            raise errors.ArgumentError(
                f"input {self.name!r}: expected a torch.Tensor, found {kind}"
            )
        if value.dtype != self.dtype:
            raise errors.ArgumentError(
                f"input {self.name!r}: expected {self.dtype}, found {value.dtype}"
            )

    @property
    def may_decide(self) -> bool:
        """Whether a call's value of it may become part of the program."""
        return (
            self.dtype is not None
            and self.shape is not None
            and (self.shape == () or (len(self.shape) == 1 and _is_few(self.shape[0])))
        )


def _is_few(size: int | str | None) -> bool:
    return not isinstance(size, int) or size <= MOST_STATIC


@dataclass(frozen=True)
class Graph:
    """deciding: names of values that decide on shapes or on which nodes run. handed_on: those
    of them that do so as they are, and not after arithmetic."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    initializers: dict[str, torch.Tensor] = field(default_factory=dict)
    deciding: frozenset[str] = frozenset()
    handed_on: frozenset[str] = frozenset()

    @property
    def reads(self) -> set[str]:
        """Names that come from around it."""
        made = {each.name for each in self.inputs} | set(self.initializers)
        made |= {name for node in self.nodes for name in node.outputs}
        read = set(self.outputs)
        for node in self.nodes:
            read.update(name for name in node.inputs if name)
            read.update(*(graph.reads for graph in subgraphs(node)))
        return read - made


def subgraphs(node: Node) -> list[Graph]:
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def read_model(model: str | Path | bytes | onnx.ModelProto) -> Graph:
    """Raises: OSError; errors.ModelError, for what is no model; errors.UnsupportedError."""
    proto = _loaded(model)
    proto = _inlined(proto)
    opsets = {each.domain: each.version for each in proto.opset_import}
    opsets.setdefault("", opsets.pop("ai.onnx", 1))
    file = str(model) if isinstance(model, str | Path) else proto.graph.name
    graph = _Reader(opsets, file).graph(proto.graph)
    if not proto.graph.output:
        raise errors.ModelError("expected a model with outputs, found none")
    return graph


def _loaded(model: str | Path | bytes | onnx.ModelProto) -> onnx.ModelProto:
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, str | Path | bytes):
        raise TypeError(f"expected a path, bytes or ModelProto, found {type(model).__qualname__}")
    try:
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(str(model))
    except (DecodeError, onnx.checker.ValidationError) as error:
        where = "the bytes" if isinstance(model, bytes) else f"{model}"
        raise errors.ModelError(f"{where} cannot be read as an ONNX model: {error}") from error
    if not proto.opset_import:
        raise errors.ModelError(f"expected an ONNX model in {model!s:.200}, found something else")
    return proto


def _inlined(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Without functions of the model's own, and with those that ONNX gives as the meaning of an
    operator in place of the operators without a rule."""
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    opsets = {each.domain: each.version for each in proto.opset_import}
    written_out = {
        (node.domain, node.op_type)
        for node in _all_nodes(proto.graph)
        if not has_rule(node.domain, node.op_type)
        and _is_function(node, opsets.get(node.domain, 1))
    }
    if written_out:
        proto = onnx.inliner.inline_selected_functions(
            proto, sorted(written_out), inline_schema_functions=True
        )
    return proto


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _all_nodes(attribute.g)


def _is_function(node: onnx.NodeProto, opset: int) -> bool:
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


class _Reader:
    def __init__(self, opsets: dict[str, int], file: str) -> None:
        self._opsets = opsets
        self._file = file

    def graph(self, proto: onnx.GraphProto) -> Graph:
        if proto.sparse_initializer:
            raise errors.UnsupportedError("sparse initializers are not supported")
        initializers = {each.name: tensor_of(each) for each in proto.initializer}
        inputs = tuple(_input(each) for each in proto.input if each.name not in initializers)
        nodes = tuple(self._node(each, i + 1) for i, each in enumerate(proto.node))
        outputs = tuple(each.name for each in proto.output)
        deciding = frozenset(_deciding(nodes))
        handed_on = frozenset(_deciding(nodes, _HAND_ON))
        return Graph(proto.name, inputs, outputs, nodes, initializers, deciding, handed_on)

    def _node(self, proto: onnx.NodeProto, number: int) -> Node:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = self._opsets.get(domain)
        if opset is None:
            raise errors.ModelError(f"expected an operator set of {domain!r}, which is not given")
        attributes = {each.name: self._attribute(each) for each in proto.attribute}
        inputs, outputs = tuple(proto.input), tuple(proto.output)
        place = (self._file, number)
        node = Node(
            proto.op_type, domain, proto.name, inputs, outputs, opset, attributes, place=place
        )
        return dataclasses.replace(node, rule=rule_for(node))

    def _attribute(self, proto: onnx.AttributeProto) -> Any:
        kinds = onnx.AttributeProto
        if proto.type == kinds.TENSOR:
            return tensor_of(proto.t)
        if proto.type == kinds.GRAPH:
            return self.graph(proto.g)
        if proto.type == kinds.TYPE_PROTO:
            return None  # what an empty optional would hold: torch need not know
        found = onnx.helper.get_attribute_value(proto)
        if proto.type == kinds.STRING:
            return found.decode("utf-8")
        if proto.type == kinds.STRINGS:
            return [each.decode("utf-8") for each in found]
        return list(found) if proto.type in (kinds.INTS, kinds.FLOATS) else found


def _input(proto: onnx.ValueInfoProto) -> Input:
    if proto.type.WhichOneof("value") != "tensor_type":
        return Input(proto.name)
    tensor = proto.type.tensor_type
    dtype = dtype_of(tensor.elem_type)
    if not tensor.HasField("shape"):
        return Input(proto.name, dtype)
    shape = tuple(
        each.dim_value if each.HasField("dim_value") else each.dim_param or None
        for each in tensor.shape.dim
    )
    return Input(proto.name, dtype, shape)


def _deciding(nodes: tuple[Node, ...], through: tuple[str, ...] | None = None) -> set[str]:
    """through: the operators that are looked behind, by default all."""
    found: set[str] = set()
    for node in reversed(nodes):
        for graph in subgraphs(node):
            found |= graph.reads & (graph.deciding if through is None else graph.handed_on)
        for number in _DECIDES.get(node.op, ()) if node.domain == "" else ():
            if number < len(node.inputs) and (node.op, node.opset, number) not in _ATTRIBUTES:
                found.add(node.inputs[number])
        behind = node.op not in _OF_SHAPES if through is None else node.op in through
        if behind and found.intersection(node.outputs):
            found.update(node.inputs)
            found.update(*(graph.reads for graph in subgraphs(node)))
    return found - {""}


# Inputs that mean something else in an operator set.
_ATTRIBUTES = {("Resize", 10, number) for number in (2, 3)}
