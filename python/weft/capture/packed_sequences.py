# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences in a traced program: how many sequences each step has is read where the program
is made, from lengths that are numbers or arguments, whose values then belong to what it was made
for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.nn.utils import rnn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from weft.capture.calling_frames import is_called_by
from weft.capture.listed_vectors import ListedVectors
from weft.capture.signature import Declined, flatten_values
from weft.capture.traced_constants import is_constant, node_of
from weft.frontend import packed
from weft.frontend.numbers import Number

NETS = {getattr(torch, name): name for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
_LITERALS = {torch.tensor, torch.as_tensor}
_READERS = {torch.Tensor.__index__, torch.Tensor.__int__, torch.Tensor.item}
# Of a permutation, as `composites_written_out` has it.
_INVERTING = torch.ops.aten.argsort.stable
_MOST_LENGTHS = 1 << 14
# By their nodes: what each element is.
Vectors = Mapping[torch.fx.Node, tuple[Number | int, ...]]
# Why there is no program for the values of lengths; for any lengths there may be one.
NO_VALUES = "the lengths of a packed sequence are computed of what is none"


def counts(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.int64, torch.int32)


class PackedSequences(TorchFunctionMode):
    """Within it, packed sequences can be traced.

    fakes, given: the leaves of the arguments as the trace has them, and as the call gave them.
    read: those whose values the program was made for, by number, with what flattens them to what
    calls of the program have in common. vectors: made of numbers that the program takes.
    """

    def __init__(
        self,
        fakes: Sequence[Any],
        given: Sequence[Any],
        call: Any,
        vectors: Vectors | None = None,
    ) -> None:
        super().__init__()
        self._vectors: Vectors = {} if vectors is None else vectors
        self.read: dict[int, Callable[[torch.Tensor], tuple[list[torch.Tensor], Any]]] = {}
        self._literals: dict[torch.fx.Node, torch.Tensor] = {}
        self._listed = ListedVectors()
        self._tensors: dict[torch.fx.Node, int] = {}
        self._given = given
        for number, (fake, real) in enumerate(zip(fakes, given, strict=True)):
            if isinstance(real, torch.Tensor) and (node := node_of(fake)) is not None:
                self._tensors[node] = number
        self._leaves = {n: i for n, i in self._tensors.items() if _may_be_lengths(given[i])}
        packs = pytree.tree_leaves(call, is_leaf=lambda each: isinstance(each, PackedSequence))
        sizes = {id(each.batch_sizes) for each in packs if isinstance(each, PackedSequence)}
        # Of packed sequences among the arguments: how many sequences each step has.
        self._sizes = {number for number, real in enumerate(given) if id(real) in sizes}
        self._known = self._sizes  # whose values may be asked for

    def __torch_function__(
        self, function: Callable, kinds: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in NETS and isinstance(args[1], torch.Tensor):
            if function is torch.lstm or isinstance(args[2], torch.Tensor):
                sizes = self._values(args[1])
                if sizes is not None:
                    return self._recurrent(NETS[function], sizes, *args)
        elif function is torch._pack_padded_sequence:
            lengths = self._values(args[1], may_read=True)
            if lengths is None:
                raise Declined(NO_VALUES)
            return self._pack(args[0], lengths, *args[2:])
        elif function is torch.sort and is_called_by(rnn.pack_padded_sequence):
            return self._in_order(args[0])
        elif function is torch._pad_packed_sequence:
            sizes = self._values(args[1])
            if sizes is not None:
                return self._pad(args[0], sizes, *args[2:])
        elif function is torch.Tensor.__getitem__ and isinstance(args[1], torch.Tensor):
            lengths, places = map(self._values, args)
            if lengths is not None and places is not None:
                return self._literal(torch.tensor, [lengths[place] for place in places])
        elif function is torch.Tensor.index_select and len(args) == 3:
            places = self._values(args[2])
            if places is not None and places:
                return _chosen(args[0], args[1], places)
        elif function is torch.zeros:
            return function(*map(self._number, args), **kwargs)
        elif function in _READERS and args[0].numel() == 1 and counts(args[0]):
            values = self._values(args[0])
            if values is not None:
                return values[0]
            return self._listed.read(args[0], function(*args))
        elif function is torch.Tensor.unbind and counts(args[0]) and args[0].dim() == 1:
            return self._listed.unbound(args[0], function(*args, **kwargs))
        elif function in _LITERALS and args and _are_numbers(args[0]):
            return self._literal(function, *args, **kwargs)
        elif function in _LITERALS and args and (vector := self._listed.of(args[0])) is not None:
            return vector.to(kwargs.get("dtype") or torch.int64, copy=True)
        return function(*args, **kwargs)

    def check(self, leaves: Sequence[Any]) -> None:
        """leaves: of the call's value. Raises: Declined, for those that no such program gives."""

    def _in_order(self, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The lengths in descending order, and the numbers of the sequences that have them."""
        values = self._values(lengths, may_read=True)
        if values is None:
            return torch.sort(lengths, descending=True)
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            found = [each.tolist() for each in torch.tensor(values).sort(descending=True)]
        ordered, places = (self._literal(torch.tensor, each) for each in found)
        return ordered, places

    def _literal(self, function: Callable, *args: Any, **kwargs: Any) -> torch.Tensor:
        result = function(*args, **kwargs)
        node = node_of(result)
        if node is not None:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                self._literals[node] = torch.tensor(args[0], dtype=result.dtype)
        return result

    def _number(self, argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        values = self._values(argument)
        return argument if values is None else values[0]

    def _values(self, tensor: torch.Tensor, may_read: bool = False) -> list[int] | None:
        """may_read: it may be computed from any argument, not only from those that were read."""
        node = node_of(tensor)
        if node is None:
            return None
        found: dict[torch.fx.Node, torch.Tensor] = {}
        read: set[int] = set()
        if not self._compute(node, found, read, may_read):
            return None
        self.read.update(dict.fromkeys(read, flatten_values))
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return found[node].flatten().tolist()

    def _compute(self, node, found, read: set[int], may_read: bool) -> bool:
        """Whether the value of `node` is known; it is in `found` then."""
        if node in found:
            return True
        number = self._leaves.get(node)
        if node in self._literals:
            found[node] = self._literals[node]
        elif number is not None:
            is_read = self.read.get(number) is flatten_values
            if not (may_read or is_read or number in self._known):
                return False
            found[node] = self._given[number]
            read.add(number)
        else:
            inputs = node.all_input_nodes
            if not (is_constant(node) or node.target is _INVERTING):
                return False
            if not all(self._compute(each, found, read, may_read) for each in inputs):
                return False
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), found.__getitem__)
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                found[node] = node.target(*args, **kwargs)
        return True

    def _recurrent(self, kind: str, sizes: list[int], x, _, states, params, *settings):
        states = list(states) if kind == "lstm" else [states]
        return tuple(packed.recurrent(kind, x, sizes, states, list(params), *settings))

    def _pack(self, x: torch.Tensor, lengths: list[int], batch_first: bool = False):
        """x: (steps, batch, ...). To the rows of all steps, (rows, ...), and each one's number."""
        if batch_first:
            x = x.transpose(0, 1)
        if (
            not lengths
            or min(lengths) <= 0
            or sorted(lengths, reverse=True) != lengths
            or len(lengths) != x.shape[1]
            or lengths[0] > x.shape[0]
        ):
            raise Declined("the lengths of a packed sequence, which PyTorch refuses")
        sizes = [sum(length > step for length in lengths) for step in range(lengths[0])]
        parts, step = [], 0
        for run in packed.runs_of(sizes):
            part = x[step : step + run.steps, : run.size]
            parts.append(part.reshape(run.steps * run.size, *x.shape[2:]))
            step += run.steps
        return torch.cat(parts), self._literal(torch.tensor, sizes)

    def _pad(self, rows, sizes: list[int], batch_first: bool, value: float, total: int = -1):
        """rows: (rows, ...). To (steps, batch, ...), and the length of each sequence."""
        if 0 < total < len(sizes):
            raise Declined("fewer steps than a packed sequence has, which PyTorch refuses")
        parts, rest = [], rows.shape[1:]
        none = [0, 0] * len(rest)
        for run in packed.runs_of(sizes):
            part = rows[run.first : run.limit].reshape(run.steps, run.size, *rest)
            missing = sizes[0] - run.size
            if missing:
                part = torch.nn.functional.pad(part, [*none, 0, missing], value=value)
            parts.append(part)
        padded = torch.cat(parts)
        if total > len(sizes):
            behind = [*none, 0, 0, 0, total - len(sizes)]
            padded = torch.nn.functional.pad(padded, behind, value=value)
        lengths = [sum(size > place for size in sizes) for place in range(sizes[0])]
        lengths_ = self._literal(torch.tensor, lengths)
        return padded.transpose(0, 1) if batch_first else padded, lengths_


def _chosen(x: torch.Tensor, dim: int, places: Sequence[int]) -> torch.Tensor:
    """Parts of x along `dim`, as the order of sequences is changed."""
    first, parts = 0, []
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            parts.append(x.narrow(dim, places[first], end - first))
            first = end
    return torch.cat(parts, dim)


def _may_be_lengths(tensor: torch.Tensor) -> bool:
    return (
        tensor.dtype in (torch.int64, torch.int32)
        and tensor.dim() == 1
        and tensor.device.type == "cpu"
        and 0 < tensor.numel() <= _MOST_LENGTHS
    )


def _are_numbers(data: Any) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(type(each) is int for each in data)
