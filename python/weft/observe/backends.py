# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs the operations of an observed call: Weft's compiler, or any function that makes a
callable of a torch.fx graph, such as those that torch.compile takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch

from weft.capture.tracing import Tracing
from weft.errors import CaptureError
from weft.frontend.locations import standing_for
from weft.frontend.lowered import Location
from weft.observe.graph import LoggedGraph
from weft.observe.replays import ObservedCall, registers_of


class Backend(ABC):
    """Compiles programs of `_capture`. tolerance: how far what it makes may be from what PyTorch's
    operations give, relative to the largest of a tensor's values."""

    tolerance: float

    def attach(self, program: Any, call: ObservedCall, graph: LoggedGraph) -> Any:
        """From now on compiled code runs the program's operations on tensors. Gives what was made,
        for the report.

        graph: of its log. call: that was observed.
        Raises: CaptureError, with the reason why torch's own operations run the program.
        """
        with call.as_ahead(program):
            registers = registers_of(program, call)
            made = self.compile(graph, [registers[number] for number in graph.inputs])
        graph.attach(program, made)
        return made

    @abstractmethod
    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        """Takes the graph's tensors, gives a tuple. Raises: CaptureError."""


class Native(Backend):
    """Weft's compiler, which compares each program with torch's own operations itself."""

    tolerance = math.inf

    def __init__(self, options: Any) -> None:
        self._options = options

    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        from weft.compiled.compiled import Compiled

        module = graph.module
        face = Compiled(module, Tracing(module), self._options, {"fullgraph": True})
        made = face.callable()
        with standing_for(module.forward.__code__.co_filename, _lines_of(module)):
            made(*inputs)
        if not all(each.verified for each in face.programs.all()):
            raise CaptureError("nothing is known of the compiled program")
        face.original = _not_again
        return made


def _not_again(*tensors: torch.Tensor) -> tuple:
    """Behind the first call torch's operations are the log's to run, which undoes what they have
    written if they fail."""
    raise CaptureError("the program does not stand for this call")


def _lines_of(module: torch.fx.GraphModule) -> dict[int, Location]:
    """The user's lines, by line of the module's generated code."""
    nodes = list(module.graph.nodes)
    lines = {}
    for line, number in (module._lineno_map or {}).items():
        if number is not None and "location" in nodes[number].meta:
            lines[line + module._prologue_start] = nodes[number].meta["location"]
    return lines


class Function(Backend):
    """A function of the user's: (graph module, inputs) to a callable."""

    tolerance = 1e-2

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        made = self._function(graph.module, inputs)
        if not callable(made):
            raise CaptureError(f"the backend gave a {type(made).__qualname__}, no callable")
        return lambda *tensors: tuple(made(*tensors))
