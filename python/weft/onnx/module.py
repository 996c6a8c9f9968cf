# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX graph as a torch.nn.Module that applies its nodes' rules one after another."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft import errors
from weft.onnx.graph import MOST_STATIC, Graph
from weft.onnx.table import Node
from weft.onnx.values import has_values, is_tracing, real_values

_MOST_KNOWN = 4096  # elements of a value that is kept as constant, not computed by the program
_MOST_STEPS = 512  # of a loop that is unrolled into a program


class OnnxModule(torch.nn.Module):
    """Inputs in the graph's order; a tuple of the outputs in the graph's order.

    An input of which a value may become part of a program may be given as a plain number or tuple
    instead of a tensor: `arguments` does so. Initializers are parameters that need no gradients, or
    buffers if they are no floats; those that decide on shapes are constants.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self._stored: dict[str, str] = {}
        self._constants: dict[str, torch.Tensor] = {}
        for name, tensor in graph.initializers.items():
            if name in graph.deciding:
                self._constants[name] = tensor
            else:
                self._stored[name] = self._store(name, tensor)
        self._deciding = [
            i
            for i, each in enumerate(graph.inputs)
            if each.name in graph.handed_on and each.may_decide
        ]

    def arguments(self, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Of a call: the inputs, of which those that decide are plain numbers.

        Raises: errors.ArgumentError, for one that is not what the model declares.
        """
        found = list(inputs)
        for declared, value in zip(self.graph.inputs, found):
            declared.check(value)
        for i in self._deciding:
            value = found[i]
            if isinstance(value, torch.Tensor) and value.numel() <= MOST_STATIC:
                plain = value.tolist()
                found[i] = tuple(plain) if isinstance(plain, list) else plain
        return found, {}

    @property
    def params(self) -> dict[str, torch.Tensor]:
        """Initializers that are parameters and buffers, by the graph's names, in its order."""
        return {name: getattr(self, stored) for name, stored in self._stored.items()}

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        scope = Scope(self.graph)
        for name, tensor in self._constants.items():
            scope.know(name, tensor)
        scope.values.update(self.params)
        for declared, value in zip(self.graph.inputs, inputs, strict=True):
            if isinstance(value, bool | int | float) or _is_plain(value):
                with real_values():
                    scope.know(declared.name, torch.tensor(value, dtype=declared.dtype))
            else:
                scope.values[declared.name] = value
        return tuple(scope.run())

    def _store(self, name: str, tensor: torch.Tensor) -> str:
        stored = "".join(c if c.isalnum() else "_" for c in name)
        stored = f"w_{stored}"
        while hasattr(self, stored):
            stored += "_"
        if tensor.is_floating_point():
            self.register_parameter(stored, torch.nn.Parameter(tensor, requires_grad=False))
        else:
            self.register_buffer(stored, tensor)
        return stored


def _is_plain(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, bool | int | float) for v in value)


class Scope:
    """The values of one run of a graph. known: names of those that depend on shapes and constants
    alone, and have values while a program is traced."""

    def __init__(self, graph: Graph, around: Scope | None = None) -> None:
        self.graph = graph
        self.values: dict[str, Any] = {} if around is None else dict(around.values)
        self.known: set[str] = set() if around is None else set(around.known)

    def know(self, name: str, value: Any) -> None:
        self.values[name] = value
        self.known.add(name)

    def put(self, name: str, value: Any, known: bool) -> None:
        self.values[name] = value
        self.known.discard(name)
        if known:
            self.known.add(name)

    def run(self) -> list[Any]:
        for node in self.graph.nodes:
            self._apply(node)
        return [self._value(name) for name in self.graph.outputs]

    def call(
        self, graph: Graph, arguments: Sequence[Any] = (), known: Sequence[bool] = ()
    ) -> tuple[list[Any], list[bool]]:
        """The outputs of a subgraph, and which of them are known."""
        inner = Scope(graph, self)
        for name, tensor in graph.initializers.items():
            inner.know(name, tensor)
        if len(graph.inputs) != len(arguments):
            raise errors.ModelError(
                f"expected a subgraph with {len(arguments)} inputs, found {len(graph.inputs)}"
            )
        for declared, value, is_known in zip(graph.inputs, arguments, known, strict=True):
            inner.put(declared.name, value, is_known)
        return inner.run(), [name in inner.known for name in graph.outputs]

    def knows(self, node: Node) -> list[bool]:
        return [name in self.known or name == "" for name in node.inputs]

    def steps(self, node: Node, count: int) -> None:
        """Raises: errors.Error while tracing, if a loop takes too many steps to unroll them."""
        if count > _MOST_STEPS and is_tracing():
            raise errors.Error(f"{node}: a loop of more than {_MOST_STEPS} steps is not unrolled")

    def _value(self, name: str) -> Any:
        if name == "":
            return None
        if name not in self.values:
            raise errors.ModelError(f"expected a value {name!r} before its use, found none")
        return self.values[name]

    def _apply(self, node: Node) -> None:
        rule = node.rule
        assert rule is not None
        inputs = [self._value(name) for name in node.inputs]
        if rule.runs:
            outputs, known = rule.function(node, self, *inputs)
            self._set(node, list(zip(outputs, known, strict=True)))
            return
        known = node.op in ("Shape", "Size") or (not rule.draws and all(self.knows(node)))
        outputs = self._results(node, inputs, known)
        if known and any(_is_large(value) for value in outputs):
            known = False
            outputs = self._results(node, inputs, known)
        self._set(node, [(value, known) for value in outputs])

    def _results(self, node: Node, inputs: list[Any], known: bool) -> tuple[Any, ...]:
        with real_values() if known else contextlib.nullcontext():
            try:
                outputs = _located(node)(node.rule.function, node, inputs)
            except (errors.Error, AssertionError):
                raise
            except Exception as error:
                if is_tracing():  # what is wrong the eager call will say, if anything is
                    raise
                raise errors.ModelError(f"{node}: {error}") from error
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _set(self, node: Node, outputs: list[tuple[Any, bool]]) -> None:
        """There may be more outputs than the graph takes."""
        for name, (value, known) in zip(node.outputs, outputs):
            if name:
                self.put(name, value, known)


def _applied(function: Callable[..., Any], node: Node, inputs: list[Any]) -> Any:
    return function(node, *inputs)


def _located(node: Node) -> Callable[..., Any]:
    """`_applied`; while tracing, as a line of the model's file, which reports then name: that of
    the node's number. torch.export keeps the lines of functions called `forward`."""
    if not is_tracing():
        return _applied
    file, number = node.place
    code = _applied.__code__.replace(co_filename=file, co_firstlineno=number - 1, co_name="forward")
    return types.FunctionType(code, {})


def _is_large(value: Any) -> bool:
    return has_values(value) and value.numel() > _MOST_KNOWN
