# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over a size that is to be a symbol.

The user's code decides at each step whether to go on, so that what it does at one size says nothing
of another. It is traced at several sizes of a range, with loops as scans (`repeated_steps.py`); if
these traces are one program but for sizes, that is the program for the range. A call of a size at
which the code has not run is traced, too, and compared with the others. Nothing is compiled then.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import frontend
from weft.capture.signature import PLAIN
from weft.capture.symbolic_trace import ONE_SIZE, Range, SizeSymbols, Wanted
from weft.capture.trace import Trace, Traced
from weft.capture.tracing import attempted
from weft.frontend.graph import without_locations
from weft.frontend.sizes.extents import Extent, Samples, sample_sizes
from weft.frontend.sizes.padding import NotForRange, Padding

Sizes = tuple[int, ...]  # of the symbols

# Sizes at which loops may become scans; how short one may be depends on what its steps read.
_LEAST_OF_LOOPS = (8, 16)


class SizesSeen:
    """The sizes at which the user's code has done what the program does. failed: others, at which
    it did something else."""

    is_in_ranges = False

    def __init__(self) -> None:
        self.seen: set[Sizes] = set()
        self.failed: set[Sizes] = set()
        self._supposed = threading.local()

    def holds(self, sizes: Sequence[int]) -> bool:
        found = tuple(sizes)
        return found in self.seen or found == getattr(self._supposed, "sizes", None)

    @contextlib.contextmanager
    def supposing(self, sizes: Sizes) -> Iterator[None]:
        """These sizes hold within it, for this thread: others' calls wait until they are seen."""
        self._supposed.sizes = sizes
        try:
            yield
        finally:
            del self._supposed.sizes

    def exclude(self, sizes: Sizes) -> None:
        """They have a program of their own from now on."""
        self.seen.discard(sizes)
        self.failed.add(sizes)


class SizesOfLoops:
    """Traces of a program at several sizes, and what they have in common.

    symbols: with the sizes of these traces as a guard. first: the trace at the largest sizes.
    """

    def __init__(self, symbols: SizeSymbols, count: int, traces: dict[Sizes, Traced]) -> None:
        """count: of the leaves of a call."""
        self._count = count
        self._ranges = symbols.ranges
        self._domains = [range(low, high + 1) for low, high in symbols.ranges]
        ordered = sample_sizes(self._domains)
        self._traces = {sizes: traces[sizes] for sizes in (*ordered, *traces)}
        self.first = self._traces[ordered[0]]
        self.guard = SizesSeen()
        self.symbols = replace(symbols, guards=(self.guard,))
        self._program: tuple = ()

    @staticmethod
    def of(trace: Trace) -> SizesOfLoops:
        """trace: of a call whose sizes were to be symbols. Raises: NotForRange, or as
        `Tracing.capture`."""
        assert trace.wanted is not None
        leaves = pytree.tree_leaves((trace.args, trace.kwargs))
        if any(not isinstance(each, torch.Tensor) and type(each) not in PLAIN for each in leaves):
            raise NotForRange("a loop over a symbolic size, and objects among the arguments")
        symbols, own = _symbols_of(leaves, trace.wanted)
        lows, highs = (list(each) for each in zip(*symbols.ranges))
        traces = {own: _traced(trace, symbols, own)}
        if not traces[own].skipped_steps:
            raise NotForRange(ONE_SIZE)
        largest = traces.get(tuple(highs)) or _traced(trace, symbols, tuple(highs))
        traces[tuple(highs)] = largest
        _refuse_others(traces[own], largest)
        for j, low in enumerate(lows):
            for least in (low, *(each for each in _LEAST_OF_LOOPS if low < each < own[j])):
                sizes = (*highs[:j], least, *highs[j + 1 :])
                found = traces.get(sizes) or _traced(trace, symbols, sizes)
                if _is_like(found, largest):
                    break
            else:
                least, sizes = own[j], (*highs[:j], own[j], *highs[j + 1 :])
                found = traces.get(sizes) or _traced(trace, symbols, sizes)
            lows[j], traces[sizes] = least, found
        symbols = replace(symbols, ranges=tuple(zip(lows, highs)))
        for sizes in sample_sizes([range(low, high + 1) for low, high in symbols.ranges]):
            if sizes not in traces:
                traces[sizes] = _traced(trace, symbols, sizes)
        return SizesOfLoops(symbols, len(leaves), traces)

    def lowered(self) -> frontend.Lowered:
        """The program for all sizes in the ranges. Raises: frontend.Unsupported."""
        made = self._padded(self._traces)
        self._program = _facts(made)
        self.guard.seen.update(self._traces)
        return made

    def sizes_of(self, leaves: Sequence[Any]) -> Sizes | None:
        """The sizes of a call; None if they are no sizes of the program's."""
        found: dict[int, int] = {}
        for number, dims in self.symbols.dims.items():
            leaf = leaves[number] if number < len(leaves) else None
            if not isinstance(leaf, torch.Tensor) or leaf.dim() != len(dims):
                return None
            for size, extent in zip(leaf.shape, dims, strict=True):
                if not isinstance(extent, int):
                    if found.setdefault(extent.coefficients.index(1), size) != size:
                        return None
        sizes = tuple(found[j] for j in range(len(self._ranges)))
        within = all(low <= size <= high for size, (low, high) in zip(sizes, self._ranges))
        return sizes if within else None

    def admits(self, sizes: Sizes, traced: Traced) -> bool:
        """Whether the program is that of a trace at other sizes, which are its own from now on."""
        try:
            same = _facts(self._padded({**self._traces, sizes: traced})) == self._program
        except frontend.Unsupported:
            same = False
        if same:
            self.guard.seen.add(sizes)
        return same

    def _padded(self, traces: dict[Sizes, Traced]) -> frontend.Lowered:
        _refuse_others(*traces.values())
        drafts = [each.draft for each in traces.values() if each.draft is not None]
        samples: Samples = [*traces]
        layouts = [each.layouts for each in traces.values()]
        padded = self.symbols.dims.keys()
        padding = Padding(drafts, samples, self._domains, (), layouts, padded)
        return padding.run(self._count).finish()


def _traced(trace: Trace, symbols: SizeSymbols, sizes: Sizes) -> Traced:
    call = (trace.args, trace.kwargs)
    leaves, structure = pytree.tree_flatten(call)
    args, kwargs = pytree.tree_unflatten(resized(leaves, symbols, sizes), structure)
    return attempted(replace(trace, args=args, kwargs=kwargs, drafts=True))


def resized(leaves: Sequence[Any], symbols: SizeSymbols, sizes: Sequence[int]) -> list[Any]:
    """The same call at other sizes: elements are left out, or repeated."""
    made = list(leaves)
    known: dict[int, torch.Tensor] = {}
    for number, dims in symbols.dims.items():
        tensor = leaves[number]
        if id(tensor) not in known:
            other = tensor.detach()
            for dim, extent in enumerate(dims):
                if not isinstance(extent, int):
                    places = torch.arange(extent.at(sizes)) % other.shape[dim]
                    other = other.index_select(dim, places)
            known[id(tensor)] = other.contiguous().requires_grad_(tensor.requires_grad)
        made[number] = known[id(tensor)]
    for number, extent in symbols.lengths.items():
        longest, other = int(made[number].max()), extent.at(sizes)
        made[number] = -(-made[number] * other // longest)
    return made


def _symbols_of(leaves: Sequence[Any], wanted: Wanted) -> tuple[SizeSymbols, Sizes]:
    """Equal sizes are one symbol. The sizes of the call."""
    numbers: dict[int, int] = {}
    ranges: list[Range] = []
    for leaf, dims in sorted(wanted.items()):
        for dim, (low, high) in sorted(dims.items()):
            size = leaves[leaf].shape[dim]
            if numbers.setdefault(size, len(ranges)) == len(ranges):
                ranges.append((low, high))
            else:
                least, most = ranges[numbers[size]]
                ranges[numbers[size]] = (max(least, low), min(most, high))
    units = [tuple(int(i == j) for i in range(len(ranges))) for j in range(len(ranges))]
    shapes = {
        leaf: tuple(
            Extent(units[numbers[size]], 0) if dim in dims else size
            for dim, size in enumerate(leaves[leaf].shape)
        )
        for leaf, dims in wanted.items()
    }
    return SizeSymbols(tuple(ranges), shapes), tuple(numbers)


def _is_like(one: Traced, other: Traced) -> bool:
    """Whether the programs may be the same but for sizes."""
    assert one.draft is not None and other.draft is not None
    return [each.op for each in one.draft.graph.nodes] == [
        each.op for each in other.draft.graph.nodes
    ]


def _refuse_others(first: Traced, *others: Traced) -> None:
    for each in others:
        if each.structure != first.structure or not _is_like(each, first):
            raise NotForRange("the program does other things at other sizes")
        if each.read or first.read:
            raise NotForRange("the program is made for values of its arguments")
        ours, theirs = _sources(each), _sources(first)
        if len(ours) != len(theirs) or not all(map(_is_same, ours, theirs)):
            raise NotForRange("the program reads other tensors at other sizes")
        if _targets(each) != _targets(first):
            raise NotForRange("the program gives other tensors at other sizes")


def _sources(traced: Traced) -> list[frontend.InputSource]:
    assert traced.draft is not None
    return [traced.draft.sources[id(each.value)] for each in traced.draft.graph.inputs]


def _targets(traced: Traced) -> list[tuple]:
    """Which tensors of others the program writes to, or returns."""
    assert traced.draft is not None
    bases = [each.view and each.view.base for each in traced.draft.outputs]
    return [
        (each.name, base if base is None or isinstance(base, int) else _name_of(base))
        for each, base in zip(traced.draft.outputs, bases, strict=True)
    ]


def _name_of(source: frontend.InputSource) -> tuple:
    return source.kind, source.index, source.name


def _is_same(one: frontend.InputSource, other: frontend.InputSource) -> bool:
    """What the user's code has made beside the program is the same by its elements."""
    a, b = one.tensor, other.tensor
    if a is None or b is None:
        return _name_of(one) == _name_of(other)
    return a is b or (a.dtype == b.dtype and torch.equal(a, b))


def _facts(made: frontend.Lowered) -> tuple:
    """Equal for programs that do the same."""
    return without_locations(made.graph), made.outputs, made.fallbacks
