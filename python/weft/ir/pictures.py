# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of modules, drawn by Graphviz: SVG, PNG, or DOT for other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft import errors
from weft.ir.functions import Function
from weft.ir.module import Module
from weft.ir.repetition import Repetition, find_repetition
from weft.ir.showing import MOST_ELEMENTS_INLINE
from weft.ir.values import Operation, Value

FORMATS = ("svg", "png", "dot")
STAGES = ("graph", "optimized", "kernels", "linalg")
_MANY_OPS = 80
_LONGEST = 28

_FORWARD, _BACKWARD = "#c9dcf5", "#f7cfc9"
_OP = {"shape": "box", "style": "filled,rounded", "fillcolor": "#f2f2f2"}
_VARIABLE = {"shape": "ellipse", "style": "filled", "fillcolor": "#e3f1dc"}
_WEIGHT = {"shape": "ellipse", "style": "filled", "fillcolor": "#fbf3d0", "fontsize": "9"}
_KNOWN = ("weft.", "func.", "linalg.", "tensor.", "arith.", "builtin.")

NodeAttributes = Callable[[Operation], dict[str, Any]]


def visualize(
    module: Module,
    path: str | Path,
    *,
    function: str | None = None,
    fold: bool | None = None,
    attributes: Sequence[str] | None = None,
    node_attributes: NodeAttributes | None = None,
) -> None:
    """Draws a module into a file, whose suffix says how: .svg, .png or .dot.

    Variables are ellipses with their types, ops are boxes with their attributes; constants of
    fewer than ten elements, or of one value, stand in the op that reads them. Functions and
    kernels that are called are drawn around their ops. Of a differentiated module forward is
    blue, backward red.

    function: which; by default `main`, or all of a module without one. fold: whether one of
    several equal layers stands for all; by default where there are many ops. attributes: names of
    those to show; by default all. node_attributes: Graphviz's own for an op, such as
    `lambda op: {"fillcolor": "gold"}`.
    Raises: errors.IRError for other suffixes, and for ops that no picture shows; errors.Error
    without Graphviz.
    """
    path = Path(path)
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise errors.IRError(
            f"expected a path that ends in .svg, .png or .dot; found {str(path)!r}"
        )
    if module.stage not in STAGES:
        raise errors.IRError(f"expected a stage among {', '.join(STAGES)}; found {module.stage!r}")
    drawing = Drawing(module, fold, attributes, node_attributes)
    for each in _drawn(module, function):
        drawing.function(each)
    source = drawing.graph
    if form == "dot":
        path.write_text(source.source, "utf-8")
        return
    import graphviz

    try:
        path.write_bytes(source.pipe(format=form))
    except graphviz.ExecutableNotFound:
        raise errors.Error(
            "Graphviz is not installed: install the package graphviz, or write a .dot"
        ) from None


def _drawn(module: Module, function: str | None) -> list[Function]:
    if function is not None:
        return [module[function]]
    if "main" in module:
        return [module["main"]]
    called = {
        op.attributes["callee"]
        for each in module
        for op in each.body
        if op.full_name == "func.call"
    }
    return [each for each in module if each.name not in called]


class Drawing:
    """A picture that is being made. graph: a graphviz.Digraph."""

    def __init__(
        self,
        module: Module,
        fold: bool | None,
        attributes: Sequence[str] | None,
        node_attributes: NodeAttributes | None,
    ) -> None:
        try:
            import graphviz
        except ModuleNotFoundError:
            raise errors.Error("pictures need the package graphviz: pip install graphviz") from None
        self.module = module
        self.fold = fold
        self.attributes = attributes
        self.node_attributes = node_attributes
        self.graph = graphviz.Digraph("weft")
        self.graph.attr("node", fontname="Helvetica", fontsize="11", margin="0.08,0.04")
        self.graph.attr("edge", fontname="Helvetica", fontsize="8", color="#555555")
        self.graph.attr("graph", fontname="Helvetica", fontsize="11", nodesep="0.2", ranksep="0.3")
        self._count = 0
        self._edges: set[tuple[str, str, str]] = set()

    def function(self, function: Function) -> None:
        """An entry, with its parameters and results."""
        colours = _Colours(function)
        values: dict[Value, str | None] = dict.fromkeys(function.params)
        params = {value: self._name() for value in function.params}
        outer = self.graph
        reader = _Reader(values, params)
        self._body(function, reader, outer, colours, top=True)
        for value, name in params.items():
            if name in reader.used or not value.users:
                kind = function.param_attributes(value.index).get("weft.kind", "input")
                if not value.users and kind != "input":
                    continue  # a weight that nothing reads
                style = _WEIGHT if kind in ("weight", "buffer", "bound") else _VARIABLE
                label = f"{value.name or f'%arg{value.index}'}\n{_typed(value)}"
                outer.node(name, label, **style)
        for number, value in enumerate(function.returns):
            several = len(function.returns) > 1
            name = self._name()
            label = f"result {number}" if several else "result"
            outer.node(name, f"{label}\n{_typed(value)}", **_VARIABLE)
            self._edge(reader.node(value), name, value)

    def _body(
        self, function: Function, reader: _Reader, graph: Any, colours: _Colours, top: bool
    ) -> None:
        ops = [
            op
            for op in function.body
            if op.full_name not in ("func.return", "arith.constant", "tensor.empty")
            and not _is_inline(op)
        ]
        found = self._repetition(ops) if top else None
        block = None
        if found is not None:
            name = f"cluster_{self._name()}"
            import graphviz

            block = graphviz.Digraph(name)
            block.attr(label=f"{found.count} times", style="dashed,rounded", fontsize="14")
        for number, op in enumerate(ops):
            if found is not None and found.representative(number) != number:
                self._stand_in(op, ops[found.representative(number)], reader, number, found)
                continue
            inside = found is not None and found.start <= number < found.end
            self._op(op, reader, block if inside else graph, colours)
        if block is not None:
            graph.subgraph(block)

    def _repetition(self, ops: list[Operation]) -> Repetition | None:
        if self.fold is False or (self.fold is None and len(ops) < _MANY_OPS):
            return None
        return find_repetition([_key(op) for op in ops])

    def _stand_in(
        self,
        op: Operation,
        shown: Operation,
        reader: _Reader,
        number: int,
        found: Repetition,
    ) -> None:
        """An op of a later block is the one of the first; what one block hands to the next is a
        dashed edge."""
        for value, other in zip(op.results, shown.results, strict=True):
            reader.values[value] = reader.values[other]
        if number < found.start + 2 * found.period:
            for value, first in zip(op.operands, shown.operands, strict=True):
                source = reader.values.get(value)
                if source is not None and source != reader.values.get(first):
                    target = reader.entry.get(shown)
                    if target is not None and source in reader.values.values():
                        self._edge(source, target, value, style="dashed", constraint="false")

    def _op(self, op: Operation, reader: _Reader, graph: Any, colours: _Colours) -> None:
        name = op.full_name
        if not name.startswith(_KNOWN):
            raise errors.IRError(f"expected an op that pictures show, found {name}")
        if name == "func.call":
            return self._call(op, reader, graph, colours)
        if name == "linalg.fill":
            reader.values[op.result] = None
            return None
        node = self._name()
        label = "\n".join([op.name, *self._lines(op, reader)])
        style = {**_OP, **colours.of(op)}
        if self.node_attributes is not None:
            style.update({k: str(v) for k, v in self.node_attributes(op).items()})
        graph.node(node, label, **style)
        reader.entry[op] = node
        for value in op.operands:
            source = reader.node(value)
            self._edge(source, node, value)
        for value in op.results:
            reader.values[value] = node
        return None

    def _call(self, op: Operation, reader: _Reader, graph: Any, colours: _Colours) -> None:
        import graphviz

        callee = self.module[op.attributes["callee"]]
        cluster = graphviz.Digraph(f"cluster_{self._name()}")
        names = [each.name for each in callee.body if not _is_hidden(each)]
        kind = callee.attributes.get("weft.kernel", "")
        label = f"{callee.name}{f' ({kind})' if kind else ''}: {_shortened(' '.join(names), 60)}"
        cluster.attr(
            label=label, style="rounded,filled", fillcolor="#fafafa", color="#888888", fontsize="10"
        )
        inner = _Reader({}, {})
        for param, value in zip(callee.params, op.operands, strict=True):
            inner.values[param] = reader.node(value)
        self._body(callee, inner, cluster, colours.inside(op), top=False)
        graph.subgraph(cluster)
        reader.entry[op] = next(iter(inner.entry.values()), None)
        for value, made in zip(op.results, callee.returns, strict=True):
            reader.values[value] = inner.node(made)

    def _lines(self, op: Operation, reader: _Reader) -> list[str]:
        lines = [f"{_typed(value)}" for value in op.results]
        for number, value in enumerate(op.operands):
            if (inline := _inline(value)) is not None:
                lines.append(f"operand {number}: {inline}")
        for name, value in op.attributes.items():
            chosen = self.attributes is None or name in self.attributes
            if chosen and name not in ("operandSegmentSizes", "value"):
                if name in ("indexing_maps", "iterator_types"):
                    continue
                lines.append(f"{name}: {_shortened(_written(value), _LONGEST)}")
        if op.name == "constant":
            lines.append(f"{op.attributes['value'].size} elements")
        return lines

    def _edge(
        self,
        source: str | None,
        target: str | None,
        value: Value,
        **style: str,
    ) -> None:
        several = value.producer is not None and len(value.producer.results) > 1
        label = str(value.index) if several else ""
        if source is None or target is None or (source, target, label) in self._edges:
            return
        self._edges.add((source, target, label))
        self.graph.edge(source, target, label=label or None, **style)

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"


class _Reader:
    """Which node a value comes from. values: None of what is not drawn. entry: the first node of
    an op. used: the parameters that are read."""

    def __init__(self, values: dict[Value, str | None], params: dict[Value, str]) -> None:
        self.values = values
        self.params = params
        self.entry: dict[Operation, str | None] = {}
        self.used: set[str] = set()

    def node(self, value: Value) -> str | None:
        if value in self.params:
            self.used.add(self.params[value])
            return self.params[value]
        return self.values.get(value)


class _Colours:
    """The colours of a function that has a backward: forward blue, backward red."""

    def __init__(self, function: Function, fixed: dict[str, str] | None = None) -> None:
        self._fixed = fixed
        self._forward: set[Operation] | None = None
        if function.name in ("forward", "backward"):
            is_forward = function.name == "forward"
            self._fixed = {"fillcolor": _FORWARD if is_forward else _BACKWARD}
        count = function.attributes.get("weft.joint_results")
        if count is not None:
            self._forward = set()
            waiting = [value.producer for value in function.returns[:count]]
            while waiting:
                op = waiting.pop()
                if op is not None and op not in self._forward:
                    self._forward.add(op)
                    waiting += [value.producer for value in op.operands]

    def of(self, op: Operation) -> dict[str, str]:
        if self._fixed is not None:
            return self._fixed
        if self._forward is None:
            return {}
        return {"fillcolor": _FORWARD if op in self._forward else _BACKWARD}

    def inside(self, op: Operation) -> _Colours:
        callee = op.module[op.attributes["callee"]]
        return _Colours(callee, self.of(op) or self._fixed)


def _is_hidden(op: Operation) -> bool:
    hidden = ("func.return", "arith.constant", "tensor.empty", "linalg.fill")
    return op.full_name in hidden or _is_inline(op)


def _is_inline(op: Operation) -> bool:
    return op.name == "constant" and _inline(op.result) is not None


def _inline(value: Value) -> str | None:
    """A constant of few elements, or of one value, as text."""
    producer = value.producer
    if producer is None or producer.name != "constant":
        return None
    elements = producer.attributes["value"]
    if elements.size and (elements == elements.flat[0]).all():
        return f"{elements.flat[0]:g}"
    if elements.size < MOST_ELEMENTS_INLINE:
        return str(elements.tolist())
    return None


def _typed(value: Value) -> str:
    type_ = value.type
    return f"{type_.dtype}{list(type_.shape)}" if hasattr(type_, "dtype") else str(type_)


def _written(value: Any) -> str:
    return str(value.text) if hasattr(value, "text") else str(value)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _key(op: Operation) -> Any:
    attributes = sorted((k, _written(v)) for k, v in op.attributes.items() if k != "value")
    return (op.full_name, tuple(_typed(each) for each in op.results), str(attributes))
