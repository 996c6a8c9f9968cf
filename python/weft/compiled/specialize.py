# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a lowered program callable: compiles its artifact, and connects it as `Lowered` says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from weft import _core, errors, frontend
from weft.artifacts.builds import Build, Options, build
from weft.artifacts.fallbacks import draws_random_numbers, torch_host
from weft.artifacts.load import bound_arguments
from weft.capture.outputs import (
    NODE,
    OBJECT,
    RESULT,
    SIZED_VIEW,
    SLOT,
    VALID,
    VIEW,
    Structure,
    describe_outputs,
)
from weft.capture.signature import Signature, describe, tensors_of
from weft.capture.tracing import Captured
from weft.compiled.checkpoints import Regions
from weft.frontend.dtypes import DTYPES
from weft.frontend.pairs import shown_real

if TYPE_CHECKING:
    from weft.compiled.number_arguments import TakenNumbers
    from weft.compiled.training import Training


@dataclass
class Specialized:
    """One program, with what reports say of it.

    core: the C++ object. reason: why PyTorch runs these calls instead, or None; location, op: as in
    errors.CaptureError. verified: whether it has reproduced eager execution, and may be called.
    checking: whether a thread is checking that. wants_gradients: whether the calls record
    gradients. training: what computes these. eager_in: the regions of checkpoints that PyTorch has
    to run. is_of_range: whether a program for a range stands for its calls, too. numbers: those of
    the arguments that are its inputs.
    """

    core: _core.Specialization
    shapes: str
    reason: str | None = None
    location: str | None = None
    op: str | None = None
    lowered: frontend.Lowered | None = None
    build: Build | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    wiring: Wiring | None = None
    verified: bool = True
    checking: bool = False
    inconclusive: int = 0
    transient: bool = False
    wants_gradients: bool = False
    training: Training | None = None
    eager_in: Regions = field(default_factory=Regions)
    is_of_range: bool = False
    numbers: TakenNumbers | None = None

    def why_not(self) -> errors.CaptureError:
        """Why PyTorch runs these calls."""
        return errors.CaptureError(self.reason or "", self.location, self.op)

    def tensors_of(self, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """The tensors that a call of the program may read."""
        found = tensors_of(args, kwargs)
        if self.numbers is not None:
            found.append(self.numbers.tensor(describe(args, kwargs).leaves))
        return found

    @property
    def draws(self) -> bool:
        """Whether the program draws random numbers."""
        return draws_random_numbers(self.manifest)

    def rebound(self, resolve: Callable[[str], torch.Tensor]) -> Specialized:
        """The same program for other tensors of the modules, which `resolve` finds."""
        if self.wiring is None:
            return self
        wiring = replace(self.wiring, resolve=resolve)
        core = self.core.rebound(wiring.sources(), wiring.effects(), wiring.outputs())
        training = None if self.training is None else self.training.rebound(wiring)
        return replace(self, core=core, wiring=wiring, training=training, checking=False)


def shapes_of(signature: Signature) -> str:
    """The tensors' shapes in one line: `f32[2, 3], i64[]`."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    names |= {torch.complex64: "c64", torch.complex128: "c128"}
    return ", ".join(f"{names[t.dtype]}{list(t.shape)}" for t in signature.examples)


def declined(signature: Signature, why: errors.CaptureError) -> Specialized:
    """A stand-in for a program, for calls that PyTorch runs."""
    return Specialized(signature.core(), shapes_of(signature), why.reason, why.location, why.op)


def specialize(
    captured: Captured,
    signature: Signature,
    options: Options,
) -> Specialized:
    """Compiles what was captured for calls of `signature`.

    Raises: errors.CompileError.
    """
    start = time.perf_counter()
    lowered = captured.lowered
    built = build(lowered.graph, options)
    seconds = {"build": time.perf_counter() - start}

    manifest = json.loads(built.artifact.manifest)
    core = signature.core()
    dtypes = tuple(example.dtype for example in signature.examples)
    wiring = Wiring(
        signature.slots, dtypes, lowered, captured.structure, captured.resolve, captured.digest
    )
    core.attach(
        program=_core.Program(built.artifact),
        sources=wiring.sources(),
        eager_strides=wiring.eager_strides(captured.strides, manifest),
        effects=wiring.effects(),
        outputs=wiring.outputs(),
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
        wiring=wiring,
    )


def slot_or_tensor(
    source: frontend.InputSource, slots: dict[int, int], resolve: Callable[[str], torch.Tensor]
) -> int | torch.Tensor:
    """An input of a program: the number of a tensor among the arguments, or another tensor."""
    if source.kind == "user":
        return slots[source.index]
    if source.kind == "constant":
        return source.tensor
    return resolve(source.name)


class Effect(NamedTuple):
    """A write to a tensor, given by its number among the arguments, or itself. result: of the
    program. steps: by how much the write increments the tensor's version counter. valid: what of
    the result is written, where the argument is padded, to the tensor of which the program has a
    copy."""

    target: int | torch.Tensor
    result: int
    steps: int
    valid: frontend.Valid | None = None


def write(effects: Sequence[Effect], results: Sequence[torch.Tensor]) -> None:
    """Writes the results to the tensors. To autograd, a tensor whose write is not counted is
    unchanged, for values saved by an earlier call, as in eager execution."""
    if not effects:
        return
    counts = [(each.target, each.steps) for each in effects if not each.target.is_inference()]
    uncounted = tuple(target for target, steps in counts if steps == 0)
    with torch.autograd._unsafe_preserve_version_counter(uncounted):
        for each in effects:
            shown_real(each.target).copy_(results[each.result])
    further = [target for target, steps in counts for _ in range(steps - 1)]
    torch.autograd.graph.increment_version(further)


@dataclass(frozen=True)
class Wiring:
    """Turns the frontend's sources and targets into descriptions for C++.

    slots, dtypes: of the tensors among the arguments, by leaf and by slot. digest: of the captured
    program.
    """

    slots: dict[int, int]
    dtypes: tuple[torch.dtype, ...]
    lowered: frontend.Lowered
    structure: Structure
    resolve: Callable[[str], torch.Tensor]
    digest: str

    def sources(self) -> list[int | torch.Tensor]:
        return [self.source(source) for source in self.lowered.inputs]

    def outputs(self) -> tuple:
        return describe_outputs(self.structure, self.leaves())

    def source(self, source: frontend.InputSource) -> int | torch.Tensor:
        return slot_or_tensor(source, self.slots, self.resolve)

    def effects(self) -> list[Effect]:
        effects = []
        for target in self.lowered.outputs:
            if target.kind == "buffer":
                where = self.resolve(target.name)
            elif target.kind == "input":
                where = self.slots[target.index]
            else:
                continue
            effects.append(Effect(where, target.result, target.steps, target.valid))
        return effects

    def kept(self) -> list[int]:
        """The numbers of the tensors among the arguments that the program returns as given, and of
        which it has padded copies."""
        views = [target.view for target in self.lowered.outputs if target.is_original]
        sources = [self.source(view.base) for view in views if view is not None]
        return [each for each in sources if isinstance(each, int)]

    def leaves(self) -> list[tuple]:
        """The recipes of the leaves of the returned pytree, in order."""
        users = [t for t in self.lowered.outputs if t.kind in ("user", "constant")]
        return [self.leaf(target) for target in sorted(users, key=lambda t: t.index)]

    def leaf(self, target: frontend.OutputTarget) -> tuple:
        if target.kind == "constant":
            return (OBJECT, target.value)
        if target.view is None:
            result = (RESULT, target.result)
            if target.chosen is not None:
                count = (RESULT, target.chosen.count)
                return (NODE, _chosen_rows, target.chosen, (result, count))
            if target.valid is not None:  # the sizes are the last argument
                return (VALID, target.result, len(self.dtypes) - 1, target.valid)
            leaf = (NODE, _as_complex, None, (result,)) if target.is_complex else result
            return (NODE, _conjugated, None, (leaf,)) if target.is_conj else leaf
        view = self.view(target.view, target.is_original)
        return (NODE, _conjugated, None, (view,)) if target.view.conjugates else view

    def view(self, view: frontend.ViewOf, of_original: bool) -> tuple:
        """of_original: whether the base is the original, of which the program has a padded copy."""
        if isinstance(view.base, int):
            base_target = self.lowered.outputs[view.base]
            base, dtype = self.leaf(base_target), None
        else:
            source = self.source(view.base)
            is_slot = isinstance(source, int)
            base = (SLOT, source) if is_slot else (OBJECT, source)
            own = self.dtypes[source] if is_slot else source.dtype
            dtype = view.dtype if own != view.dtype else None
        if of_original:
            base = (NODE, _original, None, (base,))
        if view.identity:
            return base
        if view.sized is not None:  # the sizes are the last argument
            assert dtype is None  # a view with another dtype has no program for a range
            return (SIZED_VIEW, base, len(self.dtypes) - 1, view.sized)
        return (VIEW, base, view.sizes, view.strides, view.offset, dtype)

    def eager_strides(
        self, leaves: Sequence[tuple[int, ...] | None], manifest: dict[str, Any]
    ) -> list[tuple[int, ...] | None]:
        """The strides with which the user gets each result, if they are not the program's.

        leaves: the strides of the value's leaves in eager execution.
        """
        eager: dict[int, tuple[int, ...]] = {}
        for target in self.lowered.outputs:
            is_whole = target.view is target.chosen is target.valid is None
            if target.kind == "user" and target.result is not None and is_whole:
                strides = leaves[target.index]
                if target.is_complex and strides is not None:
                    strides = (*(2 * stride for stride in strides), 1)
                eager[target.result] = strides
        return strides_beside_own(manifest, eager)


def _as_complex(results: list[torch.Tensor], _: None) -> torch.Tensor:
    return torch.view_as_complex(*results)


def _conjugated(results: list[torch.Tensor], _: None) -> torch.Tensor:
    return results[0].conj()


def _chosen_rows(results: list[torch.Tensor], chosen: frontend.ChosenRows) -> torch.Tensor:
    """The first of all rows, as many as were chosen, in memory of their own. However many results
    show them, it is one tensor."""
    table, count = results
    if not hasattr(table, "chosen_rows"):
        rows = table.narrow(chosen.dim, 0, int(count))
        strides = (
            (1, len(rows)) if chosen.by_column else torch.empty(rows.shape, device="meta").stride()
        )
        table.chosen_rows = torch.empty_strided(rows.shape, strides, dtype=rows.dtype).copy_(rows)
    if chosen.column is None:
        return table.chosen_rows
    return table.chosen_rows.select(1, chosen.column)


def _original(copies: list[torch.Tensor], _: None) -> torch.Tensor:
    """The caller's tensor, of which the program has a padded copy."""
    return copies[0].weft_valid_part


def strides_beside_own(
    manifest: dict[str, Any], wanted: dict[int, tuple[int, ...]]
) -> list[tuple[int, ...] | None]:
    """For each result the wanted strides; None if none are wanted or they are the program's own."""
    results = manifest["entries"]["main"]["results"]
    own = [tuple(result["strides"]) for result in results]
    asked = [wanted.get(number, strides) for number, strides in enumerate(own)]
    return [None if strides == each else each for strides, each in zip(own, asked)]


def _random_state(manifest: dict[str, Any]) -> tuple | None:
    if draws_random_numbers(manifest):
        return (torch.get_rng_state, torch.set_rng_state)
    return None
