# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs the operations of an observed call: Weft's compiler, or any function that makes a
callable of a torch.fx graph, such as those that torch.compile takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.fx.traceback

from weft.capture.tracing import Tracing
from weft.errors import CaptureError
from weft.observe.graph import LoggedGraph, graph_of


class Backend(ABC):
    """Compiles programs of `_capture`. seconds: spent on it."""

    seconds = 0.0

    def attach(self, program: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """From now on compiled code runs the program's operations on tensors. Gives what was made,
        for the report; None where there is nothing to compile.

        args, kwargs: of the call that was observed; everything is as it was ahead of that, and what
        is written to meanwhile, the caller puts back.
        Raises: CaptureError, with the reason why torch's own operations run the program.
        """
        registers = program.registers(args, kwargs)
        if registers is None:
            raise CaptureError("changes what it has read")
        graph = graph_of(program, registers)
        if not graph.results and not graph.module.graph.find_nodes(op="placeholder"):
            return None
        inputs = [registers[number] for number in graph.inputs]
        made = self.compile(graph, inputs)
        program.attach(made, graph.inputs, graph.results, graph.before, graph.after, graph.compares)
        return made

    @abstractmethod
    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        """Takes the graph's tensors, gives a tuple. Raises: CaptureError."""


class Native(Backend):
    """Weft's compiler. Each program is compared with torch's own operations when it is made."""

    def __init__(self, options: Any) -> None:
        self._options = options

    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        from weft.compiled.compiled import Compiled

        module = _Replayed(graph.module)
        face = Compiled(module, Tracing(module), self._options, {"fullgraph": True})
        made = face.callable()
        made(*inputs)
        return made


class _Replayed(torch.nn.Module):
    """Node by node, so that a trace of it has the lines of the nodes."""

    def __init__(self, logged: torch.fx.GraphModule) -> None:
        super().__init__()
        self.logged = logged

    def forward(self, *tensors: torch.Tensor) -> tuple:
        with torch.fx.traceback.preserve_node_meta():
            found: tuple = torch.fx.Interpreter(self.logged).run(*tensors)
        return found


class Function(Backend):
    """A function of the user's: (graph module, inputs) to a callable."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def compile(self, graph: LoggedGraph, inputs: list[Any]) -> Callable[..., tuple]:
        made = self._function(graph.module, inputs)
        if not callable(made):
            raise CaptureError(f"the backend gave a {type(made).__qualname__}, no callable")
        return lambda *tensors: tuple(made(*tensors))
