# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.ir.of`: the IR of a PyTorch program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from weft import errors
from weft._compiler import Session
from weft.capture.input_names import input_namer
from weft.capture.signature import Declined, Signature, describe
from weft.capture.state import snapshot
from weft.capture.tracing import Captured, Tracing
from weft.compiled.module import callable_of, method_itself
from weft.frontend.dtypes import NAMES
from weft.frontend.lowered import InputSource
from weft.ir.building import bind_parameters
from weft.ir.module import Module


@dataclass
class Program:
    """A captured call. tensors: those of the module that `main` takes behind the call's inputs,
    in order, live."""

    module: Module
    captured: Captured
    signature: Signature
    tensors: list[torch.Tensor]

    @property
    def inputs(self) -> list[torch.Tensor]:
        """What `main` takes in the captured call."""
        return [*self.signature.examples, *self.tensors]


def of(model: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Module:
    """The module of `model(*inputs, **kwargs)` at the stage `graph`.

    Its function `main` takes the tensors among the inputs in the order of the call, then the
    `named_parameters()` and the `named_buffers()` of a model, needed or not, then what a function
    finds elsewhere; its results are the tensors that the call computes, writes to buffers and
    arguments included.

    Raises: errors.NotCompiledError, if PyTorch has to run the call, with the reason.
    """
    return capture(model, inputs, kwargs).module


def capture(model: Callable[..., Any], inputs: tuple, kwargs: dict[str, Any]) -> Program:
    """`of`, with what the call was.

    Raises: errors.NotCompiledError.
    """
    target = method_itself(model)
    if (compiled := callable_of(target)) is not None:
        target = compiled.original
    with torch.no_grad():
        try:
            signature = describe(inputs, kwargs)
            tracing = Tracing(target)
            references = tracing.references()
            state = snapshot(references)
            if state.reason is not None:
                raise Declined(state.reason)
            captured = tracing.capture(inputs, kwargs, references, state, signature)
        except errors.CaptureError as why:
            raise errors.NotCompiledError(why.reason, why.location, why.op) from None
    interface = _Interface(target, inputs, kwargs, captured, signature)
    graph = json.loads(captured.lowered.graph)
    constants = interface.rearrange(graph)
    module = Module(Session.import_graph(json.dumps(graph).encode()))
    if constants:
        bind_parameters(module, constants)
    module.tensors = list(interface.tensors)
    return Program(module, captured, signature, interface.tensors)


class _Interface:
    """What `main` takes, where the captured graph has only what it needs, in the frontend's
    order."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: tuple,
        kwargs: dict[str, Any],
        captured: Captured,
        signature: Signature,
    ) -> None:
        self.sources = captured.lowered.inputs
        self.signature = signature
        self.name_of = input_namer(target, args, kwargs)
        self.live = {
            number: captured.resolve(source.name)
            for number, source in enumerate(self.sources)
            if source.kind in ("parameter", "buffer")
        }
        self.tensors: list[torch.Tensor] = []
        self._own = _own_tensors(target)

    def rearrange(self, graph: dict[str, Any]) -> list[torch.Tensor]:
        """Reorders the inputs of a graph in JSON and adds those that it does not need. Returns the
        values of its last inputs, which are constants of the program."""
        old, entries, numbers = graph["inputs"], [], {}

        def enter(number: int | None, name: str, kind: str, tensor: torch.Tensor) -> None:
            """The input of that number, or a new one that nothing reads."""
            if number is not None:
                numbers[number] = len(entries)
                entries.append({**old[number], "name": name or old[number]["name"]})
            elif tensor.dtype in NAMES:
                entries.append(_entry(name, kind, tensor))

        for leaf, slot in self.signature.slots.items():
            name = self.name_of(InputSource("user", index=leaf)) or f"input{slot}"
            enter(self._number_of(leaf), name, "input", self.signature.examples[slot])
        for name, kind, tensor in self._held():
            number = next((n for n, live in self.live.items() if live is tensor), None)
            if number is not None or tensor.dtype in NAMES:
                self.tensors.append(tensor)
                enter(number, name, kind, tensor)
        constants = [n for n, source in enumerate(self.sources) if source.kind == "constant"]
        for number in constants:
            enter(number, "", "constant", self.sources[number].tensor)
        # One tensor that goes by two names is one input.
        first = {id(live): n for n, live in reversed(self.live.items())}
        for number, live in self.live.items():
            numbers[number] = numbers[first[id(live)]]
        _renumber(graph, entries, numbers, len(old))
        return [self.sources[number].tensor for number in constants]

    def _number_of(self, leaf: int) -> int | None:
        """The captured input that leaf of the arguments is."""
        wanted = (("user", leaf) == (each.kind, each.index) for each in self.sources)
        return next((number for number, found in enumerate(wanted) if found), None)

    def _held(self) -> list[tuple[str, str, torch.Tensor]]:
        """name, kind and tensor of all that the program finds beside its arguments."""
        found = {id(tensor) for _, _, tensor in self._own}
        kinds = {"parameter": "weight", "buffer": "buffer"}
        rest = []
        for number, tensor in self.live.items():
            if id(tensor) not in found:
                found.add(id(tensor))
                source = self.sources[number]
                name = self.name_of(source) or source.name
                rest.append((name, kinds[source.kind], tensor))
        return [*self._own, *rest]


def _own_tensors(target: Callable[..., Any]) -> list[tuple[str, str, torch.Tensor]]:
    module = getattr(target, "__self__", target)
    if not isinstance(module, torch.nn.Module):
        return []
    weights = [(name, "weight", tensor) for name, tensor in module.named_parameters()]
    return weights + [(name, "buffer", tensor) for name, tensor in module.named_buffers()]


def _entry(name: str, kind: str, tensor: torch.Tensor) -> dict[str, Any]:
    """An input that the graph does not read."""
    shape = list(tensor.shape)
    order = list(range(len(shape)))
    return {
        "name": name,
        "kind": kind,
        "dtype": NAMES[tensor.dtype],
        "shape": shape,
        "order": order,
    }


def _renumber(
    graph: dict[str, Any], entries: list[dict[str, Any]], numbers: dict[int, int], old: int
) -> None:
    """The inputs have new numbers, and all other values come behind them."""

    def moved(number: int) -> int:
        return numbers[number] if number < old else number - old + len(entries)

    graph["inputs"] = entries
    for node in graph["nodes"]:
        node["in"] = [moved(number) for number in node["in"]]
    for output in graph["outputs"]:
        output["value"] = moved(output["value"])
