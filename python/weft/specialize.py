# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a lowered program to a callable one: its artifact, fed and read as `Lowered` says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from weft import _core, frontend
from weft.artifact import bound_arguments
from weft.builds import Build, Options, build
from weft.capture import Captured
from weft.fallbacks import draws_random_numbers, torch_host
from weft.frontend.dtypes import DTYPES
from weft.outputs import OBJECT, RESULT, SLOT, VIEW, describe_outputs
from weft.signature import Signature


@dataclass
class Specialized:
    """One program, with what the report tells of it.

    core: the C++ object. reason: why PyTorch runs these calls instead, or None.
    """

    core: _core.Specialization
    shapes: str
    reason: str | None = None
    location: str | None = None
    lowered: frontend.Lowered | None = None
    build: Build | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def shapes_of(signature: Signature) -> str:
    """The tensors' shapes in one line: `f32[2, 3], i64[]`."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    return ", ".join(f"{names[t.dtype]}{list(t.shape)}" for t in signature.examples)


def declined(signature: Signature, reason: str, location: str | None) -> Specialized:
    """Stands for calls that PyTorch runs."""
    core = _core.Specialization(signature.arguments, signature.names, signature.examples)
    return Specialized(core, shapes_of(signature), reason, location)


def specialize(
    captured: Captured,
    signature: Signature,
    options: Options,
) -> Specialized:
    """Compiles what was captured for calls of `signature`.

    Raises: frontend.Unsupported, errors.CompileError.
    """
    start = time.perf_counter()
    exported, resolve = captured.program, captured.resolve
    lowered = frontend.lower(exported, captured.name)
    seconds = {"lower": time.perf_counter() - start}
    built = build(lowered.graph, options)
    seconds["build"] = time.perf_counter() - start - seconds["lower"]

    manifest = json.loads(built.artifact.manifest)
    core = _core.Specialization(signature.arguments, signature.names, signature.examples)
    wiring = _Wiring(signature, lowered, resolve)
    entry = manifest["entries"]["main"]
    core.attach(
        program=_core.Program(built.artifact),
        sources=[wiring.source(source) for source in lowered.inputs],
        eager_strides=_eager_strides(entry["results"], lowered, exported),
        effects=wiring.effects(),
        outputs=describe_outputs(exported.call_spec.out_spec, wiring.leaves()),
        random=_random_state(manifest),
        host=torch_host(manifest),
        watched=bound_arguments(manifest),
    )
    return Specialized(
        core,
        shapes_of(signature),
        lowered=lowered,
        build=built,
        manifest=manifest,
        seconds=seconds,
    )


class _Wiring:
    """Turns the frontend's sources and targets into descriptions for C++."""

    def __init__(
        self,
        signature: Signature,
        lowered: frontend.Lowered,
        resolve: Callable[[str], torch.Tensor],
    ) -> None:
        self.signature = signature
        self.lowered = lowered
        self.resolve = resolve

    def source(self, source: frontend.InputSource) -> int | torch.Tensor:
        if source.kind == "user":
            return self.signature.slots[source.index]
        if source.kind == "constant":
            return source.tensor
        return self.resolve(source.name)

    def effects(self) -> list[tuple[int | torch.Tensor, int]]:
        effects = []
        for target in self.lowered.outputs:
            if target.kind == "buffer":
                effects.append((self.resolve(target.name), target.result))
            elif target.kind == "input":
                effects.append((self.signature.slots[target.index], target.result))
        return effects

    def leaves(self) -> list[tuple]:
        """The recipes of the returned pytree's leaves, in order."""
        users = [t for t in self.lowered.outputs if t.kind in ("user", "constant")]
        return [self.leaf(target) for target in sorted(users, key=lambda t: t.index)]

    def leaf(self, target: frontend.OutputTarget) -> tuple:
        if target.kind == "constant":
            return (OBJECT, target.value)
        if target.view is None:
            return (RESULT, target.result)
        return self.view(target.view)

    def view(self, view: frontend.ViewOf) -> tuple:
        if isinstance(view.base, int):
            base_target = self.lowered.outputs[view.base]
            base, dtype = self.leaf(base_target), None
        else:
            source = self.source(view.base)
            is_slot = isinstance(source, int)
            base = (SLOT, source) if is_slot else (OBJECT, source)
            tensor = self.signature.examples[source] if is_slot else source
            dtype = view.dtype if tensor.dtype != view.dtype else None
        if view.identity:
            return base
        return (VIEW, base, view.sizes, view.strides, view.offset, dtype)


def _eager_strides(
    results: list[dict[str, Any]],
    lowered: frontend.Lowered,
    exported: torch.export.ExportedProgram,
) -> list[tuple[int, ...] | None]:
    """The strides with which the user gets each result, where they are not the program's."""
    eager: dict[int, tuple[int, ...]] = {}
    (output,) = exported.graph.find_nodes(op="output")
    kinds = exported.graph_signature.output_specs
    user = [
        node
        for node, spec in zip(output.args[0], kinds, strict=True)
        if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    for target in lowered.outputs:
        if target.kind == "user" and target.result is not None and target.view is None:
            eager[target.result] = user[target.index].meta["val"].stride()
    found = []
    for number, result in enumerate(results):
        shape, strides = result["shape"], result["strides"]
        wanted = eager.get(number, strides)
        same = 0 in shape or all(
            size < 2 or a == b for size, a, b in zip(shape, strides, wanted, strict=True)
        )
        found.append(None if same else tuple(wanted))
    return found


def _random_state(manifest: dict[str, Any]) -> tuple | None:
    if draws_random_numbers(manifest):
        return (torch.get_rng_state, torch.set_rng_state)
    return None
