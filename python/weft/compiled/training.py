# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training: a forward and a backward program of one graph, joined to autograd.

The forward is a program like any other that gives some more results, those which the backward
reads. A call runs it inside a `torch.autograd.Function`, whose backward runs the other one:
whatever PyTorch's autograd does with functions (hooks, accumulation, version counters, freeing) it
does with these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor

from weft import _core
from weft.artifacts.builds import Build
from weft.artifacts.fallbacks import torch_host
from weft.capture.outputs import build_outputs
from weft.capture.signature import tensors_of
from weft.compiled.specialize import Specialized, Wiring
from weft.frontend import interpreter
from weft.frontend.dtypes import DTYPES

# Of the program's results by number, None for one that nobody used.
Cotangents = dict[int, torch.Tensor | None]


@dataclass
class Training:
    """What joins the two programs.

    wrt: the graph's inputs that have gradients. outputs: its results that have cotangents, and
    among them `requires` those that require gradients in eager execution. connected: for each of
    `outputs`, for each of `wrt`, whether autograd connects them: where it does not, there is no
    gradient, not one of zeros. reads: what the backward takes, as (kind, number). written: inputs
    that the call writes to. by_pytorch: backward calls that PyTorch computed.
    """

    wrt: tuple[int, ...]
    outputs: tuple[int, ...]
    backward: Build
    count: int
    wiring: Wiring
    draws: bool
    requires: list[bool]
    connected: list[list[bool]]
    by_pytorch: int = 0

    def __post_init__(self) -> None:
        self.manifest = json.loads(self.backward.artifact.manifest)
        entry = self.manifest["entries"]["main"]
        self.reads = [_read(argument["name"]) for argument in entry["arguments"]]
        self._results = [
            (tuple(each["shape"]), DTYPES[each["dtype"]], each.get("alias"))
            for each in entry["results"]
        ]
        self._program = _core.Program(self.backward.artifact)
        self._host = torch_host(self.manifest)
        self._document: dict[str, Any] | None = None
        self.bind(self.wiring)

    def bind(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self._sources = wiring.sources()
        self._effects = wiring.effects()
        self._recipe = wiring.outputs()
        targets = [target for target, _ in self._effects]
        self.written = [
            number
            for number, source in enumerate(self._sources)
            if any(source is target for target in targets)
        ]

    def rebound(self, wiring: Wiring) -> Training:
        """The same for other tensors of the modules."""
        return replace(self, wiring=wiring)

    @property
    def saved_bytes(self) -> list[tuple[str, int]]:
        """Name and size of what the backward reads of the forward's values."""
        arguments = self.manifest["entries"]["main"]["arguments"]
        return [
            (
                f"{each['dtype']}{each['shape']}",
                torch.Size(each["shape"]).numel() * DTYPES[each["dtype"]].itemsize,
            )
            for each, (kind, _) in zip(arguments, self.reads, strict=True)
            if kind in ("saved", "result")
        ]

    # A call.

    def call(self, specialized: Specialized, args: tuple, kwargs: dict[str, Any]) -> Any:
        """(True, what the call gives), or (False, why PyTorch has to run it)."""
        slots = tensors_of(args, kwargs)
        inputs = [slots[s] if isinstance(s, int) else s for s in self._sources]
        step = _Call(self, specialized.core, args, kwargs, inputs)
        try:
            outputs = _Step.apply(step, *(inputs[number] for number in self.wrt))
        except _Refused as why:
            return False, why.reason
        results = list(step.results)
        for number, output in zip(self.differentiable(), outputs, strict=True):
            results[number] = output
        return True, build_outputs(self._recipe, results, slots)

    def differentiable(self) -> list[int]:
        """The results that require gradients."""
        return [number for number, is_so in zip(self.outputs, self.requires, strict=True) if is_so]

    def commit(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
        for target, result in self._effects:
            target.copy_(results[result])

    # Gradients.

    def gradients(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        cotangents: Cotangents,
    ) -> list[torch.Tensor]:
        """By the backward program, zero where nothing is connected.

        inputs: of the graph. results: of the forward program, saved ones behind. cotangents: of its
        results by number.
        """
        arguments = [
            self._argument(kind, number, inputs, results, cotangents) for kind, number in self.reads
        ]
        return self.run(arguments)

    def _argument(self, kind, number, inputs, results, cotangents) -> torch.Tensor:
        match kind:
            case "input":
                return inputs[number]
            case "gradient":
                return self.cotangent(cotangents[number], results[number])
        return results[number + self.count if kind == "saved" else number]

    @staticmethod
    def cotangent(given: torch.Tensor | None, result: torch.Tensor) -> torch.Tensor:
        """In row-major order; zeros for an output that nobody used."""
        if given is None:
            return torch.zeros(result.shape, dtype=result.dtype)
        return given.to(result.dtype).contiguous()

    def run(self, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
        results = [torch.empty(shape, dtype=dtype) for shape, dtype, _ in self._results]
        self._program.run(arguments, results, self._host)
        for number, (_, _, alias) in enumerate(self._results):
            if alias:
                ((kind, index),) = alias.items()
                source = arguments[index] if kind == "argument" else results[index]
                results[number].copy_(source)
        return results

    def chosen(
        self, gradients: Sequence[torch.Tensor | None], given: Sequence[bool]
    ) -> list[torch.Tensor | None]:
        """Those that autograd would give. given: which of `outputs` have a cotangent."""
        reached = [
            any(is_given and row[place] for is_given, row in zip(given, self.connected))
            for place in range(len(self.wrt))
        ]
        return [g if is_so else None for g, is_so in zip(gradients, reached, strict=True)]

    def gradients_by_pytorch(
        self,
        inputs: Sequence[torch.Tensor],
        cotangents: Cotangents,
        *,
        double: bool = False,
        create_graph: bool = False,
    ) -> list[torch.Tensor | None]:
        """Of the graph's meaning in PyTorch's ops (interpreter.py), by PyTorch's autograd."""
        if self._document is None:
            self._document = json.loads(self.wiring.lowered.graph)
        with torch.enable_grad():
            # Of their own: one input may have been computed from another.
            seen = [
                each.view_as(each) if number in self.wrt else each.detach()
                for number, each in enumerate(inputs)
            ]
            leaves = [seen[number] for number in self.wrt]
            values = interpreter.run_nodes(self._document, seen, double=double)
            numbers = [number for number, given in cotangents.items() if given is not None]
            results = [values[self._document["outputs"][number]["value"]] for number in numbers]
            reached = [(n, r) for n, r in zip(numbers, results) if r.requires_grad]
            if not reached:
                return [None] * len(leaves)
            return list(
                torch.autograd.grad(
                    [result for _, result in reached],
                    leaves,
                    [cotangents[number].to(result.dtype) for number, result in reached],
                    create_graph=create_graph,
                    allow_unused=True,
                )
            )


def _read(name: str) -> tuple[str, int]:
    kind, number = name.split()
    return kind, int(number)


class _Refused(Exception):
    """The program could not run the call; nothing has been written."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class _Call:
    """One call on its way through autograd. inputs: of the graph."""

    training: Training
    core: _core.Specialization
    args: tuple
    kwargs: dict[str, Any]
    inputs: list[torch.Tensor]
    results: Sequence[torch.Tensor] = ()


class _Step(torch.autograd.Function):
    """The forward and the backward program. Its inputs are those of `wrt`."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *wanted: torch.Tensor) -> tuple[torch.Tensor, ...]:
        training = call.training
        ctx.training = training
        ctx.random = torch.get_rng_state() if training.draws else None
        originals = {number: call.inputs[number].clone() for number in training.written}
        ran, reason, results, laid_out = call.core.evaluate(call.args, call.kwargs)
        if not ran:
            raise _Refused(reason)
        _save(ctx, call.inputs, originals, results, laid_out)
        training.commit(results, call.inputs)
        call.results = laid_out
        ctx.set_materialize_grads(False)
        return tuple(laid_out[number] for number in training.differentiable())

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        training: Training = ctx.training
        given = dict.fromkeys(training.outputs)
        given.update(zip(training.differentiable(), cotangents, strict=True))
        if torch.is_grad_enabled() or any(map(_is_wrapped, cotangents)):
            gradients = _backward_by_pytorch(ctx, given)
        else:
            arguments = [
                training.cotangent(given[number], _Like(*ctx.shapes[number]))
                if kind == "gradient"
                else tensor
                for (kind, number), tensor in _pairs(training.reads, ctx.saved_tensors)
            ]
            gradients = training.run(arguments)
        chosen = training.chosen(gradients, [given[n] is not None for n in training.outputs])
        return (None, *chosen)


@dataclass(frozen=True)
class _Like:
    shape: torch.Size
    dtype: torch.dtype


def _is_wrapped(tensor: torch.Tensor | None) -> bool:
    """Whether it stands for many tensors, as within a vmap, or is of a subclass."""
    if tensor is None:
        return False
    if type(tensor) is not torch.Tensor:
        return True
    return is_functorch_wrapped_tensor(tensor) or is_legacy_batchedtensor(tensor)


def _pairs(reads: list[tuple[str, int]], saved: Sequence[torch.Tensor]):
    """Each read with its tensor, None for cotangents, which come last."""
    rest = [None] * (len(reads) - len(saved))
    return zip(reads, (*saved, *rest), strict=True)


def _save(ctx, inputs, originals, results, laid_out) -> None:
    """What the backward program reads goes through autograd, which watches it. What only a second
    derivative would read is held beside, with its version."""
    training: Training = ctx.training
    saved = []
    for kind, number in training.reads:
        match kind:
            case "input":
                saved.append(originals.get(number, inputs[number]))
            case "result":
                saved.append(results[number])
            case "saved":
                saved.append(results[number + training.count])
    ctx.save_for_backward(*saved)
    ctx.shapes = {n: (laid_out[n].shape, laid_out[n].dtype) for n in training.outputs}
    read = {number for kind, number in training.reads if kind == "input"}
    others = {n: originals.get(n, each) for n, each in enumerate(inputs) if n not in read}
    ctx.others = {n: (each, each._version) for n, each in others.items()}


def _backward_by_pytorch(ctx: Any, cotangents: Cotangents) -> list[torch.Tensor | None]:
    training: Training = ctx.training
    training.by_pytorch += 1
    inputs: dict[int, torch.Tensor] = {
        number: tensor
        for (kind, number), tensor in _pairs(training.reads, ctx.saved_tensors)
        if kind == "input"
    }
    for number, (tensor, version) in ctx.others.items():
        if tensor._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: [{tensor.type()} {list(tensor.shape)}] is at version "
                f"{tensor._version}; expected version {version} instead"
            )
        inputs[number] = tensor
    ordered = [inputs[number] for number in range(len(inputs))]
    if ctx.random is None:
        return training.gradients_by_pytorch(
            ordered, cotangents, create_graph=torch.is_grad_enabled()
        )
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(ctx.random)
        return training.gradients_by_pytorch(
            ordered, cotangents, create_graph=torch.is_grad_enabled()
        )
