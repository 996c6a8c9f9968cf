# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One attempt at tracing a call by torch.export, in a process of its own, and what comes of it."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from weft import frontend
from weft.capture.argument_changes import Filled
from weft.capture.argument_objects import NO_COUNTERS, Counters, objects_in, register
from weft.capture.autograd_reach import autograd_reach
from weft.capture.checkpoints import checkpoints_marked
from weft.capture.code_names import NOT_THE_USERS, line_of
from weft.capture.compile_probes import Hearing, answers_as_in_eager
from weft.capture.composites import composites_written_out
from weft.capture.dropped_arguments import no_arguments_dropped
from weft.capture.encoder_layers import encoder_layers_marked
from weft.capture.exported_facts import digest_of, layouts_of, strides_of
from weft.capture.inner_transforms import inner_transforms_traced
from weft.capture.input_names import input_namer
from weft.capture.kept_out import refuse_kept_out
from weft.capture.kept_regions import regions_kept
from weft.capture.lean_tracing import lean_tracing
from weft.capture.lengths_as_data import lengths_among
from weft.capture.module_proxies import proxies_unnoticed
from weft.capture.observation import Observer
from weft.capture.op_values import Values, values_of
from weft.capture.outputs import Structure
from weft.capture.own_backwards import own_backwards_refused, refuse_own_backwards
from weft.capture.reachability import References
from weft.capture.recurrent_shapes import recurrent_nets_by_shape
from weft.capture.repeated_steps import RepeatedSteps
from weft.capture.returned_objects import existing_objects
from weft.capture.signature import (
    ChangesArgument,
    Declined,
    Read,
    register_dataclasses,
)
from weft.capture.swapped_parameters import make_parameters
from weft.capture.traced_constants import join_same_constants, keep_constants_live
from weft.capture.traced_numbers import NumbersOfTrace, UnreadNumbers
from weft.capture.traced_root import TracedRoot, refuse_effects
from weft.frontend.autocast import bodies
from weft.frontend.exported import Draft, draft
from weft.frontend.fakes import fakes_completed
from weft.frontend.foreach import write_out_foreach
from weft.frontend.graph import Graph
from weft.frontend.numbers import NO_NUMBERS, NumberInputs, WantedNumbers
from weft.frontend.sums_of_steps import join_sums_of_steps

if TYPE_CHECKING:
    from weft.capture.symbolic_trace import SizeSymbols, Wanted
    from weft.frontend.sizes.results import Layouts

# What tracing imports on the way, the parent imports behind it.
IMPORTED_FOR_TRACING = ("torch.", "sympy", "mpmath", "weft.")

UNKNOWN = -1  # as a count

Inputs = dict[frontend.InputSource, torch.Tensor]


class Resolver:
    """Finds a tensor by the name that `TracedRoot` has for it."""

    def __init__(self, references: References) -> None:
        self._references = references

    def __call__(self, name: str) -> torch.Tensor:
        first, _, rest = name.partition(".")
        number = int(first[1:])
        if first[0] == "t":
            return self._references.tensors[number]
        path, _, attribute = rest.rpartition(".")
        return getattr(self._references.modules[number].get_submodule(path), attribute)


@dataclass
class Traced:
    """What comes back from the child. returns_objects, only_as_eager: another attempt is due.
    skipped_steps: of loops, so that a failure may be that of a scan. numbers: how many of the sizes
    that were to be symbols a program with loops has made numbers, or UNKNOWN. draft: of a trace at
    sizes that are numbers. layouts: of the leaves of its value. imported: modules that came to be
    imported. inputs: of numbers of the call's."""

    failure: Exception | None = None
    returns_objects: bool = False
    only_as_eager: bool = False
    skipped_steps: bool = False
    numbers: int = 0
    draft: Draft | None = None
    lowered: frontend.Lowered | None = None
    structure: Structure | None = None
    strides: tuple[tuple[int, ...] | None, ...] = ()
    layouts: Layouts = ()
    digest: str = ""
    lower_seconds: float = 0.0
    read: Read = field(default_factory=dict)
    symbols: SizeSymbols | None = None
    grows: bool = False
    filled: Filled | None = None
    imported: tuple[str, ...] = ()
    inputs: NumberInputs | None = None


@dataclass
class Trace:
    """One attempt, for a process of its own. as_eager: the program hears what eager execution does
    if it asks whether it is compiled. may_make_objects: it returns objects that are no pytrees.
    known: objects that the parent has, too, by address. skips_steps: of loops, see
    repeated_steps.py. drafts: a trace at the call's sizes, to be compared with others. numbers:
    which the program takes; where sizes are symbols, it reads none of them. any_lengths: of packed
    sequences, see lengths_as_data.py."""

    target: Callable[..., Any]
    references: References
    args: tuple
    kwargs: dict[str, Any]
    as_eager: bool
    may_make_objects: bool
    known: dict[int, Any]
    training: bool = False
    wanted: Wanted | None = None
    rng: str = "torch"
    counters: Counters = NO_COUNTERS
    skips_steps: bool = False
    drafts: bool = False
    numbers: WantedNumbers = NO_NUMBERS
    any_lengths: bool = False

    def run(self) -> Traced:
        before = len(sys.modules)
        traced = Traced()
        make_parameters(self.references.modules)
        try:
            self._export(traced)
        except (Declined, frontend.Unsupported) as why:
            traced.failure = why
        # What is new comes last. A set of all names would write to each: a page of this process.
        imported = itertools.islice(reversed(sys.modules), max(len(sys.modules) - before, 0))
        traced.imported = tuple(n for n in imported if n.startswith(IMPORTED_FOR_TRACING))
        return traced

    def _export(self, traced: Traced) -> None:
        kinds = self._register()
        existing = existing_objects() if self.may_make_objects else None
        observer = Observer()
        root_of = TracedRoot
        if self.wanted is not None:
            from weft.capture.symbolic_trace import RangeRoot as root_of
        call = (self.args, self.kwargs)
        numbers = self._numbers()
        root = root_of(
            self.target,
            self.references,
            existing,
            observer,
            kinds,
            call,
            self.counters,
            RepeatedSteps(self.wanted is not None) if self.skips_steps else None,
            numbers,
            self.any_lengths,
        )
        heard = answers_as_in_eager() if self.as_eager else contextlib.nullcontext(Hearing())
        with heard as hearing, fakes_completed(), warnings.catch_warnings():
            # What the call assigns we look after ourselves.
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export")
            observer.install(self.references.names, self.references.environment)
            failure: Exception | None = None
            try:
                program = self._exported(root)
            except Exception as error:
                failure = error
            traced.skipped_steps = root.skipped_steps
            symbolic = self.wanted is not None and not self.drafts
            if root.numbers_of_loops:  # the code has not run to its end, even if it caught this
                traced.numbers = root.numbers_of_loops
                return
            refuse_kept_out()
            refuse_own_backwards()
            refuse_effects(root, observer)
            if failure is not None:
                # Tracing runs the user's code on tensors without values; whatever it raises,
                # the eager call tells the user what is really wrong, if anything is.
                traced.returns_objects = root.observed.returns_objects
                traced.only_as_eager = hearing.untrue and not traced.returns_objects
                if symbolic and root.repeats:
                    traced.numbers = UNKNOWN
                    return
                raise Declined(_reason(failure), _user_line(failure) or line_of(self.target))
            if isinstance(numbers, UnreadNumbers):
                numbers.check()
            if self.training and root.observed.has_changes:
                raise ChangesArgument("the call changes an argument, and records gradients")
            traced.grows, traced.filled = root.observed.grows, root.observed.filled
            lengths, traced.read = lengths_among(root.observed.read)
            if self.wanted is not None and len(lengths if symbolic else ()) < len(traced.read):
                raise frontend.Unsupported("the program is made for values of its arguments")
            if symbolic and root.repeats:
                from weft.capture.symbolic_trace import numbers_among

                traced.numbers = numbers_among(program, self.wanted)
                if traced.numbers:
                    return
                if traced.skipped_steps:
                    raise frontend.Unsupported("loops over no size that is to be a symbol")
            try:
                self._lower(program, traced, kinds, root.observed.reached, numbers, lengths)
            except frontend.Unsupported:
                traced.only_as_eager = hearing.untrue
                raise

    def _numbers(self) -> NumbersOfTrace | None:
        if not self.numbers.leaves:
            return None
        kind = NumbersOfTrace if self.wanted is None else UnreadNumbers
        return kind(self.numbers, pytree.tree_leaves((self.args, self.kwargs)))

    def _names(self, namer: Callable[[frontend.InputSource], str | None]) -> list[str]:
        """Of the numbers."""
        sources = (frontend.InputSource("user", index=leaf) for leaf in self.numbers.arguments)
        names = [namer(each) or f"argument {each.index}" for each in sources]
        return [*names, *(str(name) for _, name in self.numbers.attributes)]

    def _register(self) -> set[type]:
        """Makes what is among the arguments known to pytrees; the classes of the objects."""
        register_dataclasses((self.args, self.kwargs))
        return register((self.args, self.kwargs), self.counters)

    def values(self, inputs: Inputs) -> Values:
        make_parameters(self.references.modules)
        kinds = self._register()
        call = (self.args, self.kwargs)
        root = TracedRoot(self.target, self.references, None, Observer(), kinds, call)
        with answers_as_in_eager(), fakes_completed():
            return values_of(self._exported(root), inputs)

    def _exported(self, root: TracedRoot) -> torch.export.ExportedProgram:
        for function in self.references.code:
            # torch.export names only lines in functions called `forward` otherwise.
            torch.fx.proxy._register_stack_trace_anchor(function)
        with (
            composites_written_out(),
            no_arguments_dropped(),
            recurrent_nets_by_shape(),
            checkpoints_marked(),
            encoder_layers_marked(),
            inner_transforms_traced(self.training),
            own_backwards_refused() if self.training else contextlib.nullcontext(),
            lean_tracing(),
            regions_kept(),
            proxies_unnoticed(),
        ):
            if self.wanted is None:
                program = torch.export.export(root, self.args, self.kwargs, strict=False)
            elif self.drafts:
                program = torch.export.export(root, (self.args, self.kwargs), strict=False)
            else:
                from weft.capture.functions_of_sizes import functions_of_sizes
                from weft.capture.symbolic_trace import exported_with_symbols

                with functions_of_sizes():
                    program = exported_with_symbols(root, self.args, self.kwargs, self.wanted)
        for body in bodies(program.graph_module):
            write_out_foreach(body.graph)
        keep_constants_live(program.constants, self.known)
        join_same_constants(program)
        return program

    def _lower(
        self,
        program: torch.export.ExportedProgram,
        traced: Traced,
        kinds: set[type],
        reached: Sequence[frozenset[int]],
        given_numbers: NumbersOfTrace | None,
        lengths: Mapping[int, torch.SymInt],
    ) -> None:
        """reached: by autograd, from each leaf of the value. lengths: see `lower_for_range`."""
        namer = input_namer(self.target, self.args, self.kwargs)
        start = time.perf_counter()
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        resolve, inputs = Resolver(self.references), [*leaves, traced]  # and the numbers
        reach = autograd_reach(reached, inputs, resolve) if self.training else None
        if self.wanted is None:
            numbers = None if given_numbers is None else given_numbers.numbers
            traced.lowered = frontend.lower(program, namer, self.training, self.rng, reach, numbers)
            if numbers is not None:
                traced.inputs = numbers.inputs(self._names(namer))
        elif self.drafts:
            rng = self.rng if self.training else "torch"
            empty = Graph(self.training, keeps_trivial=True, rng=rng)
            traced.draft = draft(program, namer, empty, reach)
            traced.layouts = layouts_of(program)
            join_sums_of_steps(traced.draft.graph)
        else:
            from weft.capture.symbolic_trace import lower_for_range

            call = (self.args, self.kwargs)
            objects = set(map(id, pytree.tree_leaves(objects_in(call, kinds))))
            held = {number for number, leaf in enumerate(leaves) if id(leaf) in objects}
            traced.lowered, traced.symbols, program = lower_for_range(
                program,
                self.wanted,
                leaves,
                namer,
                held,
                lengths,
                self.training,
                self.rng if self.training else "torch",
                reach,
            )
        traced.lower_seconds = time.perf_counter() - start
        traced.structure = Structure.of(program.call_spec.out_spec)
        traced.strides = strides_of(program)
        traced.digest = digest_of(program)


def _reason(error: Exception) -> str:
    if isinstance(error, Declined):
        return error.reason
    asked = frontend.asks_for_values(error)
    return f"torch.export: {asked or _first_line(error)}"


def _first_line(error: Exception) -> str:
    said = frontend.first_line(error).partition(". If this type holds tensors")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _user_line(error: Exception) -> str | None:
    """The innermost frame that is neither torch's nor ours, of the traceback or of what torch has
    kept of the stack; else of the error that this one was raised from."""
    frames = [
        *traceback.extract_tb(error.__traceback__),
        *(getattr(error, "real_stack", None) or ()),
    ]
    users = [frame for frame in frames if not frame.filename.startswith((*NOT_THE_USERS, "<"))]
    if users:
        return f"{users[-1].filename}:{users[-1].lineno}"
    cause = error.__cause__ or error.__context__
    return _user_line(cause) if isinstance(cause, Exception) else None
