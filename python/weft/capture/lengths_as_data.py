# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences in a traced program that stands for any lengths: they are read at each call, and
what the program was made for is how long the longest sequence may be."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils import rnn
from torch.utils._python_dispatch import _disable_current_modes

from weft.capture.argument_objects import as_size
from weft.capture.calling_frames import caller, is_called_by
from weft.capture.computed_lengths import AS_GIVEN, ComputedLengths
from weft.capture.packed_arguments import PackedArgument, RowsOfSteps
from weft.capture.packed_sequences import NETS, PackedSequences, counts
from weft.capture.signature import Declined, Read
from weft.capture.traced_constants import ancestors, node_of
from weft.frontend import packed
from weft.frontend.numbers import Number

# Up to so many elements PyTorch's sort leaves equal ones in their order.
_IN_ORDER = 16
# The binary logarithm of the fewest steps that a program has, unless no sequence is as long.
_FEWEST = 3
# The builtin functions: tracing replaces `builtins.max` and `builtins.min`.
_EXTREMES = (max, min)
# What gives the same elements in the same order.
_SAME = {
    getattr(torch.ops.aten, name)
    for name in ("_to_copy", "alias", "clone", "contiguous", "detach", "to")
}


@dataclass(frozen=True)
class Longest:
    """What calls of a program have in common, of the lengths among their arguments: how long the
    longest sequence is at least and at most, and whether they come in descending order."""

    least: int
    most: int
    ordered: bool = False
    computed: ComputedLengths = AS_GIVEN

    def __call__(self, given: torch.Tensor) -> tuple[list[torch.Tensor], bool]:
        """As a pytree is flattened: lengths of other programs have another context."""
        values = self.computed.values_of(given)
        return [given], _hold(values, self.ordered) and self.least <= max(values) <= self.most

    def require(self, lengths: Sequence[Number | int]) -> None:
        """Makes a condition of it for numbers that a program takes."""
        first = next(each for each in lengths if isinstance(each, Number))
        apply = first.numbers.apply
        longest, shortest = (apply(of, first, *lengths) for of in _EXTREMES)
        held = apply(operator.gt, shortest, 0)
        held &= apply(operator.ge, longest, self.least) & apply(operator.le, longest, self.most)
        if self.ordered:
            for one, other in itertools.pairwise(lengths):
                held &= apply(operator.ge, one, other)
        assert held

    def and_also(self, other: Longest) -> Longest:
        least, most = max(self.least, other.least), min(self.most, other.most)
        return replace(self, least=least, most=most, ordered=self.ordered or other.ordered)


@dataclass(frozen=True)
class LongestIsSize:
    """The same of a program for a range of sizes, whose longest sequence has as many steps as there
    are: a symbolic size, of which calls of the program have the same number in both places.

    size: as traced.
    """

    size: torch.SymInt | None
    ordered: bool = False
    computed: ComputedLengths = AS_GIVEN

    def __call__(self, given: torch.Tensor) -> tuple[list[torch.Tensor], Any]:
        values = self.computed.values_of(given)
        return [given, as_size(max(values, default=0))], _hold(values, self.ordered)


def _hold(values: Sequence[int], ordered: bool) -> bool:
    """Whether they are lengths of some sequences, and lie in order where they have to."""
    is_ordered = not ordered or values == sorted(values, reverse=True)
    return bool(values) and is_ordered and 0 < min(values)


def lengths_among(read: Read) -> tuple[dict[int, torch.SymInt], Read]:
    """By leaf, which size the longest of its sequences, or the number of all rows, is; and what is
    read, to be handed on."""
    sizes = {
        leaf: each.size
        for leaf, each in read.items()
        if isinstance(each, LongestIsSize | RowsOfSteps) and each.size is not None
    }
    told = {
        leaf: replace(each, size=None) if leaf in sizes else each for leaf, each in read.items()
    }
    return sizes, told


def _steps_for(longest: int, most: int) -> tuple[int, int]:
    """Of a program for sequences of such a length: how long the longest is at least, and how many
    steps there are, twice as many at most, so that there are few programs."""
    if most < 2 * longest:
        return most // 2 + 1, most
    steps = 1 << max((longest - 1).bit_length(), _FEWEST)
    return (1 if steps == 1 << _FEWEST else steps // 2 + 1), min(steps, most)


@dataclass(frozen=True)
class _Source:
    """leaf: of the arguments, which has the lengths, or of which they are computed. ordered:
    whether they are in order whatever the leaf has. numbers: the lengths, where a program takes
    them as such, and of no leaf."""

    leaf: int
    computed: ComputedLengths
    ordered: bool
    numbers: tuple[Number | int, ...] = ()


@dataclass(frozen=True)
class _Packed:
    """source: of the lengths. lengths: in descending order, as traced. steps: as many as a net
    computes. longest: of the call's own."""

    source: _Source
    lengths: torch.Tensor
    steps: int | torch.SymInt
    longest: int | torch.SymInt


class LengthsAsData(PackedSequences):
    """Within it, packed sequences can be traced as such a program has them, where the lengths are
    those of an argument, whichever way they are ordered. Others have the values of the call."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._known = set()
        self._packs: dict[torch.fx.Node, _Packed] = {}  # by how many sequences each step has
        # In which those of equal lengths may lie otherwise.
        self._orders: set[torch.fx.Node] = set()

    def __torch_function__(
        self, function: Callable, kinds: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function is torch._pack_padded_sequence:
            source = self._source(node_of(args[1]))
            if source is not None:
                return self._pack_any(source, *args)
        elif function in NETS and (pack := self._pack_of(args[1])):
            return self._recurrent_any(NETS[function], pack, *args)
        elif function in NETS and (given := self._argument_of(args[1], args[0])):
            return given.recurrent(NETS[function], *args)
        elif function is torch._pad_packed_sequence and (pack := self._pack_of(args[1])):
            return self._pad_any(pack, *args)
        elif function is torch._pad_packed_sequence and (given := self._argument_of(*args[1::-1])):
            return given.padded(*args)
        elif function is torch.Tensor.size and (pack := self._pack_of(args[0])):
            if is_called_by(rnn.pad_packed_sequence):
                return pack.longest
        elif function is torch.Tensor.__getitem__ and (pack := self._pack_of(args[0])):
            if args[1] == 0:
                return self._literal(torch.tensor, pack.lengths.shape[0])
        elif function is torch.Tensor.__getitem__ and (given := self._argument_of(args[0])):
            if args[1] == 0:
                return self._literal(torch.tensor, given.batch)
        return super().__torch_function__(function, kinds, args, kwargs)

    def _in_order(self, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self._source(node_of(lengths)) is None:
            return super()._in_order(lengths)
        if len(lengths) <= _IN_ORDER:
            return torch.sort(lengths, descending=True)
        ordered, places = torch.sort(lengths, stable=True, descending=True)
        node = node_of(places)
        assert node is not None
        self._orders.add(node)
        return ordered, places

    def check(self, leaves: Sequence[Any]) -> None:
        """Declines a program that would show in which order PyTorch's sort leaves sequences of
        equal lengths. What is put back in the order of the call does not show it."""
        queue = [node_of(each) for each in leaves if isinstance(each, torch.Tensor)]
        known: set[torch.fx.Node] = set()
        while self._orders and queue:
            node = queue.pop()
            if node is None or node in known or self._puts_back(node):
                continue
            if node in self._orders:
                raise Declined("the order of sequences whose lengths are equal")
            known.add(node)
            if node.target is operator.getitem and _sorts(node.args[0]) and node.args[1] == 0:
                continue
            queue += node.all_input_nodes

    def _puts_back(self, node: torch.fx.Node) -> bool:
        if node.target is torch.ops.aten.index_select.default:
            order = node.args[2]
        elif node.target is torch.ops.aten.index.Tensor and len(node.args[1]) == 1:
            order = node.args[1][0]
        else:
            return False
        inverse = _origin(order)
        if inverse.target is not torch.ops.aten.argsort.stable:
            return False
        return _origin(inverse.args[0]) in self._orders

    def _pack_of(self, sizes: Any) -> _Packed | None:
        node = node_of(sizes) if isinstance(sizes, torch.Tensor) else None
        return None if node is None else self._packs.get(node)

    def _argument_of(self, sizes: Any, rows: torch.Tensor | None = None) -> PackedArgument | None:
        """Of the tensor that says how many sequences each step has, of a packed sequence among the
        arguments; its values belong to what the program was made for no more."""
        number = self._tensors.get(node_of(sizes)) if isinstance(sizes, torch.Tensor) else None
        if number not in self._sizes:
            return None
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            found = PackedArgument.of(sizes, self._given[number].tolist(), rows)
        self.read[number] = found.bound.and_also(self.read.get(number))
        return found

    def _source(self, node: torch.fx.Node | None) -> _Source | None:
        """Where these lengths come from; None if that is not known."""
        ordered = False
        while node is not None and node not in self._leaves and node not in self._vectors:
            if node.target is operator.getitem and _sorts(node.args[0]) and node.args[1] == 0:
                node, ordered = node.args[0].args[0], True
            elif _is_same(node) or _leaves_positive(node):
                node = node.args[0]
            else:
                break
        if node in self._vectors:
            return _Source(-1, AS_GIVEN, ordered, self._vectors[node])
        found = None if node is None else self._computed(node)
        return None if found is None else _Source(*found, ordered)

    def _computed(self, node: torch.fx.Node) -> tuple[int, ComputedLengths] | None:
        """The leaf from which the lengths are computed, and how."""
        if node in self._leaves:
            return self._leaves[node], AS_GIVEN
        value = node.meta.get("val")
        is_vector = isinstance(value, torch.Tensor) and value.dim() == 1 and counts(value)
        of = [each for each in ancestors(node) if each in self._tensors] if is_vector else []
        if len(of) != 1:
            return None
        number = self._tensors[of[0]]
        computed = ComputedLengths.of(node, of[0], self._given[number])
        return None if computed is None else (number, computed)

    def _pack_any(self, source: _Source, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool):
        """x: (steps, batch, ...). To the rows of all steps, (rows, ...), and each one's number."""
        if batch_first:
            x = x.transpose(0, 1)
        must_be, computed, most = not source.ordered, source.computed, x.shape[0]
        is_size = isinstance(most, torch.SymInt)
        values = self._lengths_of(source)
        longest, room = max(values, default=0), most.node.hint if is_size else most
        if not _hold(values, must_be) or len(values) != x.shape[1] or longest > room:
            raise Declined("the lengths of a packed sequence, which PyTorch refuses")
        if is_size:
            if source.numbers:
                raise Declined("lengths that are numbers, in a range of sizes")
            self._bound_by_size(source, longest, LongestIsSize(most, must_be, computed))
            rows, steps, longest = packed.rows(x, lengths), most, most
        else:
            least, steps = _steps_for(longest, most)
            self._bound(source, Longest(least, steps, must_be, computed))
            rows = packed.rows(x[:steps], lengths)
        sizes = packed.sizes(lengths, steps)
        node = node_of(sizes)
        assert node is not None
        self._packs[node] = _Packed(source, lengths, steps, longest)
        return rows, sizes

    def _lengths_of(self, source: _Source) -> list[int]:
        """The lengths of the sequences of a call."""
        if source.numbers:
            return [each.value if isinstance(each, Number) else each for each in source.numbers]
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return source.computed.values_of(self._given[source.leaf])

    def _bound(self, source: _Source, bound: Longest) -> None:
        """Makes the program one for such lengths alone."""
        if source.numbers:
            bound.require(source.numbers)
            return
        known = self.read.setdefault(source.leaf, bound)
        if getattr(known, "computed", AS_GIVEN) != bound.computed:
            raise Declined("sequences of several lengths that are computed of one argument")
        if isinstance(known, Longest):
            self.read[source.leaf] = known.and_also(bound)
        elif isinstance(known, LongestIsSize):
            raise Declined("sequences of lengths that belong to two sizes")

    def _bound_by_size(self, source: _Source, longest: int, bound: LongestIsSize) -> None:
        known = self.read.setdefault(source.leaf, bound)
        assert bound.size is not None
        if longest != bound.size.node.hint:
            raise Declined("sequences shorter than a size that is a symbol")
        if not isinstance(known, LongestIsSize) or not statically_known_true(
            known.size == bound.size
        ):
            raise Declined("sequences of lengths that belong to two sizes")
        if known.computed != bound.computed:
            raise Declined("sequences of several lengths that are computed of one argument")
        self.read[source.leaf] = replace(known, ordered=known.ordered or bound.ordered)

    def _recurrent_any(self, kind: str, pack: _Packed, x, _, states, params, *settings):
        states = list(states) if kind == "lstm" else [states]
        given = kind, x, pack.lengths, pack.steps, states, list(params)
        return tuple(packed.recurrent_rows(*given, *settings))

    def _pad_any(self, pack: _Packed, rows, _, batch_first: bool, value: float, total: int = -1):
        """rows: (rows, ...). To (steps, batch, ...), and the length of each sequence."""
        frame = caller(rnn.pad_packed_sequence)
        told = total if frame is None else frame.f_locals["total_length"]
        if isinstance(pack.steps, torch.SymInt):
            if not (told is None or statically_known_true(told == pack.steps)):
                raise Declined("sequences that are padded to another size than a symbol's")
            total = pack.steps
        elif told is None or told <= 0:
            total = pack.longest
            self._bound(pack.source, Longest(total, total, computed=pack.source.computed))
        elif total < pack.longest:
            raise Declined("fewer steps than a packed sequence has, which PyTorch refuses")
        else:
            self._bound(pack.source, Longest(1, total, computed=pack.source.computed))
        padded = packed.padded(rows, pack.lengths, pack.steps, value)
        if total is pack.steps:
            pass
        elif total < pack.steps:
            padded = padded[:total]
        elif total > pack.steps:
            behind = [*[0, 0] * (padded.dim() - 1), 0, total - pack.steps]
            padded = torch.nn.functional.pad(padded, behind, value=value)
        return padded.transpose(0, 1) if batch_first else padded, pack.lengths.clone()


def _is_same(node: torch.fx.Node) -> bool:
    """Whether it is another one with the same whole numbers."""
    dtype = getattr(node.meta.get("val"), "dtype", None)
    is_whole = dtype in (torch.int64, torch.int32)
    return getattr(node.target, "overloadpacket", None) in _SAME and is_whole


def _leaves_positive(node: torch.fx.Node) -> bool:
    """Whether it leaves positive numbers as they are, as all lengths of a program are."""
    clamps = (torch.ops.aten.clamp.default, torch.ops.aten.clamp_min.default)
    if node.target not in clamps:
        return False
    given = dict(zip(("self", "min", "max"), node.args)) | node.kwargs
    return given.get("max") is None and given.get("min") in (0, 1)


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    while _is_same(node):
        node = node.args[0]
    return node


def _sorts(node: torch.fx.Node) -> bool:
    """Whether it sorts a vector in descending order."""
    if node.target is torch.ops.aten.sort.default:
        given = dict(zip(("self", "dim", "descending"), node.args)) | node.kwargs
        return bool(given.get("descending", False))
    return node.target is torch.ops.aten.sort.stable and node.kwargs.get("descending", False)
