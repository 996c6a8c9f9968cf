# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backends, which run the operations of an observed call: Weft's compiler, or any function that
turns a torch.fx graph into a callable, such as those that torch.compile accepts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from weft.errors import CaptureError
from weft.frontend.locations import standing_for
from weft.frontend.lowered import Location
from weft.observe.graph import LoggedGraph
from weft.observe.records import NUMBERS


class Backend(ABC):
    """Compiles programs of `_capture`. tolerance: how far the results of compiled code may be from
    those of PyTorch's operations, relative to the largest value of a tensor."""

    tolerance: float

    @abstractmethod
    def compile(
        self, graph: LoggedGraph, inputs: list[Any], declines: Counter[str]
    ) -> Callable[..., tuple]:
        """Compiles the graph to a function that takes its tensors and gives a tuple. declines:
        counts the calls that it declines later, so that torch's operations run them, by reason.
        Raises: CaptureError."""

    @abstractmethod
    def begin(self, made: Callable[..., tuple], inputs: list[Any]) -> None:
        """Makes the first call of what was compiled."""

    @abstractmethod
    def accept(self, made: Callable[..., tuple], inputs: list[Any]) -> None:
        """Lets it be used after its first call, which may have been made in a child process.
        Raises: CaptureError, if it must not be."""


class Native(Backend):
    """Weft's compiler, which itself compares each program with torch's own operations."""

    tolerance = math.inf

    def __init__(self, options: Any) -> None:
        self._options = options

    def compile(
        self, graph: LoggedGraph, inputs: list[Any], declines: Counter[str]
    ) -> Callable[..., tuple]:
        from weft.compiled.observed_graph import ObservedGraph

        module = graph.module
        face = ObservedGraph(module, self._options, declines)
        made = face.callable()
        with standing_for(module.forward.__code__.co_filename, _lines_of(module)):
            face.compile(tuple(inputs))
        return made

    def begin(self, made: Callable[..., tuple], inputs: list[Any]) -> None:
        made(*inputs)

    def accept(self, made: Any, inputs: list[Any]) -> None:
        made.face.accept(tuple(inputs))


def _lines_of(module: torch.fx.GraphModule) -> dict[int, Location]:
    """The user's lines, by the line of the module's generated code."""
    nodes = list(module.graph.nodes)
    lines = {}
    for line, number in (module._lineno_map or {}).items():
        if number is not None and "location" in nodes[number].meta:
            lines[line + module._prologue_start] = nodes[number].meta["location"]
    return lines


class Function(Backend):
    """A function of the user's, which turns a graph module and its inputs into a callable."""

    tolerance = 1e-2

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def compile(
        self, graph: LoggedGraph, inputs: list[Any], declines: Counter[str]
    ) -> Callable[..., tuple]:
        if any(type(each) in NUMBERS for each in inputs):
            # Such a backend may make a constant of it.
            raise CaptureError("takes a number that changes")
        made = self._function(graph.module, inputs)
        if not callable(made):
            raise CaptureError(f"the backend gave a {type(made).__qualname__}, no callable")
        return lambda *tensors: tuple(made(*tensors))

    def begin(self, made: Callable[..., tuple], inputs: list[Any]) -> None:
        pass  # a backend's function is as good in its first call as in any other

    def accept(self, made: Callable[..., tuple], inputs: list[Any]) -> None:
        pass
