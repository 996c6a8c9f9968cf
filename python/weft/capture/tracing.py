# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module or function and one call's arguments to the graph of that call.

Everything that is known about how programs are captured lies here: today torch.export
traces them with fake tensors, in a copy of the process (isolated.py), so that nobody sees it. The
rest of the package sees `Tracing`, `Given`, `Captured`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from weft import frontend
from weft.capture.argument_changes import Filled
from weft.capture.argument_objects import NO_COUNTERS, Counters
from weft.capture.isolated import call_isolated
from weft.capture.kept_traces import KeptTrace, may_have
from weft.capture.op_values import Values
from weft.capture.outputs import Structure
from weft.capture.reachability import References, find_references
from weft.capture.signature import (
    Declined,
    Read,
    Signature,
)
from weft.capture.snapshots import Snapshot
from weft.capture.trace import Inputs, Resolver, Trace, Traced
from weft.frontend.numbers import NO_NUMBERS, NumberInputs, WantedNumbers

if TYPE_CHECKING:
    from weft.capture.sizes_of_loops import SizesOfLoops
    from weft.capture.symbolic_trace import SizeSymbols, Wanted

# What tracing imports on the way is imported by the parent, lest every child do it again: these
# ahead of the first trace, and after each what else was needed.
_NEEDED_FOR_TRACING = ("torch._dynamo", "torch.export._trace", "torch._export.non_strict_utils")


@dataclass
class Captured:
    """A program and how to call it. resolve: finds the live tensor that it calls by a name.
    structure: of the value returned. strides: of its leaves, as eager execution has them, None for
    what is no tensor. digest: of the operations that the program called. lower_seconds: what the
    frontend took. read: the leaves of the arguments whose values it was made for, by number, with
    what calls of it have in common.
    symbols: the sizes that the program stands for, where it does for a range of them. loops: which
    sizes those are that its loops were traced at, where they make sizes numbers. grows: objects
    among the arguments are given tensors of other sizes. filled: what they are given in which
    nothing was. numbers: among the arguments that it
    takes."""

    lowered: frontend.Lowered
    resolve: Callable[[str], torch.Tensor]
    structure: Structure
    strides: tuple[tuple[int, ...] | None, ...]
    digest: str
    lower_seconds: float
    read: Read = field(default_factory=dict)
    symbols: SizeSymbols | None = None
    loops: SizesOfLoops | None = None
    grows: bool = False
    filled: Filled | None = None
    numbers: NumberInputs | None = None


class Tracing:
    """Captures a module or function anew for each kind of call. rng: who draws for dropout in its
    programs, "torch" or "philox". rolls: loops whose steps repeat are not traced to their end."""

    def __init__(self, target: Callable[..., Any], rng: str = "torch", rolls: bool = True) -> None:
        self.target = target
        self.rng = rng
        self.rolls = rolls

    def references(self) -> References:
        # Ahead of any look at the state, which what is loaded adds to: it makes loggers.
        if not is_prepared() and not may_have(self.target):
            prepare()
        return find_references(self.target)

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        """Finds the live tensor that programs call by a name."""
        return Resolver(references)

    def values(
        self, args: tuple, kwargs: dict[str, Any], state: Snapshot, inputs: Inputs
    ) -> Values:
        """What PyTorch computes op by op in the program of a call, of these inputs."""
        known = {**state.reached, **{id(each): each for each in inputs.values()}}
        trace = Trace(self.target, self.references(), args, kwargs, True, False, known)
        return call_isolated(lambda: trace.values(inputs), known)

    def capture(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        references: References,
        state: Snapshot,
        signature: Signature,
        training: bool = False,
        wanted: Wanted | None = None,
        counters: Counters = NO_COUNTERS,
        numbers: WantedNumbers = NO_NUMBERS,
        any_lengths: bool = False,
    ) -> Captured:
        """The program of `target(*args, **kwargs)`, for exactly these shapes and values, as eager
        execution is, or where that cannot be compiled, as the program is written for compilers.

        references, state: of the target. training: it is to be differentiated. wanted: which sizes
        are to be symbols, and of what range: then the program is one for such calls, its `symbols`
        are told, its arguments are padded, and behind them comes a tensor of the sizes. counters:
        attributes of objects among the arguments that are sizes, too. numbers: which the program is
        to take, as a tensor of what it reads of them behind all leaves; with `wanted`, attributes
        that it may not read. any_lengths: of packed sequences, as far as the program can be one for
        any. Runs no kernel on the user's data, and no code of the user's in this process.
        Raises: Declined, with the reason why there is no such program; HasEffects, if the
        target changed its state; frontend.Unsupported.
        """
        trace = self.trace_of(
            args,
            kwargs,
            references,
            state,
            signature,
            training,
            wanted,
            counters,
            numbers,
            any_lengths,
        )
        traced, loops = attempted(trace, KeptTrace.of(trace, state)), None
        if traced.numbers:
            from weft.capture.sizes_of_loops import SizesOfLoops

            try:
                loops = SizesOfLoops.of(trace)
                traced = replace(loops.first, lowered=loops.lowered(), symbols=loops.symbols)
            except (Declined, frontend.Unsupported) as why:
                if traced.numbers == sum(map(len, wanted.values())):
                    raise
                try:  # the other sizes may be symbols
                    traced = attempted(replace(trace, skips_steps=False))
                except (Declined, frontend.Unsupported):
                    raise why from None
        assert traced.lowered is not None and traced.structure is not None
        return Captured(
            traced.lowered,
            self.resolver(references),
            traced.structure,
            traced.strides,
            traced.digest,
            traced.lower_seconds,
            traced.read,
            traced.symbols,
            loops,
            traced.grows,
            traced.filled,
            traced.inputs,
        )

    def trace_of(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        references: References,
        state: Snapshot,
        signature: Signature,
        training: bool = False,
        wanted: Wanted | None = None,
        counters: Counters = NO_COUNTERS,
        numbers: WantedNumbers = NO_NUMBERS,
        any_lengths: bool = False,
    ) -> Trace:
        """The call's, not run yet: see `capture` and `attempted`. references: as `references`
        gives them."""
        return Trace(
            self.target,
            references,
            args,
            kwargs,
            True,
            False,
            {**state.reached, **{id(each): each for each in signature.examples}},
            training,
            wanted,
            self.rng,
            counters,
            self.rolls and (wanted is not None or not numbers.leaves),
            numbers=numbers,
            any_lengths=any_lengths,
        )


def prepare() -> None:
    """Loads what tracing needs, which may take a second."""
    _import(_NEEDED_FOR_TRACING)


def is_prepared() -> bool:
    return all(name in sys.modules for name in _NEEDED_FOR_TRACING)


def _import(names: Iterable[str]) -> None:
    """On a thread of its own: a failed import within them keeps the frames that led to it, and so
    the user's model, until the cycle collector comes."""
    missing = [name for name in names if name not in sys.modules]
    if missing:
        importer = threading.Thread(target=_import_all, args=(missing,))
        importer.start()
        importer.join()


def _import_all(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # it was imported beside something else
            importlib.import_module(name)


def attempted(trace: Trace, kept: KeptTrace | None = None) -> Traced:
    """What comes of the trace, in whichever manner. kept: where another process may have left it.
    Raises: as `Tracing.capture`."""
    if kept is not None and (found := kept.load(trace.known)) is not None:
        return found
    prepare()
    while True:
        traced = call_isolated(trace.run, trace.known, kept and kept.note)
        if traced.returns_objects and not trace.may_make_objects:
            trace = replace(trace, may_make_objects=True)
        elif traced.only_as_eager and trace.as_eager:
            trace = replace(trace, as_eager=False)
        elif traced.failure is not None and traced.skipped_steps:
            trace = replace(trace, skips_steps=False)
        else:
            break
    _import(traced.imported)
    if traced.failure is not None:
        raise traced.failure
    if kept is not None:
        kept.save(traced)
    return traced
