# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that serve a range of sizes: which there are, and for which calls they stand.

Such a program is compiled for the largest sizes (frontend/sizes). A call's tensors are padded to
these, and the valid part of its results is cut out.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from weft import _core, errors
from weft.capture.argument_objects import NO_COUNTERS, Counters, counters_between
from weft.capture.isolated import Abandoned
from weft.capture.signature import Declined, Signature, describe
from weft.capture.valid_parts import connected
from weft.compiled import checkpoints
from weft.compiled.cut_rows import is_cut_short, rows_apart, without_gaps
from weft.compiled.filled_objects import FilledObjects
from weft.compiled.flat_calls import FlatCall, described
from weft.compiled.lengths_of_inputs import with_lengths_of_inputs
from weft.compiled.new_sizes import program_for
from weft.compiled.range_cores import core_of
from weft.compiled.requests import records_gradients
from weft.compiled.sizes import Sizes, Wanted, cache_range, fitting, program_range, prompt_range
from weft.compiled.specialize import Specialized
from weft.compiled.specialize_training import specialize_call
from weft.compiled.user_frames import failure
from weft.compiled.verification import MOST_INCONCLUSIVE_CHECKS

if TYPE_CHECKING:
    from weft.capture.sizes_of_loops import SizesOfLoops
    from weft.capture.symbolic_trace import SizeSymbols
    from weft.compiled.programs import Programs
    from weft.compiled.requests import Environment, Request
    from weft.compiled.training import Training
    from weft.compiled.verification import Finding


@dataclass
class RangeProgram:
    """A program for a range of sizes.

    specialized: the program for padded arguments. shapes: as in reports. counters: attributes of
    objects that are sizes. core: the C++ object that knows for which calls it stands. loops: the
    sizes at which its loops over symbolic sizes were traced. row_wise: whether each row of a batch
    is computed separately, None if unknown. in_vain: programs for sizes of the range that were no
    faster, or were made for calls with gradients. spent: seconds of such calls on padding, by their
    sizes.
    """

    specialized: Specialized
    symbols: SizeSymbols
    shapes: str
    counters: Counters
    core: _core.SizeRange
    loops: SizesOfLoops | None = None
    row_wise: bool | None = None
    in_vain: int = 0
    spent: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def training(self) -> Training | None:
        """What computes gradients, if calls record them."""
        return self.specialized.training

    @property
    def calls(self) -> int:
        """The calls that the program has answered."""
        return self.core.calls

    def arguments(self, args: tuple, kwargs: dict[str, Any]) -> tuple | None:
        """The program's arguments for a call; None if it does not stand for the call."""
        if self.training is None:
            return self.core.padded(args, kwargs)
        # A checkpoint makes its calls twice, and both must be run by one program.
        if not records_gradients() or checkpoints.current() is not None:
            return None
        padded = self.core.padded(args, kwargs, fill=0.0)
        if padded is None:
            return None
        return connected(pytree.tree_leaves((args, kwargs)), padded)

    def written(self) -> list[int]:
        """The numbers of the leaves that the program writes to."""
        wiring = self.specialized.wiring
        assert wiring is not None
        targets = [target for target, *_ in wiring.effects() if isinstance(target, int)]
        return [leaf for leaf, slot in wiring.slots.items() if slot in targets]

    def given_back(self) -> list[int]:
        """The numbers of the leaves of which results may be views."""
        wiring = self.specialized.wiring
        assert wiring is not None
        kept = wiring.kept()
        return [leaf for leaf, slot in wiring.slots.items() if slot in kept]

    def rebound(self, resolve: Callable[[str], torch.Tensor]) -> RangeProgram:
        """The same program for other tensors of the modules, which `resolve` finds."""
        specialized = self.specialized.rebound(resolve)
        return replace(self, specialized=specialized, core=self.core.rebound(specialized.core))

    def exclude_ones(self) -> None:
        """Lets sizes of 1 have programs of their own from now on. They are in the range as far as
        padding is concerned, but tracing assumes that no size is 1, so that they have to be
        compared."""
        ranges = tuple((max(low, 2), high) for low, high in self.symbols.ranges)
        self.symbols = replace(self.symbols, ranges=ranges)
        self.core.ranges = [*ranges]


def described_padded(call: FlatCall, padded: tuple) -> Signature:
    """The pattern of what a range's program is given for a call."""
    tensors = iter(padded)
    leaves = [next(tensors) if isinstance(x, torch.Tensor) else x for x in call.leaves]
    count = sum(isinstance(x, torch.Tensor) for x in call.leaves)
    *lengths, sizes = itertools.islice(tensors, len(padded) - len(call.objects) - count)
    signature = described(leaves, call.objects, lengths, sizes)
    signature.objects = [(each, ()) for each in call.objects]
    return signature


# Up to these sizes a loop may be too short to become a scan, depending on what its steps read.
_LONGEST_SHORT = (7, 15)
# Other sizes that calls with gradients must have had before a program for a range is made, which
# takes longer to compile and to run: an epoch has full batches and one smaller batch.
_TRAINED = 2
NOT_CONTIGUOUS = "an argument whose size is a symbol is not contiguous"


@dataclass
class _Seen:
    """An earlier call. shapes: of its leaves. recipes: of its objects."""

    shapes: tuple[tuple[int, ...], ...]
    recipes: list[tuple]


@dataclass
class Ranges:
    """The programs for ranges of one callable.

    declined: why calls of a kind have no such program, by kind. seen: the latest calls without a
    program, by kind. counters: attributes of objects that are sizes. filled: what calls fill.
    """

    owner: weakref.ref[Programs]
    sizes: Sizes
    automatic: bool
    declined: dict[Any, str] = field(default_factory=dict)
    seen: dict[Any, list[_Seen]] = field(default_factory=dict)
    counters: Counters = NO_COUNTERS
    filled: FilledObjects = field(default_factory=FilledObjects)
    _lengthened: set[Any] = field(default_factory=set)
    # Sizes that have no program, up to this, by kind.
    _short: dict[Any, int] = field(default_factory=dict)
    _varied: dict[Any, Wanted] = field(default_factory=dict)
    # How often a kink has left open whether a program is right, by kind.
    _undecided: Counter[Any] = field(default_factory=Counter)

    @property
    def programs(self) -> Programs:
        """The programs that these ranges belong to, which exist during a call."""
        programs = self.owner()
        assert programs is not None
        return programs

    def forget(self) -> None:
        self.declined.clear()
        self.seen.clear()
        self._lengthened.clear()
        self.filled.clear()
        self._short.clear()
        self._varied.clear()
        self._undecided.clear()

    def find(
        self, args: tuple, kwargs: dict[str, Any], environments: Sequence[Environment]
    ) -> tuple[RangeProgram, tuple] | None:
        """A verified program that stands for the call, and its arguments."""
        for environment in environments:
            if not environment.ranges or not environment.core.holds():
                continue
            for program in environment.ranges:
                padded = program.arguments(args, kwargs)
                if padded is not None and program.specialized.core.matches(padded, {}):
                    return program, padded
        return None

    def wanted(self, request: Request) -> Wanted:
        """The sizes of the call that are to be symbols; none if it can have no such program.

        Raises: errors.SizeError.
        """
        signature = request.signature
        told = self.sizes.wanted(request.args, request.kwargs)
        plain = FlatCall.of(request.args, request.kwargs)
        if plain is None or len(plain.leaves) != len(signature.leaves):
            return {}
        if request.gradients and (plain.objects or checkpoints.current() is not None):
            return {}
        request.kind = kind = (plain.kind(), request.gradients)
        request.counters = self.counters | self.filled.counters(kind)
        call = FlatCall.of(request.args, request.kwargs, request.counters)
        if call is None:
            return {}
        starts = call.starts()
        told = {starts[number]: dims for number, dims in told.items()}
        # A tensor that calls make longer has another size in each call.
        if self.automatic or signature.objects:
            call = self._with_counters(request, plain) or call
            self._add_varying(told, call, plain, kind, _TRAINED if request.gradients else 1)
            self.filled.add_sizes(told, call, kind)
        wanted = fitting(told, call)
        if any(
            not call.leaves[n].is_contiguous() and not is_cut_short(call.leaves[n]) for n in wanted
        ):
            self.declined[_reason_key(kind, wanted)] = NOT_CONTIGUOUS
            return {}
        # Sizes that have varied at some time between calls of this kind, such as a prompt's, in
        # addition to those that grow at each call.
        widest = self._varied.setdefault((kind, request.counters), {}) if call.objects else {}
        for number, dims in wanted.items():
            widest[number] = widest.get(number, {}) | dims
        if wanted and _begins(widest, call) and _length_of(plain) not in self._lengthened:
            return {}
        request.narrower = wanted
        if wanted:
            wanted = fitting(with_lengths_of_inputs(fitting(widest, call), call), call)
        request.least = _least(wanted, call)
        choices = (wanted, request.narrower)
        return next((each for each in choices if not self._is_declined(request, each)), {})

    def _is_declined(self, request: Request, wanted: Wanted) -> bool:
        key = _reason_key(request.kind, wanted)
        return key in self.declined or request.least <= self._short.get(key, 0)

    def _with_counters(self, request: Request, call: FlatCall) -> FlatCall | None:
        """The call with ints of its objects as sizes, where they differ from those of the last
        similar call."""
        for before in self.seen.get(request.kind, [])[-1:]:
            found: Counters | None = NO_COUNTERS
            for one, other in zip(before.recipes, call.recipes):
                inner = counters_between(one, other)
                found = None if found is None or inner is None else found | inner
            if found:
                self.counters |= found
                request.counters |= found
        return FlatCall.of(request.args, request.kwargs, request.counters)

    def _add_varying(
        self, told: Wanted, call: FlatCall, plain: FlatCall, kind: Any, least: int
    ) -> None:
        """Adds sizes that have had at least this number of other values in similar calls. plain:
        the call without counters."""
        held = call.held()
        for number in call.counted:
            told[number] = {0: cache_range(call.leaves[number].shape[0])}
        own = [number for number in range(len(call.leaves)) if number not in call.counted]
        shapes = _shapes(plain)
        # An object has been changed by the last call.
        past = self.seen.setdefault(kind, [])
        others: dict[tuple[int, int], set[int]] = {}
        for before in past[-1:] if plain.objects else past:
            for number, old, new in zip(own, before.shapes, shapes):
                for dim, (a, b) in enumerate(zip(old, new)):
                    if a != b:
                        others.setdefault((number, dim), set()).add(a)
        lengths = {call.leaves[n].shape[dim] for n, dim in others if n in held}
        lengths |= {cached + new for cached in lengths for new in _appended(call, held)}
        for (number, dim), sizes in others.items():
            if len(sizes) >= least:
                size = call.leaves[number].shape[dim]
                size_range = program_range(size)
                if size in lengths:  # of a cache, or of a mask over one
                    size_range = cache_range(size)
                elif plain.objects:
                    size_range = prompt_range(size)
                told.setdefault(number, {}).setdefault(dim, size_range)
        self.seen[kind] = [*past, _Seen(shapes, plain.recipes)][-8:]

    def awaits_another(self, request: Request) -> bool:
        """For a call that makes an argument longer: whether the next call, with another length, is
        to have a program for a range. One more call with the same length has a program of its
        own."""
        call = FlatCall.of(request.args, request.kwargs)
        if call is None:
            return False
        length = _length_of(call)
        if length in self._lengthened:
            return False
        self._lengthened.add(length)
        return True

    def why_declined(self, request: Request) -> str | None:
        """Why calls that differ from this one only in sizes have no program for a range, or
        None."""
        from weft.capture.symbolic_trace import ONE_SIZE

        found = [why for (of, _), why in self.declined.items() if of == request.kind]
        # That each size turned out to be a constant says less than the reasons for the others.
        return next((why for why in found if why != ONE_SIZE), found[0] if found else None)

    def make(self, request: Request, apart: bool = False) -> RangeProgram | None:
        """The program for a range that includes the call's sizes, not verified; None if there is
        none, and `declined` has the reason.

        apart: whether to compile in child processes.
        """
        made, is_known = program_for(self.programs, request)
        if is_known:
            return made
        made = self._made_or_declined(request, apart)
        narrower = request.narrower
        if made is None and narrower and not self._is_declined(request, narrower):
            request.wanted = narrower
            made = self._made_or_declined(request, apart)
        return made

    def _made_or_declined(self, request: Request, apart: bool) -> RangeProgram | None:
        try:
            return self._made(request, apart)
        except errors.CaptureError as why:
            self.decline(request, str(why))
        except Abandoned:
            raise
        except Exception as error:
            self.decline(request, str(failure(error, self.programs.target)))
        return None

    def refuse(self, request: Request, finding: Finding) -> None:
        """Declines the program that has been compared. If rounding explains what differs, the next
        call's is compared first."""
        key = _reason_key(request.kind, request.wanted)
        if finding.is_explained:
            self._undecided[key] += 1
            if self._undecided[key] < MOST_INCONCLUSIVE_CHECKS:
                return
        self.decline(request, f"the program does not reproduce eager execution: {finding.reason}")

    def decline(self, request: Request, reason: str) -> None:
        """Lets calls like this one have programs for exactly their sizes from now on."""
        from weft.capture.symbolic_trace import ONE_SIZE

        key = _reason_key(request.kind, request.wanted)
        if request.new_sizes is not None:
            request.new_sizes.withdraw()
        elif reason == ONE_SIZE and request.least <= _LONGEST_SHORT[-1]:
            # Longer loops may become scans.
            self._short[key] = next(each for each in _LONGEST_SHORT if request.least <= each)
        else:
            self.declined[key] = reason

    def _made(self, request: Request, apart: bool, keeps_rows: bool = False) -> RangeProgram:
        """keeps_rows: whether rows that are parts of longer ones stay so."""
        start = time.perf_counter()
        programs, signature = self.programs, request.signature
        programs.totals.captures += 1
        args, kwargs = request.args, request.kwargs
        flat = FlatCall.of(args, kwargs, request.counters)
        assert flat is not None  # otherwise no sizes would be wanted
        cut_short = {n for n in request.wanted if not flat.leaves[n].is_contiguous()}
        if cut_short & flat.held():
            raise Declined(NOT_CONTIGUOUS)
        spread: set[int] = set()
        if not (keeps_rows or request.gradients):
            spread = rows_apart(flat, request.wanted)
        if cut_short or spread:
            args, kwargs = without_gaps(flat, args, kwargs, cut_short | spread)
            signature = describe(args, kwargs)
            flat = FlatCall.of(args, kwargs, request.counters)
            assert flat is not None
        call = (args, kwargs, request.references, request.state, signature)
        try:
            captured = programs.capture.capture(
                *call,
                request.gradients,
                request.wanted,
                request.counters,
                request.numbers,
                any_lengths=True,
            )
        finally:
            whole = time.perf_counter() - start
            programs.totals.capture_seconds += whole
        symbols = captured.symbols
        assert symbols is not None
        shapes = shapes_of(flat, symbols)
        given = describe(args, kwargs, captured.read, request.counters)
        core = core_of(given, symbols, spread)
        padded = core.padded(args, kwargs)
        if padded is None:
            raise Declined("the call is none of those that its program stands for")
        own = described_padded(flat, connected(flat.leaves, padded))
        gradients, options = request.gradients, programs.options
        deferred = gradients and programs.may_defer()
        specialized = specialize_call(captured, own, options, gradients, deferred, apart)
        specialized.wants_gradients = gradients
        assert specialized.wiring is not None
        # What is written to may be a part of what they are copies of.
        writes = bool(specialized.wiring.effects())
        padded_slots = [given.slots[leaf] for leaf in symbols.dims]
        kept = padded_slots if writes else specialized.wiring.kept()
        core = core_of(given, symbols, spread, kept)
        core.takes_cut_short = bool(cut_short)
        core.attach(specialized.core)
        draft = RangeProgram(specialized, symbols, shapes, request.counters, core, captured.loops)
        if cut_short and (captured.loops or cut_short & {*draft.given_back(), *draft.written()}):
            raise Declined(NOT_CONTIGUOUS)
        if spread and (captured.loops or spread & {*draft.given_back(), *draft.written()}):
            return self._made(request, apart, keeps_rows=True)
        if draft.specialized.draws and draft.training is None:
            raise Declined("random numbers of a symbolic number")
        draft.specialized.shapes = draft.shapes
        lower = captured.lower_seconds
        seconds = {"capture": whole - lower, "lower": lower}
        programs.totals.compile_seconds += draft.specialized.seconds["build"]
        draft.specialized.seconds = {**seconds, **draft.specialized.seconds}
        return draft


def shapes_of(call: FlatCall, symbols: SizeSymbols) -> str:
    """As `specialize.shapes_of`, with ranges for symbols: `i64[1, 2..512]`."""
    from weft.compiled.specialize import shapes_of as shapes

    lows, highs = zip(*symbols.ranges)
    texts = []
    for leaf, example in enumerate(call.leaves):
        if not isinstance(example, torch.Tensor):
            continue
        one = shapes(Signature(examples=[example]))
        dims = symbols.dims.get(leaf)
        if dims is not None:
            sizes = [
                str(d) if isinstance(d, int) else f"{d.least(lows, highs)}..{d.at(highs)}"
                for d in dims
            ]
            one = f"{one.partition('[')[0]}[{', '.join(sizes)}]"
        if leaf in call.counted:
            one = str(example.shape[0]) if dims is None else sizes[0]
        texts.append(one)
    return ", ".join(texts)


def _begins(widest: Wanted, call: FlatCall) -> bool:
    """Whether what grows has a size of 1. A program for a range can then be made at the next call,
    and also stand for this one."""
    return any(
        low == 1 and call.leaves[number].shape[dim] == 1
        for number, dims in widest.items()
        for dim, (low, _) in dims.items()
    )


def _appended(call: FlatCall, held: set[int]) -> set[int]:
    """The lengths of tokens (integers)."""
    tokens = (x for n, x in enumerate(call.leaves) if isinstance(x, torch.Tensor) and n not in held)
    return {size for x in tokens if x.dtype == torch.int64 for size in x.shape[1:]}


def _least(wanted: Wanted, call: FlatCall) -> int:
    return min(
        (call.leaves[number].shape[dim] for number, dims in wanted.items() for dim in dims),
        default=0,
    )


def _shapes(call: FlatCall) -> tuple[tuple[int, ...], ...]:
    """The shapes of the leaves, () for leaves that are not tensors."""
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else () for x in call.leaves)


def _length_of(call: FlatCall) -> Any:
    """A key that is equal for calls with objects of one length."""
    return call.key, _shapes(call)


def _reason_key(kind: Any, wanted: Wanted) -> Any:
    return kind, tuple(sorted((number, *sorted(dims.items())) for number, dims in wanted.items()))
