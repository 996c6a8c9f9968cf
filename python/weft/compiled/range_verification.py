# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a program for a range of sizes with PyTorch: at the first call, and at both ends of the
range. Padding is filled with NaN, since its values must not matter."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import is_ as _is
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from weft.capture.argument_changes import collecting
from weft.capture.isolated import Abandoned, call_isolated
from weft.capture.outputs import VALID, build_outputs
from weft.capture.signature import Declined
from weft.capture.sizes_of_loops import resized
from weft.capture.valid_parts import connected, part_of, valid_part
from weft.compiled.distances import Exact
from weft.compiled.flat_calls import FlatCall
from weft.compiled.gradient_check import compare_gradients
from weft.compiled.marks import Mark
from weft.compiled.ranges import RangeProgram, described_padded
from weft.compiled.specialize import Effect
from weft.compiled.verification import Check, Differs, Finding, Verdict
from weft.frontend.padded import padded_with_zeros
from weft.frontend.philox import PhiloxDraws

if TYPE_CHECKING:
    from weft.capture.symbolic_trace import SizeSymbols
    from weft.compiled.programs import Programs
    from weft.compiled.requests import Request

_MOST_TRIED = 64  # sizes, to find one that fulfils the guards


def begin(request: Request, program: RangeProgram) -> RangeCheck:
    """Computes the call by the program, before PyTorch runs it. Padding is filled with NaN, since
    its values must not matter. Raises: Declined."""
    call = FlatCall.of(request.args, request.kwargs, program.counters)
    if call is None:
        raise Declined("its arguments are no longer what they were")
    check = _check(request, program, call)
    for number in program.written():  # with their present values
        call.leaves[number] = call.leaves[number].clone()
    return check


def in_eager(
    programs: Programs, program: RangeProgram, original: Callable[..., Any]
) -> Callable[..., Any]:
    """PyTorch's call, which is given the same masks if programs draw by Philox."""
    if programs.capture.rng != "philox" or not program.specialized.draws:
        return original

    def call(*args: Any, **kwargs: Any) -> Any:
        with PhiloxDraws():
            return original(*args, **kwargs)

    return call


def conclude(
    check: Check,
    programs: Programs,
    request: Request,
    value: Any,
    original: Callable[..., Any],
) -> Finding | None:
    """What is different in PyTorch's result, or None."""
    args, kwargs = request.args, request.kwargs
    try:
        finding = check.conclude(
            value, lambda: programs.change_of(request.state), lambda: original(*args, **kwargs)
        )
    except Exception as error:  # a fault of the compiler costs speed, never the user's result
        return _different(f"it cannot be compared: {type(error).__name__}: {error}")
    if finding.verdict is Verdict.SAME and check.training is not None:
        finding = compare_gradients(check.training, check, finding)
    return None if finding.verdict is Verdict.SAME else finding


def _different(reason: str) -> Finding:
    return Finding(Verdict.DIFFERENT, reason)


def differs_at_ends(
    programs: Programs,
    original: Callable[..., Any],
    request: Request,
    program: RangeProgram,
    call: FlatCall,
) -> Finding | None:
    """What is different at the ends of the range, or None, for arguments of these sizes that are
    made of the call's elements; found in a process where the effects of calls are not seen. Sizes
    of 1 that differ are excluded from the range. For sizes that came later, the user's code is
    known to do the same."""
    if request.new_sizes is not None:
        return None

    def differs_with(leaves: list[Any]) -> Finding | None:
        for number in program.written():
            leaves[number] = leaves[number].clone()
        args, kwargs = call.rebuilt(leaves)
        flat = FlatCall.of(args, kwargs, program.counters)
        assert flat is not None
        there = replace(request, args=args, kwargs=kwargs)
        check = _check(there, program, flat)
        try:
            value = in_eager(programs, program, original)(*args, **kwargs)
        except Exception as error:
            if check.ran:
                return _different(f"expected {type(error).__name__}: {error}, found a value")
            raise _Refused from error
        return conclude(check, programs, there, value, original)

    def differs_at(sizes: tuple[int, ...]) -> Finding | None:
        leaves = resized(call.leaves, program.symbols, sizes)
        within = _indices_within(leaves, min(sizes))
        try:
            return differs_with(leaves)
        except Exception:
            if within is None:
                raise
        return differs_with(within)

    def differs(ends: Sequence[tuple[int, ...]]) -> Finding | None:
        for end in ends:
            for sizes in _towards(own, end, program.symbols):
                with contextlib.suppress(_Refused):
                    if (found := differs_at(sizes)) is not None:
                        where = ", ".join(map(str, sizes))
                        return replace(found, reason=f"at sizes {where}: {found.reason}")
                    break
        return None

    def compare(ends: Sequence[tuple[int, ...]]) -> Finding | None:
        try:
            return call_isolated(lambda: differs(ends), {})
        except Abandoned:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return _different(f"at the ends of its range it cannot be compared: {why}")

    own = _sizes_of(call, program)
    if (ones := _with_ones(program.symbols.ranges)) and compare(ones) is not None:
        program.exclude_ones()
    return compare(_ends(program.symbols))


class _Refused(Exception):
    """Neither PyTorch nor the program takes arguments of these sizes."""


def _sizes_of(call: FlatCall, program: RangeProgram) -> tuple[int, ...]:
    """The call's own sizes, of each symbol."""
    args, kwargs = call.rebuilt(call.leaves)
    padded = program.core.padded(args, kwargs)
    if padded is None:
        raise Declined("its arguments are no longer what they were")
    sizes = described_padded(call, padded).examples[-1].tolist()
    return tuple(sizes[: len(program.symbols.ranges)])


def _towards(
    own: tuple[int, ...], end: tuple[int, ...], symbols: SizeSymbols
) -> Iterator[tuple[int, ...]]:
    """The end, and sizes for which the program stands, each half as far from the call's own."""
    way = [other - size for size, other in zip(own, end)]
    while any(way):
        sizes = tuple(size + step for size, step in zip(own, way))
        if all(guard.holds(sizes) for guard in symbols.guards):
            yield sizes
        way = [int(step / 2) for step in way]


def _indices_within(leaves: Sequence[Any], size: int) -> list[Any] | None:
    """The leaves with integers below `size`: integers may be indices, for which a part of the
    tensor that they point into may be too short. None if nothing has to be changed."""
    found = list(leaves)
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.int64, torch.int32):
            if leaf.numel() and leaf.max() >= size:
                found[number] = leaf.remainder(size)
    return None if all(map(_is, found, leaves)) else found


def _with_ones(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Each size of 1 that is possible, with the largest and with the least of the other sizes."""
    lows, highs = (tuple(each) for each in zip(*ranges))
    found = {}
    for j, low in enumerate(lows):
        for rest in (highs, lows) if low == 1 else ():
            found[(*rest[:j], 1, *rest[j + 1 :])] = None
    return [*found]


def _ends(symbols: SizeSymbols) -> list[tuple[int, ...]]:
    """The ends, an odd size between them that is not a multiple of a tile, and large sizes with
    small ones."""
    ranges = symbols.ranges
    found = [
        tuple(high for _, high in ranges),
        *_between(symbols),
        tuple(low for low, _ in ranges),
    ]
    for which in (0, 1) if len(ranges) > 1 else ():
        found.append(tuple(each[(j + which) % 2] for j, each in enumerate(ranges)))
    return [each for each in found if all(guard.holds(each) for guard in symbols.guards)]


def _between(symbols: SizeSymbols) -> list[tuple[int, ...]]:
    """The first sizes from the middle on for which the program stands. Each symbol has been told
    apart from others by other sizes than these."""
    middle = [min(max((low + high) // 2 | 1, low), high) for low, high in symbols.ranges]
    for more in range(_MOST_TRIED):
        sizes = tuple(min(n + more, high) for n, (_, high) in zip(middle, symbols.ranges))
        if all(guard.holds(sizes) for guard in symbols.guards):
            return [sizes]
    return []


class RangeCheck(Check):
    """Compares the valid part of the results. call: with the arguments that it had before."""

    call: FlatCall

    def watch(self, call: FlatCall) -> None:
        """Notes what PyTorch does with the arguments themselves, of which the program has
        copies."""
        self.call = call
        tensors = [each for each in call.leaves if isinstance(each, torch.Tensor)]
        own = dict(zip(map(id, self._signature.examples), tensors))
        self._originals = [own.get(id(each), each) for each in self._sources]
        self._histories = [each.grad_fn for each in self._originals]
        originals = {id(x): x for x in call.leaves if isinstance(x, torch.Tensor)}
        self._marks += [Mark(each) for key, each in originals.items() if key not in self._known]
        self._known = {**self._known, **originals}

    def _target(self, effect: Effect) -> torch.Tensor:
        padded = super()._target(effect)
        return padded if effect.valid is None else padded.weft_valid_part

    def _written(self, effect: Effect) -> torch.Tensor:
        return self._parts.get(effect.result, super()._written(effect))

    @functools.cached_property
    def _parts(self) -> dict[int, torch.Tensor]:
        """What is written of results, by their numbers, to arguments that are padded."""
        return self._cut_writes(self._results)

    def _cut_writes(self, results: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        sizes = self._signature.examples[-1]
        return {
            each.result: valid_part(results[each.result], each.valid, sizes)
            for _, each in self._targets
            if each.valid is not None
        }

    def _compare_layouts(self, pairs: list) -> dict[int, tuple[tuple[int, ...], int]]:
        """For a single size, eager execution has shown how a result is laid out; here it is in
        memory of its own. The same holds for what caches are given, including the last tokens of a
        window, whose place in a larger memory does not matter."""
        given = {id(each) for each in self._given}
        for eager, own, name in pairs:
            if id(own) not in given and eager.storage_offset() != own.storage_offset():
                raise Differs(f"{name} is a part of a larger tensor's memory")
        numbers = self._cut_results()
        self.eager.update((numbers[id(own)], x) for x, own, _ in pairs if id(own) in numbers)
        return super()._compare_layouts(pairs)

    def _cut_results(self) -> dict[int, int]:
        """The numbers of the results of which the user gets parts, by the identity of the parts."""
        assert self._program.wiring is not None
        recipes, parts = self._program.wiring.leaves(), pytree.tree_leaves(self._value)
        if len(recipes) != len(parts):
            return {}
        return {id(x): each[1] for each, x in zip(recipes, parts) if each[0] == VALID}

    @property
    def originals(self) -> list[torch.Tensor]:
        return self._originals

    def as_computed(self, number: int, cotangent: torch.Tensor) -> torch.Tensor:
        assert self._program.lowered is not None
        targets = (t for t in self._program.lowered.outputs if t.result == number)
        valid = next((each.valid for each in targets if each.valid is not None), None)
        if valid is None:
            return cotangent
        return padded_with_zeros(cotangent, valid.dims, self._signature.examples[-1].tolist())

    def as_seen(
        self, gradients: Sequence[torch.Tensor | None], inputs: Sequence[int]
    ) -> list[torch.Tensor | None]:
        return [
            each if each is None else part_of(each, self._originals[number].shape)
            for each, number in zip(gradients, inputs, strict=True)
        ]

    def _exact(self) -> dict[int, Exact]:
        whole = super()._exact()
        assert self._program.lowered is not None
        count = len(self._program.lowered.result_dtypes)  # saved values follow
        results = [whole[id(each)] for each in self._results[:count]]
        values = self._cut_out([each.value for each in results])
        rounded = self._cut_out([each.rounded for each in results])
        magnitude = max(each.magnitude for each in results)
        added_up = min(each.added_up for each in results)
        coarsest = max(each.coarsest for each in results)
        parts = {
            id(own): Exact(*each, magnitude, added_up, coarsest)
            for own, *each in zip(
                [*_tensors(self._value), *self._given, *self._parts.values()],
                values,
                rounded,
                strict=True,
            )
        }
        return {**whole, **parts}

    def _cut_out(self, results: list[torch.Tensor]) -> list[torch.Tensor]:
        """The parts of the results that the user gets, and those that are written."""
        with collecting() as given:
            value = build_outputs(self._program.wiring.outputs(), results, self._signature.examples)
        return [*_tensors(value), *given, *self._cut_writes(results).values()]


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def _check(request: Request, program: RangeProgram, call: FlatCall) -> RangeCheck:
    padded = program.core.padded(request.args, request.kwargs, fill=math.nan)
    if padded is None:
        raise Declined("a size in its range is none that it stands for")
    padded = connected(call.leaves, padded)
    signature = described_padded(call, padded)
    check = RangeCheck(program.specialized, signature, request.state, padded, {}, program.counters)
    check.watch(call)
    return check
