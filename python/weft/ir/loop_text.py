# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop functions for people: their buffers and loops, and what each loop reads and writes."""

from __future__ import annotations

import re
from typing import Any

from weft import errors
from weft.ir.functions import Function
from weft.ir.values import Operation, Value

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_PLACE = re.compile(r"\[[^\]]*\]|\([^()]*\)")
_DIM = re.compile(r"\bd(\d+)\b")


def loops(function: Function) -> str:
    """A kernel at the stage `linalg`, or a function of `weft.ir.lower_ops`, as text: buffers with
    shapes and types; each nest with its loops, spatial or reduction (S and R in short); what it
    reads and writes, what a reduction starts from; and which buffers never overlap.

    Raises: errors.IRError for a function without loops of linalg.
    """
    return _Text(function).text()


class _Text:
    def __init__(self, function: Function) -> None:
        if not any(op.full_name == "linalg.generic" for op in function.body):
            raise errors.IRError(
                f"expected a function of linalg, found {function.name} of {function.module.stage}"
            )
        self.function = function
        self.names: dict[Value, str] = {}
        self.buffers: dict[str, Any] = {}
        self.inits: dict[Value, str] = {}
        self.nests: list[list[str]] = []
        self.shared: dict[str, set[str]] = {}

    def text(self) -> str:
        returns = self.function.returns
        params = [self._name(value, f"x{value.index}") for value in self.function.params]
        for number, value in enumerate(returns):
            self.names.setdefault(value, f"y{number}")
        for op in self.function.body:
            self._visit(op)
        results = [self.names[value] for value in returns]
        inner = [name for name in self.buffers if name not in (*params, *results)]
        takes = ", ".join(self._typed(name) for name in params)
        lines = [
            f"loops @{self.function.name}({takes}) -> ({', '.join(map(self._typed, results))})"
        ]
        lines += [f"  buffer {self._typed(name)}" for name in inner]
        lines += self._aliases(params, results)
        return "\n".join([*lines, *(f"  {line}" for nest in self.nests for line in nest)])

    def _name(self, value: Value, name: str) -> str:
        self.names[value] = name
        self.buffers[name] = value.type
        return name

    def _typed(self, name: str) -> str:
        type_ = self.buffers[name]
        return f"{name}: {type_.dtype}{list(type_.shape)}"

    def _visit(self, op: Operation) -> None:
        name = op.full_name
        if name == "linalg.fill":
            self.inits[op.result] = _constant(op.operands[0])
        elif name == "linalg.generic":
            for value in op.results:
                self._name(value, self.names.get(value, f"t{self._count()}"))
            self._nest(op)
        elif name not in ("func.return", "arith.constant", "tensor.empty"):
            for value in op.results:
                self._name(value, self.names.get(value, f"t{self._count()}"))
            reads = ", ".join(self.names.get(each, "…") for each in op.operands)
            made = ", ".join(self.names[value] for value in op.results)
            self.nests.append([f"{made} = {name}({reads})"])

    def _count(self) -> int:
        return sum(name.startswith("t") for name in self.buffers)

    def _nest(self, op: Operation) -> None:
        attributes = op.attributes
        kinds = ["reduction" in str(each) for each in attributes["iterator_types"]]
        maps = [_indices(str(each)) for each in attributes["indexing_maps"]]
        inputs = op.operands[: attributes["operandSegmentSizes"][0]]
        outputs = op.operands[len(inputs) :]
        body = op.blocks[0]
        places = [f"{self._source(v)}[{', '.join(m)}]" for v, m in zip(inputs, maps)]
        written = [
            f"{self.names[v]}[{', '.join(m)}]" for v, m in zip(op.results, maps[len(inputs) :])
        ]
        scalars = dict(zip(body.params, [*places, *written], strict=True))
        lines = [f"for {self._axes(op, kinds, maps)}:"]
        lines.append(f"  reads {', '.join(dict.fromkeys(places)) or 'nothing'}")
        lines.append(f"  writes {', '.join(written)}")
        for place, init in zip(written, outputs, strict=True):
            if init in self.inits and any(kinds):
                lines.append(f"  init {place} = {self.inits[init]}")
        for place, value in zip(written, body[-1].operands, strict=True):
            lines.append(f"  {place} = {_expression(value, scalars)}")
        self.nests.append(lines)
        for value, place in zip(op.results, maps[len(inputs) :]):
            same = {
                self._source(v)
                for v, m in zip(inputs, maps)
                if m == place and not any(kinds) and v.type == value.type
            }
            others = {self._source(v) for v, m in zip(inputs, maps) if m != place}
            self.shared[self.names[value]] = same - others

    def _source(self, value: Value) -> str:
        return self.names.get(value, _constant(value))

    def _axes(self, op: Operation, kinds: list[bool], maps: list[list[str]]) -> str:
        sizes: dict[str, int] = {}
        for value, indices in zip([*op.operands], maps):
            for index, size in zip(indices, value.shape):
                if re.fullmatch(r"i\d+", index):
                    sizes.setdefault(index, size)
        axes = []
        for number, reduces in enumerate(kinds):
            kind = "reduction" if reduces else "spatial"
            size = sizes.get(f"i{number}", "?")
            axes.append(f"i{number} in 0..{size} {kind}")
        letters = "".join("R" if reduces else "S" for reduces in kinds)
        return f"{', '.join(axes)} [{letters}]" if axes else "one element"

    def _aliases(self, params: list[str], results: list[str]) -> list[str]:
        """A result may take the buffer of an operand that all loops read at the place that is
        written alone."""
        lines = []
        everything = [*params, *(name for name in self.buffers if name not in params)]
        for name in results:
            others = [each for each in everything if each != name]
            may = [each for each in others if each in self.shared.get(name, ())]
            never = [each for each in others if each not in may]
            if never:
                lines.append(f"  no alias: {name} with {', '.join(never)}")
            if may:
                lines.append(f"  may reuse: {name} the buffer of {', '.join(may)}")
        return lines


def _indices(text: str) -> list[str]:
    """The results of a text such as "affine_map<(d0, d1) -> (d1, d0)>", with d as i."""
    inside = text.partition("-> (")[2].rpartition(")")[0]
    return [_DIM.sub(r"i\1", each.strip()) for each in inside.split(",")] if inside else []


def _constant(value: Value) -> str:
    producer = value.producer
    if producer is None or producer.full_name != "arith.constant":
        return "…"
    found = producer.attributes["value"]
    return str(found) if not hasattr(found, "text") else found.text


def _expression(value: Value, scalars: dict[Value, str]) -> str:
    if value in scalars:
        return scalars[value]
    producer = value.producer
    if producer is None:
        return "…"
    if producer.full_name == "arith.constant":
        return _constant(value)
    operands = [_expression(each, scalars) for each in producer.operands]
    name = producer.full_name.partition(".")[2]
    infix = _INFIX.get(name.rstrip("fi"))
    if infix is not None and len(operands) == 2:
        inner = [" " in _PLACE.sub("", each) for each in operands]
        lhs, rhs = operands
        if inner[0] and infix in "*/":
            lhs = f"({lhs})"
        if inner[1] and infix != "+":
            rhs = f"({rhs})"
        return f"{lhs} {infix} {rhs}"
    return f"{name}({', '.join(operands)})"
