# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An exported program with symbolic sizes at given sizes: the same nodes with static shapes.

Nothing of the user's runs again. Each op is asked for its result's shape on tensors without values,
and numbers that are sizes become numbers.
"""

from __future__ import annotations

import copy
import itertools
import operator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram

from weft.frontend.lowered import Unsupported
from weft.frontend.table import VARYING

Sizes = dict[Any, int]  # by sympy symbol
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_NUMBERS = (int, float, bool)
# Checks of sizes; what they say has become guards of the program.
_CHECKS = frozenset(
    f"aten.{name}.default"
    for name in ("_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size")
)


def at_sizes(program: ExportedProgram, sizes: Sizes) -> ExportedProgram:
    """Raises: Unsupported, where a size depends on anything but `sizes`."""
    mode = next(
        value.fake_mode
        for node in program.graph.nodes
        if isinstance(value := node.meta.get("val"), FakeTensor)
    )
    made = copy.copy(program)
    made._guards_code = []  # which samples of sizes may break, and functionalising would check
    with mode:
        made._graph_module = _Concrete(program.graph_module, sizes).module()
    return made


class _Concrete:
    def __init__(
        self, source: torch.fx.GraphModule, sizes: Sizes, given: list[Any] | None = None
    ) -> None:
        """given: values of the placeholders of a region."""
        self._source = source
        self._sizes = sizes
        self._given = given
        self._graph = torch.fx.Graph()
        self._attributes: dict[str, Any] = {}
        self._nodes: dict[torch.fx.Node, Any] = {}  # nodes of the new graph, or numbers

    def module(self) -> torch.fx.GraphModule:
        """`result` then holds the values of the outputs."""
        given = iter(self._given or ())
        checks = _checks_among(self._source.graph)
        for node in self._source.graph.nodes:
            if node.op == "placeholder":
                value = next(given) if self._given is not None else None
                self._copy(node, self._placeholder(node) if self._given is None else value)
            elif node.op == "get_attr":
                self._attributes[node.target] = operator.attrgetter(node.target)(self._source)
                self._copy(node, self._attributes[node.target])
            elif node.op == "output":
                args = torch.fx.node.map_arg(node.args, self._nodes.__getitem__)
                self.result = self._values(args[0])
                self._graph.output(args[0]).meta.update(node.meta)
            elif node not in checks:
                self._call(node)
        module = torch.fx.GraphModule(self._attributes, self._graph)
        module.meta.update(self._source.meta)
        return module

    def _placeholder(self, node: torch.fx.Node) -> Any:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return self._number(value)
        if not any(isinstance(each, torch.SymInt) for each in (*value.shape, *value.stride())):
            return value
        shape, strides = ([self._number(n) for n in each] for each in (value.shape, value.stride()))
        return torch.empty_strided(
            shape, strides, dtype=value.dtype, device=value.device
        ).requires_grad_(value.requires_grad)

    def _copy(self, node: torch.fx.Node, value: Any) -> None:
        made = self._graph.node_copy(node, self._nodes.__getitem__)
        made.meta["val"] = value
        self._nodes[node] = made

    def _call(self, node: torch.fx.Node) -> None:
        args, kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), self._argument)
        values, named = self._values((args, kwargs))
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            args, value = self._region(args, values)
        elif node.target is operator.getitem and isinstance(args[0], torch.fx.Node):
            value = values[0][values[1]]
        else:
            value = node.target(*values, **named)
        if isinstance(value, _SYMBOLIC):
            value = self._number(value)
        if isinstance(value, _NUMBERS):
            self._nodes[node] = value
            return
        made = self._graph.create_node("call_function", node.target, args, kwargs, node.name)
        made.meta.update(node.meta)
        made.meta["val"] = value
        made.meta[VARYING] = _varying(node)
        self._nodes[node] = made

    def _region(self, args: tuple, values: tuple) -> tuple[tuple, Any]:
        places = [i for i, each in enumerate(values) if isinstance(each, torch.fx.GraphModule)]
        if len(places) != 1:
            raise Unsupported("a region of several bodies, with symbolic sizes")
        body = values[places[0]]
        inner = _Concrete(body, self._sizes, list(values[places[0] + 1 :]))
        name = args[places[0]].target
        self._attributes[name] = inner.module()
        args[places[0]].meta["val"] = self._attributes[name]
        return args, inner.result

    def _argument(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.fx.Node):
            return self._nodes[leaf]
        return self._number(leaf) if isinstance(leaf, _SYMBOLIC) else leaf

    def _values(self, tree: Any) -> Any:
        return torch.fx.node.map_aggregate(
            tree, lambda leaf: leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf
        )

    def _number(self, value: Any) -> Any:
        if not isinstance(value, _SYMBOLIC):
            return value
        found = value.node.expr.subs(self._sizes)
        if not found.is_number:
            raise Unsupported(f"a size is {found}, which depends on data")
        return bool(found) if found.is_Boolean else int(found) if found.is_integer else float(found)


def _checks_among(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The checks of sizes, and the numbers that they alone read."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        is_number = isinstance(node.meta.get("val"), _SYMBOLIC) and node.op == "call_function"
        if str(node.target) in _CHECKS or (is_number and found.issuperset(node.users)):
            found.add(node)
    return found


def _varying(node: torch.fx.Node) -> frozenset[int]:
    """The dims of which the first argument's size or that of the first result is a symbol."""
    nodes = [each for each in (*node.args[:1], node) if isinstance(each, torch.fx.Node)]
    values = [pytree.tree_leaves(each.meta.get("val"))[:1] for each in nodes]
    return frozenset(
        dim
        for value in itertools.chain(*values)
        if isinstance(value, torch.Tensor)
        for dim, size in enumerate(value.shape)
        if isinstance(size, torch.SymInt)
    )


def symbols_of(program: ExportedProgram) -> list[Any]:
    """The sympy symbols among the sizes of the arguments, in order."""
    found: dict[Any, None] = {}
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt):
                found.update(
                    dict.fromkeys(sorted(size.node.expr.free_symbols, key=lambda each: each.name))
                )
    return list(found)
